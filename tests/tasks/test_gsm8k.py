"""gsm8k: vectors by hand, and attempts to game the reward."""

import json
import time
from dataclasses import replace

import pytest

from vpo.tasks.math.equations import equations
from vpo.tasks.math.gsm8k import Gsm8kTask, _problem
from vpo.tasks.math.numbers import last_number, stated_number

EGGS = {
    "question": "Ducks lay 16 eggs. Janet eats three, bakes with four, and sells the rest for $2 each. How much?",
    "answer": "Janet sells 16 - 3 - 4 = <<16-3-4=9>>9 eggs.\nShe makes 9 * 2 = $<<9*2=18>>18.\n#### 18",
}
TASK = Gsm8kTask()
PROBLEM = _problem(EGGS, "test-0", "here")
GOLD = len(EGGS["answer"])  # 85 characters


def test_results_are_those_of_the_annotations_without_the_answer():
    assert PROBLEM.results == (9,)
    one_step = _problem({"question": "q", "answer": "<<9*2=18>>\n#### 18"}, "p", "here")
    assert one_step.results == (18,)
    plain = _problem({"question": "q", "answer": "16 - 7 = 9 and 9 * 2 = 18\n#### 18"}, "p", "here")
    assert plain.results == (9,)
    assert _problem({"question": "q", "answer": "x = 18\n#### 18"}, "p", "here").results == (18,)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (EGGS["answer"], (1, 1, 1, 1)),
        ("16 - 3 - 4 = 9\n9 * 2 = 18\n#### 18", (1, 1, 1, 1)),  # without annotations
        ("16 - 7 = 9, so 9 * 2 = 18: \\boxed{18}", (1, 1, 1, 1)),  # another way, in a box
        ("18", (1, 0, 0, 1)),  # no work
        ("#### $18.00", (1, 0, 0, 1)),
        ("#### 18 dollars", (1, 0, 0, 1)),
        ("She has 9 left.\n#### 18", (1, 0, 0, 1)),  # a number that no equation gives
        ("16 - 3 - 4 = 10\n10 * 2 = 20\n#### 20", (0, 0, 1 / 2, 0)),
        ("16 - 3 - 4 = 9\n9 * 2 = 19\n#### 19", (0, 1, 1 / 2, 0)),
        ("16 - 3 - 4 = 9\n" * 20 + "#### 19", (0, 1, 1, 0)),  # the same equation counts once
        ("9 * 2 = 18", (1, 0, 1, 1)),  # one line: the number after the last =
        ("nothing\nat all", (0, 0, 0, 0)),
        ("16 - 3 - 4 = 9\n9 * 2 = 18", (1, 1, 1, 1)),  # the final number
        ("", (0, 0, 0, 0)),
        ("#### １８", (0, 0, 0, 0)),  # digits of another script
        ("#### 17\n#### 18\n#### 19", (0, 0, 0, 0)),  # the last one counts
        ("#### 18 or nineteen", (0, 0, 0, 0)),
    ],
)
def test_hand_worked_solutions(answer, expected):
    assert TASK.score(PROBLEM, answer) == pytest.approx(expected)


def test_brevity_falls_with_length():
    padded = "16 - 3 - 4 = 9\n" + "x" * (2 * GOLD - 15 - 7) + "\n#### 18"
    assert len(padded) == 2 * GOLD + 1
    assert TASK.score(PROBLEM, padded) == pytest.approx((1, 1, 1, GOLD / (2 * GOLD + 1)))


def test_listing_results_scores_no_steps():
    listed = "\n".join(f"{n} + 0 = {n}" for n in range(1, 200)) + "\n#### 1"
    problem = _problem({"question": "q", "answer": "<<50+49=99>> <<99*2=198>> <<198-1=197>>\n#### 197"}, "p", "here")
    assert problem.results == (99, 198)
    assert TASK.score(problem, listed) == (0, 0, 1, 0)
    assert TASK.score(problem, "50 + 49 = 99\n#### 197")[1] == 1 / 2


