"""The families of the page of searches: who descended from whom, for as many cases as a page can hold."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from vpo.core.diversity import is_nondominated
from vpo.report.embedding import script_json
from vpo.rewards.prompts import PromptTask
from vpo.search.result import SearchResult, families_of
from vpo.tasks import Task, find, get
from vpo.util.errors import InputError

Member: TypeAlias = dict[str, Any]

CASES = 12  # shown at most
BYTES = 1_500_000  # of all families together
FAMILY = 60_000  # bytes that a family should have at least: with many searches there are fewer cases
MEMBER = 200  # bytes of a candidate without its texts, about
MEMBERS = 1_500  # of a family, at most
KEY_TEXT = 20_000  # characters of an answer that led to the best, or was on a front
TEXTS = (20_000, 6_000, 2_000, 600, 200, 60)  # characters of another; as many as there is space for
COLUMNS = ("number", "iteration", "operator", "parent", "second", "position", "value", "scores", "solved")


def search_families(results: Sequence[SearchResult], folders: Sequence[Path]) -> dict[str, Any]:
    """The cases that are shown, each with its candidates in each search, and a note on what is left out.

    Args:
        results: of the searches.
        folders: of each search, or of the first of its seeds.
    """
    families = [
        families_of(folder, int(each.spent["iterations"].max())) for each, folder in zip(results, folders, strict=True)
    ]
    most = max(1, min(CASES, BYTES // (FAMILY * len(results))))
    names = _ranked(results[0].distinct, families)[:most]
    share = BYTES // max(1, len(names) * len(results))
    problems = _Problems(results[0])
    shown: list[dict[str, Any]] = []
    size = 0
    for case in names:
        drawn = problems.describe(case)
        runs = [_family(each[case], drawn, share) if case in each else None for each in families]
        for each in runs:
            size += len(script_json({"": each}))
        if shown and size > BYTES:
            break
        shown.append({"case": case, **{name: drawn[name] for name in ("objectives", "svg")}, "runs": runs})
    return {"cases": shown, "note": _note(results, shown)}


def _ranked(cases: Iterable[str], families: Sequence[Mapping[str, Sequence[Member]]]) -> list[str]:
    """The cases by the longest line of descent, those that were solved and those that were not in turn."""
    lines = {
        case: [[each for each in family.get(case, []) if each["ancestor"]] for family in families] for case in cases
    }
    lengths = {case: max(map(len, some)) for case, some in lines.items()}
    ranked = sorted((case for case in lengths if lengths[case]), key=lambda case: -lengths[case])
    is_solved = {case: any(each["solved"] for line in lines[case] for each in line) for case in ranked}
    pairs = zip_longest(*([case for case in ranked if is_solved[case] == kind] for kind in (True, False)))
    return [case for pair in pairs for case in pair if case is not None]


def _note(results: Sequence[SearchResult], shown: Sequence[Any]) -> str:
    """What is left out, in a sentence or two."""
    count = len(results[0].distinct)
    parts = []
    if len(shown) < count:
        parts.append(
            f"{len(shown)} of {count} problems with a goal are here: those with the longest lines of descent, solved "
            "and not solved in turn."
        )
    if any(each.seeds > 1 for each in results):
        parts.append("Of several seeds, the first.")
    families = [family for each in shown for family in each["runs"] if family]
    if any(family["left_out"] for family in families):
        parts.append("Of long searches candidates of low value are left out.")
    if any(family["cut"] for family in families):
        parts.append("Long answers are cut off.")
    return " ".join([*parts, "Everything is in candidates.jsonl."] if parts else parts)


class _Problems:
    """What the task knows of the problem of a case: names of objectives, and a picture."""

    def __init__(self, result: SearchResult) -> None:
        settings = result.settings
        self.problem_of = dict(zip(result.cases, result.problems, strict=True))
        self.names: Sequence[str] = settings.get("scoring", {}).get("objectives", ())
        self.task: Task[Any] | None = None
        self.problems: dict[str, Any] = {}
        try:
            if issubclass(find(settings["task"]), PromptTask):  # to make it would load the models of its rewards
                return
            self.task = get(settings["task"], **settings["task_settings"])
            problems = self.task.problems(settings["split"], count=settings["problems"])
            self.problems = {problem.id: problem for problem in problems}
        except InputError:  # its data is no longer there, or the task is no longer installed
            self.task = None

    def describe(self, case: str) -> dict[str, Any]:
        """The objectives of a case, its picture, and the task and the problem that can draw an answer over it."""
        problem = self.problems.get(self.problem_of[case])
        if self.task is None or problem is None:
            return {"objectives": list(self.names), "svg": None, "task": None, "problem": None}
        return {
            "objectives": list(self.task.names_of(problem)),
            "svg": self.task.scene(problem),
            "task": self.task,
            "problem": problem,
        }


def _family(members: Sequence[Member], drawn: Mapping[str, Any], share: int) -> dict[str, Any]:
    """The candidates of a case as columns, with the longest texts that fit into a share of the page."""
    key = {each["number"] for each in members if each["ancestor"]} | _ever_on_front(members)
    by_worth = sorted(
        members,
        key=lambda each: (not each["ancestor"], each["number"] not in key, each["scores"] is None, -each["value"]),
    )
    kept = sorted(by_worth[: min(MEMBERS, share // MEMBER)], key=lambda each: int(each["number"]))
    ends = [each for each in kept if each["ancestor"]]
    for limit in TEXTS:
        texts = _Texts()
        columns = _columns(kept, key, texts, limit)
        family = {
            "end": ends[-1]["number"] if ends else kept[-1]["number"],
            "line": len(ends),
            "left_out": len(members) - len(kept),
            "cut": texts.cut,
            "members": columns,
            "lines": list(texts.lines),
            "texts": list(texts.texts.values()),
        }
        if drawn["svg"]:
            task, problem = drawn["task"], drawn["problem"]
            family["paths"] = {
                index: task.trace(problem, each["answer"])
                for each, index in zip(kept, columns["answer"], strict=True)
                if index is not None
            }
        if len(script_json(family)) <= share:
            break
    return family


def _columns(kept: Sequence[Member], key: set[int], texts: "_Texts", limit: int) -> dict[str, list[Any]]:
    """The fields of candidates; texts by their index."""
    columns: dict[str, list[Any]] = {name: [each[name] for each in kept] for name in COLUMNS}
    columns["value"] = [None if each["scores"] is None else _rounded(each["value"]) for each in kept]
    columns["scores"] = [each["scores"] and [_rounded(score) for score in each["scores"]] for each in kept]
    for name in ("answer", "failure", "feedback"):
        columns[name] = [texts.index(each[name], KEY_TEXT if each["number"] in key else limit) for each in kept]
    return columns


class _Texts:
    """Texts by index, each as the indices of its lines: a program that differs in a line from another costs a line."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.texts: dict[tuple[str, int], list[int]] = {}
        self.indices: dict[tuple[str, int], int] = {}
        self.cut = 0  # how many were too long

    def index(self, text: str | None, limit: int) -> int | None:
        """The index of a text of at most so many characters."""
        if text is None:
            return None
        name = (text, min(limit, len(text)))
        if name not in self.indices:
            shown = text
            if len(text) > limit:
                self.cut += 1
                shown = f"{text[:limit]}\n… {len(text) - limit:,} more characters"
            self.texts[name] = [self.lines.setdefault(line, len(self.lines)) for line in shown.split("\n")]
            self.indices[name] = len(self.indices)
        return self.indices[name]


def _ever_on_front(members: Sequence[Member]) -> set[int]:
    """The numbers of the candidates that no earlier one dominates: those that were on a front when they were new."""
    front: list[Member] = []
    ever: set[int] = set()
    for member in members:
        if member["scores"] is None:
            continue
        kept = is_nondominated(np.asarray([each["scores"] for each in [*front, member]], dtype=np.float64))
        if kept[-1]:
            front = [each for each, keep in zip([*front, member], kept, strict=True) if keep]
            ever.add(member["number"])
    return ever


def _rounded(number: float) -> float:
    """With the digits that a reader sees."""
    return float(f"{number:.7g}")
