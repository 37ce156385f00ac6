import json
import re
from random import Random

import pytest

from tests.tasks.rows import eureqa_row
from vpo.tasks.eureqa import LONGEST, EureqaProblem, EureqaTask, parse_names

GOLD = "A: Ada Example\nB: The Long Film\nC: Sampleton\nD: River Test\nE: Land 0"


@pytest.fixture
def task(tmp_path):
    for name, rows in (("questions_normal_5.jsonl", 8), ("questions_hard_5.jsonl", 13)):
        lines = (json.dumps(eureqa_row(number)) + "\n" for number in range(rows))
        (tmp_path / name).write_text("".join(lines))
    return EureqaTask(data=str(tmp_path))


@pytest.fixture
def problem(task):
    return task._part("normal")[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GOLD, (1, 1, 1, 1, 1)),
        ("A: ada_example\nB: a long film\nc: SAMPLETON!\nEntity D: the River Test\nentity_E = land_0", (1, 1, 1, 1, 1)),
        ("E: Land 0\nA: Ada Example", (1, 0, 0, 0, 1)),
        ("A: Ada Example, Bob\nB: x", (0, 0, 0, 0, 0)),  # a list of guesses is no name
        ("A: Bob\nA: Ada Example", (0, 0, 0, 0, 0)),  # the first name of a letter counts
        ("A:\nB: Long Film", (0, 1, 0, 0, 0)),
        ("Ada Example", (0, 0, 0, 0, 0)),
        ("", (0, 0, 0, 0, 0)),
        ("A: the", (0, 0, 0, 0, 0)),
        ("A: ?\nA: Ada Example", (1, 0, 0, 0, 0)),
        ("**A**: Ada Example\n**B:** The Long Film\n**C: Sampleton**\n__D__: River Test\n`E`: Land 0", (1, 1, 1, 1, 1)),
        ("- A: Ada Example\n* B: The Long Film\n+ C: Sampleton\n• D: River Test\n-E: Land 0", (1, 1, 1, 1, 1)),
        ("1. A: Ada Example\n2) B: Long Film\n 3. **Entity C**: Sampleton\n4. *D*= River Test", (1, 1, 1, 1, 0)),
        ("- **A** : **Ada Example**\r\n- **E** : `Land 0`\r\n", (1, 0, 0, 0, 1)),
        ("1234. A: Ada Example\nx A: Ada Example\n- x\nA: Bob", (0, 0, 0, 0, 0)),
        ("F: Atlantic Ocean", (0, 0, 0, 0, 0)),
        ("A: " + "Ada Example " * 10_000, (0, 0, 0, 0, 0)),
    ],
)
def test_hand_worked_answers(task, problem, text, expected):
    assert task.score(problem, text) == expected


def named(*entities):
    return EureqaProblem("p", "", tuple("ABCDE"[: len(entities)]), entities)


@pytest.mark.parametrize("gold", ["The The", "The", "A", "!!!", "...", "Æ & ?", "+/-", "An", "?"])
def test_gold_names_that_normalise_to_nothing_can_be_right(gold):
    task, problem = EureqaTask(), named(gold, "Oslo")
    assert task.score(problem, task.gold(problem)) == (1, 1, 1, 1, 1)
    assert task.score(problem, f"- **A**: {gold.upper()}\nB: Oslo") == (1, 1, 1, 1, 1)
    assert task.score(problem, f"A: {gold}")[:2] == (1, 0)
    assert task.score(problem, "A: Oslo\nB: Oslo")[:2] == (0, 1)
    for other in {"The The", "The", "A", "!!!", "..."} - {gold}:
        assert task.score(problem, f"A: {other}\nB: Oslo")[:2] == (0, 1)
        assert task.normal_form(f"A: {other}") != task.normal_form(f"A: {gold}")


def test_an_answer_that_names_nothing_scores_0_everywhere():
    for text in ("A: ?", "A: the\nB: ...", "nothing", ""):
        assert EureqaTask().score(named("Oslo", "Rome"), text) == (0, 0, 0, 0, 0)


def names_slowly(answer):
    """The rules in words, line by line: a list marker, a letter, a colon, a name."""
    marks = " \t*_`"
    first, last = {}, {}
    for line in answer.split("\n"):
        text = line.lstrip(marks)
        digits = len(text) - len(text.lstrip("0123456789"))
        if text[:1] in ("-", "+", "•"):
            text = text[1:]
        elif 1 <= digits <= 3 and text[digits : digits + 1] in (".", ")"):
            text = text[digits + 1 :]
        text = text.lstrip(marks)
        text = text[7:] if text.lower().startswith(("entity ", "entity_")) else text
        letter, text = text[:1].upper(), text[1:].lstrip(marks)
        if letter and letter in "ABCDE" and text[:1] in (":", "="):
            words = re.sub(r"[!?.:*`]", "", text[1:].lower().replace("_", " ")).split()
            kept = " ".join(word for word in words if word not in ("a", "an", "the"))
            if kept:
                first.setdefault(letter, kept)
            elif text[1:].strip(f"{marks}\r"):
                last.setdefault(letter, " ".join(words) or text[1:].strip(f"{marks}\r"))
    return last | first


