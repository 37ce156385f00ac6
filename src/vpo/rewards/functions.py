"""TRL reward functions, unchanged: one objective each."""

import asyncio
import hashlib
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from vpo.core.types import Floats
from vpo.rewards.calibrator import Calibrator
from vpo.rewards.rows import plain_text
from vpo.rewards.scorer import Sample, Scores
from vpo.util.errors import InputError
from vpo.util.files import load_module

FORMS = ("auto", "text", "messages")
# Arguments that TRL has for a whole completion; they do not exist for one answer of it.
COMPLETION_ONLY = ("completion_ids", "trainer_state", "log_extra", "log_metric", "environments")


class FunctionReward:
    """A reward function, called as TRL calls it: ``function(prompts=…, completions=…, **columns)``.

    Each answer of a set is a completion to it. It returns a number in [0, 1] for each, or any number if there is a
    calibration; None abstains. It may be `async`.
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
        """Load the function.

        Args:
            name: of the objective.
            function: itself, or its location: "my_rewards.py:polite", "trl.rewards:think_format_reward".
            form: of prompts and answers: "text", "messages", or "auto", the form of the data set's prompts.
            calibration: to [0, 1], see `vpo.rewards.calibration`; None where it returns that already.
        """
        if form not in FORMS:
            raise InputError(f"form must be one of {', '.join(FORMS)}, not {form!r}")
        self.names: tuple[str, ...] = (name,)
        self.form = form
        if isinstance(function, str):
            self.location, self.function = function, load_function(function)
        else:
            self.location, self.function = f"{function.__module__}:{function_name(function)}", function
        file = Path(self.location.rpartition(":")[0])
        self.source = {"sha256": _file_hash(file)} if file.suffix == ".py" else {}  # as it was loaded
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except ValueError:
            raise InputError(
                f"function {self.location} has no signature that Python can read: wrap it in a Python function"
            ) from None
        self.takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
        named = [each for each in parameters if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
        self.takes = {each.name for each in named}
        needed = [each.name for each in named if each.default is each.empty]
        for each in COMPLETION_ONLY:
            if each in needed:
                raise InputError(f"function {self.location} needs {each}, which an answer within a set does not have")
        self.columns = tuple(each for each in needed if each not in ("prompts", "completions"))
        self.calibrator = None if calibration is None else Calibrator(self.names, calibration, self._raw)

    def score(self, samples: Sequence[Sample]) -> list[Scores]:
        """Scores of each answer."""
        numbers = self._numbers(samples)
        scores = [(number,) for number in numbers] if self.calibrator is None else self.calibrator(_column(numbers))
        return [(None,) if number is None else score for number, score in zip(numbers, scores, strict=True)]

    def described(self) -> dict[str, Any]:
        """Location, hash of the file, form and calibration."""
        facts: dict[str, Any] = {"kind": "function", "function": self.location, "form": self.form, **self.source}
        return facts if self.calibrator is None else {**facts, "calibration": self.calibrator.data()}

    def counted(self) -> dict[str, tuple[float, int]]:
        """How many scores were clipped: see `Calibrator.counted`."""
        return {} if self.calibrator is None else self.calibrator.counted()

    def _raw(self, samples: Sequence[Sample]) -> Floats:
        return _column(self._numbers(samples))

    def _numbers(self, samples: Sequence[Sample]) -> list[float | None]:
        arguments = _arguments(samples, self._takes_text(samples))
        if not self.takes_all:
            arguments = {name: values for name, values in arguments.items() if name in self.takes}
        returned = self.function(**arguments)
        if inspect.isawaitable(returned):
            returned = asyncio.run(_await(returned))
        if isinstance(returned, Mapping | str) or not isinstance(returned, Iterable):
            raise TypeError(f"it must return a list with a number for each answer, not {returned!r:.60}")
        numbers = [None if number is None else float(number) for number in returned]
        if len(numbers) != len(samples):
            raise ValueError(f"it must return a number for each of {len(samples)} answers, and returned {len(numbers)}")
        return numbers

    def _takes_text(self, samples: Sequence[Sample]) -> bool:
        if self.form == "auto":
            return all(isinstance(sample.row.get("prompt"), str) for sample in samples)
        return self.form == "text"


def _arguments(samples: Sequence[Sample], as_text: bool) -> dict[str, list[Any]]:
    """The arguments that TRL passes: prompts, completions, and the further columns of the data set."""
    columns = dict.fromkeys(name for sample in samples for name in sample.row if name not in ("prompt", "completion"))
    arguments: dict[str, list[Any]] = {name: [sample.row.get(name) for sample in samples] for name in columns}
    if as_text:
        arguments["prompts"] = [plain_text(sample.messages) for sample in samples]
        arguments["completions"] = [sample.answer for sample in samples]
    else:
        arguments["prompts"] = [list(sample.messages) for sample in samples]
        arguments["completions"] = [[{"role": "assistant", "content": sample.answer}] for sample in samples]
    return arguments


def _column(numbers: Sequence[float | None]) -> Floats:
    return np.asarray([np.nan if number is None else number for number in numbers], dtype=np.float64)[:, None]


async def _await(value: Any) -> Any:
    return await value


def function_name(function: Any) -> str:
    """Name of a function, or of the class of a callable object."""
    return str(getattr(function, "__name__", type(function).__name__))


def load_function(location: str) -> Callable[..., Any]:
    """The function at "file.py:name" or "module:name"."""
    module, colon, name = location.rpartition(":")
    if not (colon and module and name):
        raise InputError(f"function must be file.py:NAME or module:NAME, not {location!r}")
    if module.endswith(".py") and not Path(module).is_file():
        raise InputError(f"no such file: {module} (reward functions)")
    try:
        if module.endswith(".py"):
            loaded = _load_file(str(Path(module).absolute()), _file_hash(Path(module)))
        else:
            loaded = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever a user's file raises
        raise InputError(f"{module}: the functions cannot be loaded ({type(error).__name__}: {error})") from error
    function: Callable[..., Any] | None = getattr(loaded, name, None)
    if not callable(function):
        raise InputError(f"{module} has no function {name!r}")
    return function


@cache
def _load_file(file: str, sha256: str) -> ModuleType:
    """A file as a module; loaded once for all of its functions, which may share a model."""
    suffix = hashlib.sha256(f"{file} {sha256}".encode()).hexdigest()[:12]  # files in two folders may share a name
    return load_module(file, f"vpo_rewards_{Path(file).stem}_{suffix}")


def _file_hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
