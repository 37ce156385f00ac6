"""Rows of programming contests: LiveCodeBench (arXiv 2403.07974), DeepCoder, CodeContests (arXiv 2203.07814)."""

import base64
import binascii
import io
import json
import pickle
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from vpo.sandbox.verdicts import Case
from vpo.tasks.code.answers import extract_program
from vpo.tasks.code.problem import Check, Draft
from vpo.tasks.data import field, items
from vpo.util.errors import InputError

LARGEST = 1 << 29  # bytes of the tests of a row, decompressed
PYTHON3 = 3  # the number of its language in CodeContests

# What LiveCodeBench's judge puts before every program, in its order: later names replace earlier ones, so that `pow` is
# the built-in one, and `copy` and `datetime` are modules.
MODULES = (
    "string",
    "re",
    "datetime",
    "collections",
    "heapq",
    "bisect",
    "copy",
    "math",
    "random",
    "statistics",
    "itertools",
    "functools",
    "operator",
    "io",
    "sys",
    "json",
)
IMPORTS = "\n".join(
    [
        *(f"from {name} import *" for name in (*MODULES, "builtins", "typing")),
        f"import {', '.join(MODULES)}",
        "sys.setrecursionlimit(50_000)",
    ]
)


def read_livecodebench(row: Mapping[str, Any], where: str) -> Draft:
    """Read a row of code_generation_lite."""
    public = _json(field(row, "public_test_cases", str, where), f"{where}: public_test_cases")
    private = read_private(field(row, "private_test_cases", str, where), f"{where}: private_test_cases")
    metadata = _json(field(row, "metadata", str, where), f"{where}: metadata")
    if not isinstance(public, list) or not isinstance(private, list) or not isinstance(metadata, dict):
        raise InputError(f"{where}: tests must be lists, and metadata an object")
    starter = row.get("starter_code") or ""
    return _draft(
        _tests_in_lines([*public, *private], where),
        metadata.get("func_name"),
        where,
        "livecodebench",
        id=field(row, "question_id", str, where),
        statement=field(row, "question_content", str, where).strip(),
        starter=starter,
    )


def read_deepcoder(row: Mapping[str, Any], where: str) -> Draft:
    """Read a row of DeepCoder-Preview: tests as one object of lists (TACO), or as a list of objects (the others)."""
    tests = _json(field(row, "tests", str, where), f"{where}: tests")
    name: Any = None
    if isinstance(tests, dict):
        pairs = _pairs(tests, "inputs", "outputs", f"{where}: tests")
        name = tests.get("fn_name")
        pairs = [(_arguments(inputs), _unwrapped(expected)) for inputs, expected in pairs] if name else pairs
    else:
        first = tests[0] if isinstance(tests, list) and tests and isinstance(tests[0], dict) else {}
        name = first.get("fn_name") or (first.get("metadata") or {}).get("func_name")
        pairs = _tests_in_lines(tests, where)
    solutions = row.get("solutions") or []
    return _draft(
        pairs,
        name,
        where,
        "value",
        id=str(row.get("id") or where.rpartition("/")[2]),
        statement=field(row, "problem", str, where).strip(),
        starter=row.get("starter_code") or "",
        solution=extract_program(solutions[0]) if solutions and isinstance(solutions[0], str) else None,
    )


def read_codecontests(row: Mapping[str, Any], where: str) -> Draft:
    """Read a row of CodeContests: as published, with three dicts of tests, or with one, `tests`."""
    if "tests" in row:
        parts, names = ["tests"], ("inputs", "outputs")
    else:
        parts, names = ["public_tests", "private_tests", "generated_tests"], ("input", "output")
    pairs = [pair for part in parts for pair in _pairs(field(row, part, dict, where), *names, f"{where}: {part}")]
    return _draft(
        pairs,
        None,
        where,
        "value",
        id=str(row.get("id") or field(row, "name", str, where)),
        statement=field(row, "problem" if "problem" in row else "description", str, where).strip(),
        starter="",
        solution=_in_python(row.get("solutions")),
    )


