"""musique: questions of two to four hops over twenty paragraphs (arXiv 2108.00573): the hops, and the answer."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from vpo.tasks.data import Published, check_split, field, items, read_data, shuffled, take, unique
from vpo.tasks.forms import ONE_SHOT, Example, Form
from vpo.tasks.reading import Native, Reading, read_natives, read_sections, read_whole
from vpo.tasks.task import Message, Objective, Task, Vector
from vpo.tasks.text import between, normalise, word_f1
from vpo.tasks.thoughts import blank_thoughts, prompted_end, section_pattern, split_thoughts
from vpo.util.errors import InputError

HOPS = 4
CITATIONS = 4  # the number of different citations that count
PER_HOPS = 100  # questions of each number of hops in the test split: 300 in all
PUBLISHED = Published(
    title="MuSiQue-Ans, musique_ans_v1.0_train.jsonl and musique_ans_v1.0_dev.jsonl",
    hub="dgslibisey/MuSiQue",
    files={"train": ("musique_ans_v1.0_train", "train"), "dev": ("musique_ans_v1.0_dev", "dev")},
    hub_splits={"train": "train", "dev": "validation"},
)
SECTIONS = section_pattern("support|answer")
SUPPORTED = re.compile(r"</support>\s*<answer>[^<]*</answer>")

CITE = "Cite the paragraphs that the answer rests on by their numbers, at most four of them, and answer in a few words."
CURIE = Example(
    "In which country was the discoverer of polonium born?",
    (
        "<support>3, 12</support>\n<answer>Poland</answer>",
        "<support>3, 8</support>\n<answer>the Russian Empire</answer>",
        "<support>12, 17</support>\n<answer>Congress Poland</answer>",
    ),
)


@dataclass(frozen=True)
class MusiqueProblem:
    """A question with its paragraphs.

    Attributes:
        id: as in the data set; it begins with the number of hops.
        question: the question.
        paragraphs: (title, text) of each, numbered from 1 in the prompt.
        hops: the number of the gold paragraph of each hop, from 1.
        gold: the answer and its aliases.
    """

    id: str
    question: str
    paragraphs: tuple[tuple[str, str], ...]
    hops: tuple[int, ...]
    gold: tuple[str, ...]


class MusiqueTask(Task[MusiqueProblem]):
    """Questions over twenty numbered paragraphs; an answer cites paragraphs and answers in a few words.

    hop_i is 1 if the gold paragraph of hop i is among the first four different citations; hops that a question does
    not have are 1. answer_f1 is SQuAD's word F1, the best over the aliases. Without an answer all are 0.
    """

    name: ClassVar[str] = "musique"
    summary: ClassVar[str] = "multi-hop questions over twenty paragraphs: cite the hops and answer"
    objectives: ClassVar[tuple[Objective, ...]] = (
        *(Objective(f"hop_{hop}", f"the gold paragraph of hop {hop} is cited") for hop in range(1, HOPS + 1)),
        Objective("answer_f1", "word F1 with the gold answer or an alias"),
    )
    weights: ClassVar[Vector] = (1 / 7, 1 / 7, 1 / 7, 1 / 7, 3 / 7)
    wraps_single: ClassVar[bool] = False
    single: ClassVar[str] = "Use this format:\n<support>3, 12</support>\n<answer>Poland</answer>"
    form: Form = ONE_SHOT
    example: ClassVar[Example | None] = CURIE

    def __init__(self, *, data: str | None = None) -> None:
        """Make the task.

        Args:
            data: file or folder of MuSiQue-Ans, or "hub".
        """
        self.data = data

    def problems(self, split: str = "test", *, count: int | None = None) -> Sequence[MusiqueProblem]:
        """Questions of "train", of "dev", or of "test": 100 of dev for each of two, three and four hops."""
        check_split(split, ("train", "dev", "test"), self.name)
        part = "train" if split == "train" else "dev"
        rows = read_data(self.name, PUBLISHED, self.data, part)
        problems = unique([_problem(row, where) for where, row in rows], self.name)
        return take(_stratified(problems) if split == "test" else problems, count)

    def question(self, problem: MusiqueProblem) -> list[Message]:
        """The paragraphs, the question, and what an answer has."""
        paragraphs = "\n\n".join(
            f"[{number}] {title}\n{text}" for number, (title, text) in enumerate(problem.paragraphs, start=1)
        )
        return [{"role": "user", "content": f"{paragraphs}\n\nQuestion: {problem.question}\n\n{CITE}"}]

    def read(self, completion: str, answers: int) -> Reading:
        """The answers; <answer> is a tag of the task's own form, so a single one is everything but the thoughts."""
        if answers == 1:
            text = split_thoughts(completion, SECTIONS)[1]
            strict = bool(SUPPORTED.search(text))
            return read_whole(text if "<answer>" in text else None, len(completion), strict=strict)
        natives = self.native(blank_thoughts(completion, SECTIONS), answers)
        tagged = self.sections(completion, answers)
        if tagged and (not natives or tagged[-1].end > prompted_end(completion, SECTIONS)):
            return read_sections(tagged, len(completion), answers)
        return read_natives(natives, len(completion), answers)

    def native(self, text: str, answers: int) -> Sequence[Native]:
        """Citations and answer, up to each <answer> that is closed."""
        ends = [0, *(match.end() for match in SECTIONS.finditer(text) if match["name"] == "answer")]
        return [Native(start, end, text[start:end].strip()) for start, end in pairwise(ends)]

    def score(self, problem: MusiqueProblem, answer: str) -> Vector:
        """1 or 0 per hop, and the word F1 of the answer."""
        citations, text = parse_answer(answer)
        if not normalise(text):
            return (0.0,) * len(self.objectives)
        counted = set(citations[:CITATIONS])
        hops = [float(hop in counted) for hop in problem.hops]
        beyond = [1.0] * (HOPS - len(hops))
        return (*hops, *beyond, max(word_f1(text, gold) for gold in problem.gold))

    def normal_form(self, answer: str) -> Hashable:
        """The citations that count, and the normalised answer."""
        citations, text = parse_answer(answer)
        return frozenset(citations[:CITATIONS]), normalise(text)

    def gold(self, problem: MusiqueProblem) -> str:
        """The gold citations and answer."""
        return f"<support>{', '.join(map(str, problem.hops))}</support>\n<answer>{problem.gold[0]}</answer>"


