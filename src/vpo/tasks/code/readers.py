"""The data sets of the task: how their rows are recognised and read, and which rows a split has."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from vpo.tasks.code.assert_rows import read_humaneval, read_mbpp
from vpo.tasks.code.contests import read_codecontests, read_deepcoder, read_livecodebench
from vpo.tasks.code.evalplus import read_humaneval_plus, read_mbpp_plus
from vpo.tasks.code.leetcode import is_leetcode, read_leetcode
from vpo.tasks.code.problem import Draft
from vpo.tasks.data import Published, check_split, field, read_data
from vpo.util.errors import InputError, nearest

Row = Mapping[str, Any]
ALL = "all"
MBPP_SPLITS = {"train": range(601, 975), "test": range(11, 511), ALL: range(1, 975)}


@dataclass(frozen=True)
class DateWindow:
    """Splits by date: train is before `before`, test from there to `until`, exclusive."""

    before: date
    until: date

    @classmethod
    def parse(cls, before: str, until: str) -> "DateWindow":
        """Two ISO dates."""
        try:
            window = cls(date.fromisoformat(before), date.fromisoformat(until))
        except ValueError:
            raise InputError(f"before and until must be dates such as 2025-02-01, not {before!r}, {until!r}") from None
        if window.before >= window.until:
            raise InputError(f"until must be later than before, {before}, not {until}")
        return window

    def contains(self, day: date, split: str) -> bool:
        """Whether a day belongs to a split."""
        return split == ALL or (day < self.before if split == "train" else self.before <= day < self.until)


@dataclass(frozen=True)
class Reader:
    """How one data set is read.

    Attributes:
        published: where it is: one part, "all", where splits are made here, else one part a split.
        splits: the names of its splits.
        read: makes a draft of a row and its location.
        recognises: whether a row is of this data set.
        contains: whether a row of the part "all" belongs to a split.
    """

    published: Published
    splits: tuple[str, ...]
    read: Callable[[Row, str], Draft]
    recognises: Callable[[Row], bool]
    contains: Callable[[Row, str, str, DateWindow], bool] = lambda row, where, split, window: True

    def drafts(self, data: str | None, split: str, window: DateWindow) -> Iterator[Draft]:
        """Yield the problems of a split as they are read, without those whose tests are all excluded."""
        check_split(split, self.splits, f"code on {self.published.title}")
        part = split if split in self.published.files else ALL
        for where, row in read_data("code", self.published, data, part):
            if self.contains(row, where, split, window) and (draft := self.read(row, where)).checks:
                yield draft


def _one_part(title: str, hub: str, split: str = "test") -> Published:
    """A data set of which all files, and one split on the hub, are read for every split."""
    return Published(title, hub, {ALL: ("",)}, {ALL: split})


def _parts(title: str, hub: str) -> Published:
    return Published(title, hub, {"train": ("train",), "test": ("test",)}, {"train": "train", "test": "test"})


def _by_number(row: Row, where: str, split: str, window: DateWindow) -> bool:
    return field(row, "task_id", int, where) in MBPP_SPLITS[split]


def _by_date(row: Row, where: str, split: str, window: DateWindow) -> bool:
    text = str(row.get("contest_date"))
    try:
        return window.contains(date.fromisoformat(text[:10]), split)
    except ValueError:
        raise InputError(f"{where}: contest_date must be a date, not {text!r}") from None


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
    "leetcode": Reader(
        _parts("LeetCodeDataset", "newfacade/LeetCodeDataset"), ("train", "test"), read_leetcode, is_leetcode
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


def find_reader(data: str | None, source: str | None) -> Reader:
    """The reader of a data set, by its name or by the fields of the first row."""
    if source is not None:
        if source not in READERS:
            raise InputError(f"source {source!r} is not known: {nearest(source, READERS)}")
        return READERS[source]
    if data is not None and (data == "hub" or data.startswith("hub:")):
        raise InputError(f"data from the hub needs the setting source, one of {', '.join(READERS)}")
    for where, row in read_data("code", ANY, data, ALL):
        for reader in READERS.values():
            if reader.recognises(row):
                return reader
        raise InputError(
            f"{where}: no known source has rows with the fields {', '.join(row)}; the sources are {', '.join(READERS)}"
        )
    raise InputError(f"{data}: the data of task code has no rows")


def names_in(data: str) -> set[str]:
    """The names of all problems of a data set, whatever their split."""
    reader = find_reader(data, None)
    return {reader.read(row, where).id for where, row in read_data("code", ANY, data, ALL)}
