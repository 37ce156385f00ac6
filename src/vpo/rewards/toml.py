"""Reads a rewards file: a table for each reward, whose name is the objective's.

.. code-block:: toml

    concurrent = 4         # calls in parallel
    time_limit = 600       # seconds per call

    [short]
    kind = "length"
    most = 120

    [weights]              # w*, the weighting that is deployed; uniform by default
    short = 1
"""

import inspect
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vpo.rewards.classifier import Classifier
from vpo.rewards.functions import FunctionReward
from vpo.rewards.judge import Judge
from vpo.rewards.scorer import Scorer
from vpo.rewards.similarity import Similarity
from vpo.rewards.text import Json, Length, Pattern, Readability
from vpo.rewards.vector import Limited, VectorReward
from vpo.util.errors import InputError, nearest
from vpo.util.type_checks import matches_type, type_name

# The scorer of each kind takes the name of its table and the table's keys as keywords. One that has a `config_class`
# takes the name and an instance of that dataclass, made from the keys. Values of the keys in `paths` may be files
# beside the rewards file; those in `output_paths` are written there.
KINDS: dict[str, type] = {
    "function": FunctionReward,
    "classifier": Classifier,
    "similarity": Similarity,
    "length": Length,
    "readability": Readability,
    "pattern": Pattern,
    "json": Json,
    "judge": Judge,
}
GLOBAL_SETTINGS = {"concurrent": int, "time_limit": float}  # outside of tables
LIMITS = {"time_limit": float, "call_size": int}  # settings of every reward
WEIGHTS = "weights"


def read_rewards(path: str | Path) -> VectorReward:
    """The vector reward that a rewards file defines. Errors name the file and the table."""
    data = _load(path)
    try:
        settings = {name: data.pop(name) for name in GLOBAL_SETTINGS if name in data}
        _check_types(settings, GLOBAL_SETTINGS)
        weights = data.pop(WEIGHTS, None)
        if weights is not None and not matches_type(weights, dict[str, float]):
            raise InputError(f"[{WEIGHTS}] must give each objective a number")
        if not data:
            raise InputError("there is no reward: give one or more tables such as [short]")
        rewards = [_read_table(name, table, Path(path).parent) for name, table in data.items()]
        return VectorReward(*rewards, weights=weights, **settings)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _load(path: str | Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (FileNotFoundError, IsADirectoryError):
        raise InputError(f"no such file: {path} (rewards)") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the file is not TOML ({error})") from None


def _read_table(name: str, table: Any, folder: Path) -> Limited:
    try:
        return _reward(name, table, folder)
    except InputError as error:
        raise InputError(f"[{name}] {error}") from None


def _reward(name: str, table: Any, folder: Path) -> Limited:
    if not isinstance(table, dict):
        raise InputError(f"must be a table with a kind, or one of the settings {', '.join(GLOBAL_SETTINGS)}")
    settings = dict(table)
    kind = settings.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"kind {kind!r} is not known: {nearest(str(kind), KINDS)}")
    scorer_class = KINDS[kind]
    limits = {key: settings.pop(key) for key in LIMITS if key in settings}
    _check_types(limits, LIMITS)
    config_class = getattr(scorer_class, "config_class", None)
    _check_settings(settings, config_class or scorer_class)
    settings = _resolve_paths(settings, scorer_class, folder)
    scorer: Scorer = scorer_class(name, config_class(**settings)) if config_class else scorer_class(name, **settings)
    return Limited(scorer, **limits)


def _check_settings(settings: Mapping[str, Any], constructor: type) -> None:
    """Refuse settings that the constructor does not take, lacks, or takes with another type."""
    parameters = {key: each for key, each in inspect.signature(constructor).parameters.items() if key != "name"}
    for key in settings:
        if key not in parameters:
            raise InputError(f"has no setting {key!r}: {nearest(key, [*parameters, *LIMITS])}")
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in settings:
            raise InputError(f"needs the setting {key!r}")
    _check_types(settings, {key: parameter.annotation for key, parameter in parameters.items()})


def _check_types(settings: Mapping[str, Any], types: Mapping[str, Any]) -> None:
    for key, value in settings.items():
        if not matches_type(value, types[key]):
            raise InputError(f"{key} must be {type_name(types[key])}, not {value!r}")


def _resolve_paths(settings: Mapping[str, Any], scorer_class: type, folder: Path) -> dict[str, Any]:
    """Settings whose files are absolute: relative ones are beside the rewards file."""
    resolved = dict(settings)
    for key in settings.keys() & set(getattr(scorer_class, "output_paths", ())):
        resolved[key] = str((folder / settings[key]).absolute())
    for key in settings.keys() & set(getattr(scorer_class, "paths", ())):
        resolved[key] = _existing_path(settings[key], folder)
    if "calibration" in settings:
        resolved["calibration"] = _map_quantiles(settings["calibration"], lambda file: _existing_path(file, folder))
    return resolved


def _existing_path(value: Any, folder: Path) -> Any:
    """The absolute path of a file in the folder, "file.py:name" included; any other value as it is."""
    if not isinstance(value, str):
        return value
    file, colon, name = value.rpartition(":") if ".py:" in value else (value, "", "")
    return f"{(folder / file).absolute()}{colon}{name}" if (folder / file).exists() else value


def _map_quantiles(rules: Any, change: Callable[[Any], Any]) -> Any:
    """Calibration rules, of one or all objectives, in which the value of each `quantiles` is changed."""
    if not isinstance(rules, Mapping):
        return rules
    return {key: change(rule) if key == "quantiles" else _map_quantiles(rule, change) for key, rule in rules.items()}
