"""The data sets that the task reads: how their rows are recognised, which rows a split has, and where they are."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from vpo.tasks.code.contests import read_codecontests, read_deepcoder, read_livecodebench
from vpo.tasks.code.evalplus import read_humaneval_plus, read_mbpp_plus
from vpo.tasks.code.problem import Draft
from vpo.tasks.code.written import read_humaneval, read_mbpp
from vpo.tasks.data import Published, field, read_data
from vpo.tasks.task import check_split
from vpo.util.errors import InputError, nearest

Row = Mapping[str, Any]
ALL = "all"
MBPP_SPLITS = {"train": range(601, 975), "test": range(11, 511), ALL: range(1, 975)}


@dataclass(frozen=True)
class Window:
    """The dates of a split of problems that have one: train is before the first, test from there to the second."""

    before: date
    until: date

    @classmethod
    def of(cls, before: str, until: str) -> "Window":
        """Read two dates."""
        try:
            found = cls(date.fromisoformat(before), date.fromisoformat(until))
        except ValueError:
            raise InputError(f"before and until must be dates such as 2025-02-01, not {before!r}, {until!r}") from None
        if found.before >= found.until:
            raise InputError(f"until must be later than before, {before}, not {until}")
        return found

    def holds(self, day: date, split: str) -> bool:
        """Return whether a day belongs to a split."""
        return split == ALL or (day < self.before if split == "train" else self.before <= day < self.until)


@dataclass(frozen=True)
class Reader:
    """How one data set is read.

    Attributes:
        published: where it is; one part where its splits are made here, else a part a split.
        splits: what there is to ask for.
        read: a row and its place → a draft.
        known_by: whether a row is of this data set.
        holds: whether a row belongs to a split, of those that the part is not.
    """

    published: Published
    splits: tuple[str, ...]
    read: Callable[[Row, str], Draft]
    known_by: Callable[[Row], bool]
    holds: Callable[[Row, str, str, Window], bool] = lambda row, place, split, window: True

    def drafts(self, data: str | None, split: str, window: Window) -> Iterator[Draft]:
        """Yield the problems of a split, as they are read, without those of which no test can be judged."""
        check_split(split, self.splits, f"code on {self.published.title}")
        part = split if split in self.published.files else ALL
        for place, row in read_data("code", self.published, data, part):
            if self.holds(row, place, split, window) and (draft := self.read(row, place)).checks:
                yield draft


def _one_part(title: str, hub: str, split: str = "test") -> Published:
    """Return a data set of which all files, and on the hub one split, are read whatever is asked for."""
    return Published(title, hub, {ALL: ("",)}, {ALL: split})


def _parts(title: str, hub: str) -> Published:
    return Published(title, hub, {"train": ("train",), "test": ("test",)}, {"train": "train", "test": "test"})


def _by_number(row: Row, place: str, split: str, window: Window) -> bool:
    return field(row, "task_id", int, place) in MBPP_SPLITS[split]


def _by_date(row: Row, place: str, split: str, window: Window) -> bool:
    text = str(row.get("contest_date"))
    try:
        return window.holds(date.fromisoformat(text[:10]), split)
    except ValueError:
        raise InputError(f"{place}: contest_date must be a date, not {text!r}") from None


READERS: dict[str, Reader] = {
    "mbppplus": Reader(
        _one_part("MBPP+, MbppPlus.jsonl of EvalPlus", "evalplus/mbppplus"),
        ("test",),
        read_mbpp_plus,
        lambda row: "base_input" in row and str(row.get("task_id")).startswith("Mbpp/"),
    ),
    "humanevalplus": Reader(
        _one_part("HumanEval+, HumanEvalPlus.jsonl of EvalPlus", "evalplus/humanevalplus"),
        ("test",),
        read_humaneval_plus,
        lambda row: "base_input" in row,
    ),
    "mbpp": Reader(
        _one_part("MBPP, mbpp.jsonl", "google-research-datasets/mbpp", "prompt+test+validation+train"),
        tuple(MBPP_SPLITS),
        read_mbpp,
        lambda row: "test_list" in row,
        _by_number,
    ),
    "humaneval": Reader(
        _one_part("HumanEval, HumanEval.jsonl", "openai/openai_humaneval"),
        ("test",),
        read_humaneval,
        lambda row: "entry_point" in row and "test" in row,
    ),
    "livecodebench": Reader(
        _one_part("LiveCodeBench, test*.jsonl of code_generation_lite", "livecodebench/code_generation_lite"),
        ("train", "test", ALL),
        read_livecodebench,
        lambda row: "private_test_cases" in row,
        _by_date,
    ),
    "codecontests": Reader(
        _parts("CodeContests", "deepmind/code_contests"),
        ("train", "test"),
        read_codecontests,
        lambda row: "public_tests" in row or isinstance(row.get("tests"), Mapping),
    ),
    "deepcoder": Reader(
        _parts("DeepCoder-Preview", "agentica-org/DeepCoder-Preview-Dataset"),
        ("train", "test"),
        read_deepcoder,
        lambda row: isinstance(row.get("tests"), str) and "problem" in row,
    ),
}
ANY = _one_part("one of " + ", ".join(READERS), "livecodebench/code_generation_lite")


def reader_of(data: str | None, source: str | None) -> Reader:
    """Return the reader of a data set, by its name or by what the first row looks like."""
    if source is not None:
        if source not in READERS:
            raise InputError(f"source {source!r} is not known: {nearest(source, READERS)}")
        return READERS[source]
    if data is not None and (data == "hub" or data.startswith("hub:")):
        raise InputError(f"data from the hub needs the setting source, one of {', '.join(READERS)}")
    for place, row in read_data("code", ANY, data, ALL):
        for reader in READERS.values():
            if reader.known_by(row):
                return reader
        raise InputError(f"{place}: no source is known whose rows have the fields {', '.join(row)}")
    raise InputError(f"{data}: the data of task code holds no rows")