def test_a_wrong_equation_of_the_data_is_expected():
    row = {"question": "q", "answer": "32 - 20 = 300 and <<240+80=320>>320\n#### 300"}
    problem = _problem(row, "p", "here")
    assert [equation.text for equation in equations(problem.solution) if not equation.true] == ["32 - 20 = 300"]
    assert TASK.expected(problem) == (1, 1, 1 / 2, 1)
    assert list(TASK.validate([problem])) == [None]
    assert all(equation.true for equation in equations(PROBLEM.solution))


def test_solutions_that_differ_in_words_are_the_same():
    one, other = "She sells 16 - 7 = 9.\n#### 18", "Left are 16-7=9 eggs, so: \\boxed{18}"
    assert TASK.normal_form(one) == TASK.normal_form(other)
    assert TASK.normal_form("two\nlines") is None
    assert TASK.solved([1, 0, 0, 0])
    assert not TASK.solved([0, 1, 1, 1])


@pytest.mark.parametrize(
    "final",
    [
        *("18", "$18.00", "18.", "18,", "18!", "**18**.", "[18]", "(18)", "+18", "US$18", "¥18", "18 €", "18 USD"),
        *("18 left over", "18 slices of pizza", "18 more apples than Bob", "18 of them", "18 for each", "18 in 3 days"),
        *("18 km/h", "18 m", "18 m²", "18 m^2", "18cm", "18 °C", "18/day", "18-year-old", "18 (apples)", "18 (9 x 2)"),
        *("9 * 2 = 18", "9 * 2 = <<9*2=18>>18", "x = 18 eggs", "9 * 2 → 18", "18</answer>", "18 <|im_end|>"),
        *(r"\(18\)", r"18 \text{ m}^2", r"18^\circ", "18, 18.0", "18, i.e. 18 eggs", "18 eggs, 20 pears"),
        *("18, not 16", r"18 \text{ not } 16", "18 dollars, 2 dollars per egg", "18, since there are 9 and 2 each"),
        *("18 dollars (9 eggs and 2 dollars per egg)", "18 cupcakes (3 boxes, 6 each)", "18 - that is, 9 * 2"),
        *("18, up from 3 to 21", "18 hours, or 0.75 days", "$18 or $18.00", "18 [9 * 2]", "18 (9, 2)"),
    ],
)
def test_a_number_is_read_with_what_stands_around_it(final):
    for text in (f"#### {final}", f"The answer is {final}", rf"\boxed{{{final}}}"):
        assert TASK.solved(TASK.score(PROBLEM, text)), text


@pytest.mark.parametrize(
    "final",
    [
        *("18, 20", "20, 18", "18 and 20", "18 or 20", "18 (or 20)", "18 (20)", "18, or maybe 20", "18 / 20", "18/20"),
        *(
            "18 20",
            "18 to 20",
            "18-20",
            "18–20",
            r"18 \pm 1",
            r"18 \lor 20",
            "18 dollars and 50 cents",
            "(18), (20)",
            "18; 20",
            "18|20",
        ),
        *("18_8", "1 8", r"1\,8", "1$8", "1,8", "18x", "18 x", "18 million", "18th", "18k", "18 squared", "18^1"),
        *("9*2", "9 * 2", r"9 \cdot 2", "36/2", r"\frac{36}{2}", "18/1", "2(4+5)", r"\sqrt{324}", "not 18", ">18"),
        *("18 = 20", "20 = 18, 20", "-18", "−18", ".18", "18 = 9 * 2 = ", "1.8e1", "１８", "eighteen", "0x12"),
    ],
)
def test_two_numbers_and_what_is_not_computed_are_no_answer(final):
    for text in (f"#### {final}", f"The answer is {final}", rf"\boxed{{{final}}}", final):
        assert not TASK.solved(TASK.score(PROBLEM, text)), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The answer is 18.\n\nHuman: And then?\nAssistant: The answer is 8.", "The answer is 18."),
        ("9 * 2 = 18\n#### 18\nQuestion: how many?\n#### 8", "9 * 2 = 18\n#### 18"),
        ("#### 8\n**User:** no\n#### 18", "#### 8"),  # though the second is better
        ("Question: how many?\n9 * 2 = 18\n#### 18", "Question: how many?\n9 * 2 = 18\n#### 18"),
        ("9 eggs.\nQuestion: how many?\n#### 18", "9 eggs.\nQuestion: how many?\n#### 18"),  # no answer before
    ],
)
def test_an_answer_ends_where_another_turn_begins(text, expected):
    reading = TASK.read(text, 1)
    assert (reading.answers, reading.parts) == ([expected], [(len(text), 0)])