def read_private(text: str, where: str) -> Any:
    """The private tests of LiveCodeBench: JSON, or JSON that was pickled, compressed and encoded in base64.

    A pickle that imports anything is refused.
    """
    if text.lstrip().startswith("["):
        return _json(text, where)
    try:
        packed = base64.b64decode(text, validate=True)
        unpacker = zlib.decompressobj()
        unpacked = unpacker.decompress(packed, LARGEST)
        if unpacker.unconsumed_tail:
            raise InputError(f"{where}: the tests must be at most {LARGEST} bytes, decompressed")
        content = _PlainUnpickler(io.BytesIO(unpacked)).load()
    except InputError:
        raise
    except (binascii.Error, ValueError, zlib.error) as error:
        raise InputError(f"{where}: the tests cannot be decompressed ({error})") from None
    except Exception as error:  # a broken pickle may raise anything
        raise InputError(f"{where}: the tests cannot be unpickled ({type(error).__name__}: {error})") from None
    if not isinstance(content, str):
        raise InputError(f"{where}: the pickle must hold text, not {type(content).__name__}")
    return _json(content, where)


class _PlainUnpickler(pickle.Unpickler):
    """Unpickles plain values only."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """Refuse every import."""
        raise pickle.UnpicklingError(f"it imports {module_name}.{global_name}")


def _draft(
    pairs: Sequence[tuple[Any, Any]],
    name: Any,
    where: str,
    compare: str,
    *,
    id: str,
    statement: str,
    starter: str,
    solution: str | None = None,
) -> Draft:
    """A draft whose program reads standard input, or is the function `name`."""
    if not pairs:
        raise InputError(f"{where}: the row must have 1 or more tests, not 0")
    if name is None:
        text = "text" if compare == "value" else f"{compare}_text"
        cases = [Case(_text(inputs, where), _text(expected, where), compare=text) for inputs, expected in pairs]
        return Draft(id, statement, tuple(map(Check, cases)), starter=starter, setup=IMPORTS, solution=solution)
    entry = f"Solution.{name}" if "class Solution" in (starter or solution or "") else str(name)
    checks = tuple(Check(Case(inputs, expected, compare=compare)) for inputs, expected in pairs)
    return Draft(id, statement, checks, entry=entry, starter=starter, setup=IMPORTS, solution=solution)


def _text(value: Any, where: str) -> str:
    """Standard input or output of a program: a text, or a list of its lines."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if not isinstance(value, str):
        raise InputError(f"{where}: input and output of a test must be text where no function is named")
    return value


def _tests_in_lines(tests: Any, where: str) -> list[tuple[Any, Any]]:
    """Inputs and outputs of a list of tests; those of a function are JSON, one argument a line."""
    if not isinstance(tests, list):
        raise InputError(f"{where}: tests must be a list, not {type(tests).__name__}")
    pairs: list[tuple[Any, Any]] = []
    for number, test in enumerate(tests):
        which = f"{where}: test {number}"
        if not isinstance(test, dict) or not {"input", "output"} <= test.keys():
            raise InputError(f"{which} must be an object with input and output")
        inputs, expected = test["input"], test["output"]
        if test.get("testtype") == "functional":
            lines = field(test, "input", str, which).split("\n")
            inputs = tuple(_json(line, f"{which}: input") for line in lines if line.strip())
            expected = _json(field(test, "output", str, which), f"{which}: output")
        elif test.get("type") == "function_call":
            inputs, expected = _arguments(inputs), _unwrapped(expected)
        pairs.append((inputs, expected))
    return pairs


def _pairs(tests: Mapping[str, Any], input_key: str, output_key: str, where: str) -> list[tuple[Any, Any]]:
    """Inputs and outputs from two lists of equal length."""
    kinds = (str, list, dict, int, float, type(None))
    inputs, outputs = items(tests, input_key, kinds, where), items(tests, output_key, kinds, where)
    if len(inputs) != len(outputs):
        raise InputError(f"{where}: there are {len(inputs)} {input_key} and {len(outputs)} {output_key}")
    return list(zip(inputs, outputs, strict=True))


def _arguments(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, list) else (values,)


def _unwrapped(value: Any) -> Any:
    """The value in a list of one, as TACO has the outputs of functions."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _in_python(solutions: Any) -> str | None:
    """The first solution in Python 3, where there is one."""
    if not isinstance(solutions, Mapping):
        return None
    pairs = zip(solutions.get("language") or (), solutions.get("solution") or (), strict=False)
    return next((source for language, source in pairs if language == PYTHON3), None)


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} must be JSON ({error})") from None