def test_the_parser_agrees_with_the_rules_in_words():
    random = Random(0)
    before = ["", "", "- ", "* ", "+", "• ", "1. ", "12) ", "1234. ", "x", "**", "__", "`", "  ", "-- "]
    names = ["Oslo", "The The", "the", "!!!", "New York", "new_york.", "", "**Rome**", "A: B"]
    for _ in range(5000):
        lines = [
            "".join(
                (
                    random.choice(before),
                    random.choice(["", "**", "*", "`"]),
                    random.choice(["", "", "Entity ", "entity_", "entity"]),
                    random.choice("ABCDEabF"),
                    random.choice(["", "**", " "]),
                    random.choice([":", "=", ": ", " : ", ":** ", "", "-"]),
                    random.choice(names),
                    random.choice(["", "**", " ", "\r"]),
                )
            )
            for _ in range(random.randint(0, 4))
        ]
        answer = "\n".join(lines)
        assert parse_names(answer) == names_slowly(answer), answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((f"A{mark} Ada\nB{mark} Bob", {"A": "ada", "B": "bob"}) for mark in (")", ".", " -", " –", " —")),
        ("- **A)** Ada\n- **B.** Bob", {"A": "ada", "B": "bob"}),
        ("A: Ada\nB) Bob", {"A": "ada"}),  # one way of writing a list
        ("A-b\nA.b\nA)b\nA -b\nA- b", {}),
        ("a) Ada", {"A": "ada"}),
        ("Ada) x\nF) x", {}),
    ],
)
def test_letters_with_brackets_dots_and_dashes(text, expected):
    assert parse_names(text) == expected


def test_hostile_lines_are_parsed_in_linear_time():
    for unit in ("A: x\n", "A:\n", " ", "*", "- ", "1. ", "entity ", "\n", "A", "_ "):
        hostile = unit * (LONGEST // len(unit))
        assert set(parse_names(hostile)) <= {"A"}
    assert parse_names("A: x\n" * LONGEST) == {}  # longer than is read


def test_the_last_entity_is_shown_and_not_requested(task, problem):
    content = task.ask(problem, 2)[-1]["content"]
    assert "E: the name of Country E" in content
    assert "F:" not in content
    assert "Ada" not in content
    assert len(problem.entities) == 5


def test_splits_are_as_published(task):
    """Train: all of normal_5 and half of hard_5, rounded down; test: the other half."""
    train, test = task.problems("train"), task.problems("test")
    assert len(train) == 8 + 6
    assert len(test) == 7
    assert not {problem.id for problem in train} & {problem.id for problem in test}
    # The order of datasets.Dataset.shuffle(seed=0) for 13 rows.
    assert [problem.id for problem in test] == [f"hard-{index}" for index in HARD_ORDER[6:]]


HARD_ORDER = [10, 2, 7, 4, 5, 12, 0, 3, 6, 9, 11, 8, 1]


def test_the_shuffle_is_that_of_datasets():
    datasets = pytest.importorskip("datasets")
    shuffled = datasets.Dataset.from_dict({"n": list(range(13))}).shuffle(seed=0)
    assert shuffled["n"][:] == HARD_ORDER


def test_shorter_chains_have_ones_for_the_entities_they_lack(tmp_path):
    row = eureqa_row()
    short = {**row, "entity_masks": row["entity_masks"][:4], "entities": row["entities"][:4]}
    (tmp_path / "hard_5.jsonl").write_text(json.dumps(short) + "\n")
    (problem,) = EureqaTask(data=str(tmp_path / "hard_5.jsonl"))._part("hard")
    task = EureqaTask()
    assert task.score(problem, "A: Ada Example\nB: x\nC: Sampleton") == (1, 0, 1, 1, 1)
    assert task.score(problem, "nothing") == (0, 0, 0, 0, 0)


def test_bad_rows_are_named(tmp_path):
    (tmp_path / "hard_5.jsonl").write_text(json.dumps({**eureqa_row(), "entities": ["one"]}) + "\n")
    with pytest.raises(ValueError, match=r"hard_5.jsonl:1: entity_masks and entities must both have 2 to 6 texts"):
        EureqaTask(data=str(tmp_path / "hard_5.jsonl")).problems()
    (tmp_path / "hard_5.jsonl").write_text(json.dumps({**eureqa_row(), "entities": [None] * 6}) + "\n")
    with pytest.raises(ValueError, match=r"hard_5.jsonl:1: item 0: entities must be str, not NoneType"):
        EureqaTask(data=str(tmp_path / "hard_5.jsonl")).problems()
    with pytest.raises(ValueError, match=r"hard_5.jsonl: the train split of eureqa has two files: pass their folder"):
        EureqaTask(data=str(tmp_path / "hard_5.jsonl")).problems("train")
    with pytest.raises(ValueError, match="task eureqa needs data"):
        EureqaTask().problems()