def test_a_fraction_in_lowest_terms_is_a_number():
    half = replace(PROBLEM, answer="0.5")
    assert TASK.solved(TASK.score(half, "#### 1/2"))
    assert TASK.solved(TASK.score(half, r"\boxed{\frac{1}{2}}"))
    assert not TASK.solved(TASK.score(half, "#### 2/4"))
    for final in ("50% (0.5)", "0.5 or 50%", r"\boxed{50\,\%}", "1/2 or 0.5"):
        assert TASK.solved(TASK.score(half, f"#### {final}")), final
    mixed = replace(PROBLEM, answer="13.25")
    for final in (r"5\frac{3}{4}", r"5 \frac{3}{4}", r"5\!\frac{3}{4}"):
        assert stated_number(final) is None
        assert not TASK.solved(TASK.score(mixed, rf"\boxed{{{final}}}"))


@pytest.mark.parametrize(
    "piece", ["1 ", "1,", "(1", "1=", "\\frac{", "<a", "x", "-", " or 1", "$", "1/", "\ud800", "\0", "~"]
)
def test_numbers_are_read_in_linear_time(piece):
    begin = time.process_time()
    for text in (piece * (200_000 // len(piece)), f"#### {piece * 100_000}", piece * (20_000 // len(piece))):
        TASK.score(PROBLEM, text)
        stated_number(text)
        last_number(text)
    assert time.process_time() - begin < 3


def test_rows_are_checked(tmp_path):
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps(EGGS) + "\n")
    (problem,) = Gsm8kTask(data=str(path)).problems("test")
    assert problem == PROBLEM
    assert "#### 12" in TASK.ask(problem)[0]["content"]
    path.write_text(json.dumps({"question": "q", "answer": "18"}) + "\n")
    with pytest.raises(ValueError, match=r"test.jsonl:1: answer must end in #### and a number, not '18'"):
        Gsm8kTask(data=str(path)).problems("test")
    with pytest.raises(ValueError, match="no split 'dev' in gsm8k"):
        Gsm8kTask(data=str(path)).problems("dev")


# Steps and partial scores


def test_steps_are_lines_and_sentences():
    text = "She sells 16 - 7 = 9 eggs. That is 9 * 2.00 = 18 dollars.\n\n#### 18"
    ends = ["She sells 16 - 7 = 9 eggs.", "She sells 16 - 7 = 9 eggs. That is 9 * 2.00 = 18 dollars.\n\n"]
    assert [text[:end] for end in TASK.steps(PROBLEM, text)] == ends


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("", (1, 1, 1, 1)),
        ("16 - 3 - 4 = 9\n", (1, 1, 1, 1)),
        ("16 - 3 - 4 = 10\n", (1, 1, 1 / 2, 1)),  # one equation is wrong, the next may be right
        ("16 - 3 - 4 = 10\n10 * 2 = 30\n", (1, 1, 1 / 3, 1)),
        ("".join(f"2 * {n} = {2 * n}\n" for n in range(5, 11)), (1, 1, 1, 1)),  # six count, and the answer
        ("x" * 2 * GOLD, (1, 1, 1, 1 / 2)),
    ],
)
def test_partial_scores_by_hand(prefix, expected):
    assert TASK.score_partial(PROBLEM, prefix) == pytest.approx(expected)


def test_a_partial_score_takes_what_is_missing_as_right():
    solution = EGGS["answer"]
    for end in [0, *TASK.steps(PROBLEM, solution), len(solution)]:
        assert TASK.score_partial(PROBLEM, solution[:end]) == TASK.score(PROBLEM, solution) == (1, 1, 1, 1)
    two_steps = _problem({"question": "q", "answer": "<<2*3=6>>\n<<6*5=30>>\n<<30+1=31>>\n#### 31"}, "p", "here")
    padding = "".join(f"2 * {n} = {2 * n}\n" for n in range(20, 28))  # 2 * 2 + 4 equations, no result among them
    assert TASK.score_partial(two_steps, padding)[1] == 1 / 2  # the answer itself may still be one
