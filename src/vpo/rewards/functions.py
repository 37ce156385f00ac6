"""Reward functions as TRL has them, unchanged: one objective each."""

import asyncio
import hashlib
import importlib
import inspect
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from vpo.core.types import Floats
from vpo.rewards.calibration import Calibrated
from vpo.rewards.rows import text_of
from vpo.rewards.scorer import Item, Scores
from vpo.util.errors import InputError
from vpo.util.files import load_module

FORMS = ("auto", "text", "messages")
# What TRL has of a whole completion, and nobody has of one answer of it.
TRAINERS_OWN = ("completion_ids", "trainer_state", "log_extra", "log_metric", "environments")


class Function:
    """A reward function, called as TRL calls it: ``function(prompts=…, completions=…, **columns)``.

    Each answer is a completion to it. It returns a number in [0, 1] for each, or with a calibration any number; None
    abstains. It may be `async`.
    """

    paths: ClassVar[tuple[str, ...]] = ("function",)

    def __init__(
        self,
        name: str,
        *,
        function: str | Callable[..., Any],
        form: str = "auto",
        calibration: dict[str, Any] | None = None,
    ) -> None:
        """Take a function.

        Args:
            name: of the objective.
            function: itself, or where it is: "my_rewards.py:polite", "trl.rewards:think_format_reward".
            form: how prompts and answers are given: as "text", as "messages", or, "auto", as the data set has prompts.
            calibration: to [0, 1], see `vpo.rewards.calibration`; none where it returns that already.
        """
        if form not in FORMS:
            raise InputError(f"form must be one of {', '.join(FORMS)}, not {form!r}")
        self.names: tuple[str, ...] = (name,)
        self.form = form
        self.place = function if isinstance(function, str) else f"{function.__module__}:{name_of(function)}"
        self.function = found(function) if isinstance(function, str) else function
        file = Path(self.place.rpartition(":")[0])
        self.source = {"sha256": _hash(file)} if file.suffix == ".py" else {}  # as it was loaded
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except ValueError:
            raise InputError(f"function {self.place} does not say what it takes: wrap it in one of your own") from None
        self.takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
        named = [each for each in parameters if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
        self.takes = {each.name for each in named}
        needed = [each.name for each in named if each.default is each.empty]
        for each in TRAINERS_OWN:
            if each in needed:
                raise InputError(f"function {self.place} needs {each}, which an answer within a set does not have")
        self.columns = tuple(each for each in needed if each not in ("prompts", "completions"))
        self.calibrated = None if calibration is None else Calibrated(self.names, calibration, self._raw)

    def score(self, items: Sequence[Item]) -> list[Scores]:
        """Return what the function says of each answer."""
        numbers = self._numbers(items)
        scores = [(number,) for number in numbers] if self.calibrated is None else self.calibrated(_column(numbers))
        return [(None,) if number is None else score for number, score in zip(numbers, scores, strict=True)]

    def described(self) -> dict[str, Any]:
        """Return where the function is, and its calibration."""
        facts: dict[str, Any] = {"kind": "function", "function": self.place, "form": self.form, **self.source}
        return facts if self.calibrated is None else {**facts, "calibration": self.calibrated.data()}

    def counted(self) -> dict[str, tuple[float, int]]:
        """Return how much the calibration cut off."""
        return {} if self.calibrated is None else self.calibrated.counted()

    def _raw(self, items: Sequence[Item]) -> Floats:
        return _column(self._numbers(items))

    def _numbers(self, items: Sequence[Item]) -> list[float | None]:
        given = _arguments(items, self._as_text(items))
        if not self.takes_all:
            given = {name: value for name, value in given.items() if name in self.takes}
        returned = self.function(**given)
        if inspect.isawaitable(returned):
            returned = asyncio.run(_awaited(returned))
        numbers = [None if number is None else float(number) for number in returned]
        if len(numbers) != len(items):
            raise ValueError(f"it returned {len(numbers)} numbers for {len(items)} answers")
        return numbers

    def _as_text(self, items: Sequence[Item]) -> bool:
        if self.form == "auto":
            return all(isinstance(item.row.get("prompt"), str) for item in items)
        return self.form == "text"


def _arguments(items: Sequence[Item], as_text: bool) -> dict[str, list[Any]]:
    """Return what TRL would give: prompts, completions, and the further columns of the data set."""
    columns = dict.fromkeys(name for item in items for name in item.row if name not in ("prompt", "completion"))
    given: dict[str, list[Any]] = {name: [item.row.get(name) for item in items] for name in columns}
    if as_text:
        given["prompts"] = [text_of(tuple(item.messages)) for item in items]
        given["completions"] = [item.answer for item in items]
    else:
        given["prompts"] = [list(item.messages) for item in items]
        given["completions"] = [[{"role": "assistant", "content": item.answer}] for item in items]
    return given


def _column(numbers: Sequence[float | None]) -> Floats:
    return np.asarray([np.nan if number is None else number for number in numbers], dtype=np.float64)[:, None]


async def _awaited(value: Any) -> Any:
    return await value


def name_of(function: Any) -> str:
    """Return the name of a function, or of the class of what is called like one."""
    return str(getattr(function, "__name__", type(function).__name__))


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@cache
def _loaded(file: str, sha256: str) -> ModuleType:
    """Return a file as a module: once for all of its functions, which may share a model."""
    name = hashlib.sha256(f"{file} {sha256}".encode()).hexdigest()[:12]  # files in two folders may share theirs
    return load_module(file, f"vpo_rewards_{Path(file).stem}_{name}")


def found(place: str) -> Callable[..., Any]:
    """Return the function at a place, "file.py:name" or "module:name"."""
    module, colon, name = place.rpartition(":")
    if not (colon and module and name):
        raise InputError(f"function must be file.py:NAME or module:NAME, not {place!r}")
    if module.endswith(".py") and not Path(module).is_file():
        raise InputError(f"{module}: there is no such file (of reward functions)")
    try:
        if module.endswith(".py"):
            loaded = _loaded(str(Path(module).absolute()), _hash(Path(module)))
        else:
            loaded = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever a file that is not ours raises
        raise InputError(f"{module}: the functions cannot be loaded ({type(error).__name__}: {error})") from error
    function: Callable[..., Any] | None = getattr(loaded, name, None)
    if not callable(function):
        raise InputError(f"{module}: there is no function {name!r}")
    return function
