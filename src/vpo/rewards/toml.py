"""Reads a rewards file: a table for each reward, whose name is the objective's.

.. code-block:: toml

    concurrent = 4         # calls at once
    time_limit = 600       # seconds that a call may take

    [short]
    kind = "length"
    most = 120

    [weights]              # w*, what is deployed; all alike without it
    short = 1
"""

import importlib
import inspect
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from vpo.rewards.scorer import Scorer
from vpo.rewards.vector import Limited, Vector
from vpo.util.errors import InputError, nearest
from vpo.util.type_checks import matches_type, type_name

# Where each kind of reward is. Its class takes the name of the table, then the table's keys as keywords; those that it
# lists in `paths` may be files beside the rewards file, and those in `made` are written there.
KINDS = {
    "function": ("vpo.rewards.functions", "Function"),
    "classifier": ("vpo.rewards.models", "Classifier"),
    "similarity": ("vpo.rewards.embedding", "Similarity"),
    "length": ("vpo.rewards.text", "Length"),
    "readability": ("vpo.rewards.text", "Readability"),
    "pattern": ("vpo.rewards.text", "Pattern"),
    "json": ("vpo.rewards.text", "Json"),
    "judge": ("vpo.rewards.judge", "Judge"),
}
OF_ALL = {"concurrent": int, "time_limit": float}  # settings outside of tables
OF_EACH = {"time_limit": float, "call_size": int}  # settings that every reward has
WEIGHTS = "weights"


def read_vector(path: str | Path) -> Vector:
    """Return the vector that a rewards file states."""
    data = _read(path)
    settings = {name: data.pop(name) for name in OF_ALL if name in data}
    try:
        _check_kinds(settings, OF_ALL)
        weights = data.pop(WEIGHTS, None)
        if weights is not None and not matches_type(weights, dict[str, float]):
            raise InputError(f"[{WEIGHTS}] must give each objective a number")
        if not data:
            raise InputError("there is no reward: give one or more tables such as [short]")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    rewards = []
    for name, table in data.items():
        try:
            rewards.append(_reward(name, table, Path(path).parent))
        except InputError as error:
            raise InputError(f"{path}: [{name}] {error}") from None
    try:
        return Vector(*rewards, weights=weights, **settings)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _read(path: str | Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (FileNotFoundError, IsADirectoryError):
        raise InputError(f"{path}: there is no such file (of rewards)") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the file is not TOML ({error})") from None


def _reward(name: str, table: Any, folder: Path) -> Limited:
    """Return the reward of a table."""
    if not isinstance(table, dict):
        raise InputError(f"must be a table with a kind, or one of the settings {', '.join(OF_ALL)}")
    settings = dict(table)
    kind = settings.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"kind {kind!r} is not known: {nearest(str(kind), KINDS)}")
    module, attribute = KINDS[kind]
    make = getattr(importlib.import_module(module), attribute)
    limits = {each: settings.pop(each) for each in OF_EACH if each in settings}
    _check_kinds(limits, OF_EACH)
    parameters = [each for each in inspect.signature(make).parameters.values() if each.name != "name"]
    for each in settings:
        if each not in (known := [parameter.name for parameter in parameters] + list(OF_EACH)):
            raise InputError(f"has no setting {each!r}: {nearest(each, known)}")
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in settings:
            raise InputError(f"needs the setting {parameter.name!r}")
    _check_kinds(settings, get_type_hints(make.__init__))
    for each in set(getattr(make, "made", ())) & settings.keys():
        settings[each] = str((folder / settings[each]).absolute())
    scorer: Scorer = make(name, **_placed(settings, getattr(make, "paths", ()), folder))
    return Limited(scorer, **limits)


def _check_kinds(settings: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if not matches_type(value, kinds[name]):
            raise InputError(f"{name} must be {type_name(kinds[name])}, not {value!r}")


def _placed(settings: dict[str, Any], paths: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """Return settings in which files are found beside the rewards file."""

    def beside(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        file, colon, name = value.rpartition(":") if ".py:" in value else (value, "", "")
        return f"{(folder / file).absolute()}{colon}{name}" if (folder / file).exists() else value

    placed = {name: beside(value) if name in paths else value for name, value in settings.items()}
    if isinstance(rules := placed.get("calibration"), dict):
        placed["calibration"] = _with_files(rules, beside)
    return placed


def _with_files(rules: Mapping[str, Any], beside: Any) -> dict[str, Any]:
    """Return calibrations whose reference sets are found beside the rewards file."""
    return {
        name: beside(value)
        if name == "quantiles"
        else _with_files(value, beside)
        if isinstance(value, Mapping)
        else value
        for name, value in rules.items()
    }