def parse_answer(answer: str) -> tuple[list[int], str]:
    """The different citations, in order, and the text of an answer; each empty where its tags are missing.

    The citations are those before the end of the answer's text; without any, those after it.
    """
    _, answer = split_thoughts(answer, SECTIONS, prompted=False)
    before, _, after = answer.partition("</answer>")
    sections = SECTIONS.finditer(before if "<support>" in before else after)
    support = " ".join(match["text"] for match in sections if match["name"] == "support")
    numbers = [int(number) for number in re.findall(r"[0-9]+", support) if len(number) <= 4]
    text = between(answer, "<answer>", "</answer>")
    if text is None:  # without its closing tag, it ends with the text
        text = answer.rpartition("<answer>")[2] if "<answer>" in answer else ""
    return list(dict.fromkeys(numbers)), text


def _problem(row: Mapping[str, Any], where: str) -> MusiqueProblem:
    numbers: dict[Any, int] = {}
    paragraphs = []
    for number, paragraph in enumerate(items(row, "paragraphs", dict, where), start=1):
        which = f"{where}: paragraph {number}"
        numbers[field(paragraph, "idx", int, which)] = number
        paragraphs.append((field(paragraph, "title", str, which), field(paragraph, "paragraph_text", str, which)))
    hops = []
    for hop in items(row, "question_decomposition", dict, where):
        support = hop.get("paragraph_support_idx")
        if support not in numbers:
            raise InputError(f"{where}: paragraph_support_idx must name a paragraph, not {support}")
        hops.append(numbers[support])
    if not 1 <= len(hops) <= HOPS:
        raise InputError(f"{where}: question_decomposition must have 1 to {HOPS} hops, not {len(hops)}")
    aliases = items(row, "answer_aliases", str, where) if row.get("answer_aliases") is not None else []
    return MusiqueProblem(
        id=field(row, "id", str, where),
        question=field(row, "question", str, where),
        paragraphs=tuple(paragraphs),
        hops=tuple(hops),
        gold=(field(row, "answer", str, where), *aliases),
    )


def _stratified(problems: Sequence[MusiqueProblem]) -> list[MusiqueProblem]:
    """Up to 100 questions of each number of hops, sampled with a fixed seed, in the order of the data."""
    chosen: set[str] = set()
    for hops in (2, 3, 4):
        bucket = [problem.id for problem in problems if len(problem.hops) == hops]
        chosen.update(shuffled(bucket, seed=42)[:PER_HOPS])
    return [problem for problem in problems if problem.id in chosen]
