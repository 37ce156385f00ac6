import pytest

from vpo.tasks.answers import duplicates, parse, parts, read_plain, thoughts, write
from vpo.tasks.forms import instruction

# The instruction


@pytest.mark.parametrize("answers", [2, 3, 4, 5, 8, 40])
def test_the_instruction_names_its_own_numbers(answers):
    text = instruction(answers)
    assert f"Give {answers} different answers, numbered 1 to {answers}" in text
    for number in (1, 2, answers):
        assert f"<answer_{number}>" in text
        assert f"</answer_{number}>" in text
    assert f"<answer_{answers + 1}>" not in text
    assert "once, before the first answer" in text


def test_a_single_answer_has_plain_tags():
    assert "<answer>" in instruction(1)
    assert "answer_1" not in instruction(1)


@pytest.mark.parametrize("answers", [0, -3])
def test_fewer_than_one_answer_is_refused(answers):
    for call in (lambda: instruction(answers), lambda: parse("", answers)):
        with pytest.raises(ValueError, match=f"answers must be 1 or more, not {answers}"):
            call()


@pytest.mark.parametrize("answers", [1, 2, 3, 7])
def test_parse_is_the_inverse_of_write(answers):
    texts = [f"answer {number}\nin two lines" for number in range(answers)]
    assert parse(write(texts), answers) == texts


# The rules: a name, a completion, and the three answers parsed from it

CASES = [
    ("all there", "<answer_1>a</answer_1> <answer_2>b</answer_2>\n<answer_3>c</answer_3>", ["a", "b", "c"]),
    ("white space", "<answer_1>\n a b \n</answer_1>", ["a b", None, None]),
    ("no tags", "a, b and c", [None, None, None]),
    ("nothing", "", [None, None, None]),
    ("single tags", "<answer>a</answer>", [None, None, None]),
    ("empty", "<answer_1></answer_1><answer_2> </answer_2>", ["", "", None]),
    ("out of order", "<answer_3>c</answer_3><answer_1>a</answer_1>", ["a", None, "c"]),
    ("repeated: the first", "<answer_1>a</answer_1><answer_1>b</answer_1>", ["a", None, None]),
    ("repeated: the first closed", "<answer_1>a<answer_1>b</answer_1>", ["b", None, None]),
    ("too many", "<answer_1>a</answer_1><answer_4>d</answer_4><answer_2>b</answer_2>", ["a", "b", None]),
    ("number 0", "<answer_0>z</answer_0><answer_1>a</answer_1>", ["a", None, None]),
    ("number 01", "<answer_01>z</answer_01>", [None, None, None]),
    ("truncated last", "<answer_1>a</answer_1><answer_2>b</answer_2><answer_3>c and th", ["a", "b", "c and th"]),
    ("truncated in a tag", "<answer_1>a</answer_1><answer_2>b</answ", ["a", "b", None]),
    ("truncated before its text", "<answer_1>a</answer_1><answer_2>", ["a", None, None]),
    ("unclosed in the middle", "<answer_1>a</answer_1><answer_2>b <answer_3>c</answer_3>", ["a", None, "c"]),
    ("closed by another", "<answer_1>a</answer_2><answer_2>b</answer_2>", [None, "b", None]),
    ("closed without number", "<answer_1>a</answer> or\n<answer_2>b</answer><answer_3>c</answer>", ["a", "b", "c"]),
    ("closed without number, then again", "<answer_1>a</answer> b</answer>", ["a", None, None]),
    ("closed without number, then with it", "<answer_1>a</answer> b</answer_1>", ["a</answer> b", None, None]),
    ("mentioned", "I write <answer_1> and </answer>. <answer_1>a</answer_1><answer_2>b</answer_2>", ["a", "b", None]),
    ("again with its own tag", "<answer_1>a</answer><answer_1>b</answer_1>", ["b", None, None]),
    ("with its own tag, then again", "<answer_1>a</answer_1><answer_1>b</answer>", ["a", None, None]),
    (
        "closed without number after a thought's end",
        "<answer_1>a</think> b</answer><answer_2>c</answer_2>",
        [None, "c", None],
    ),
    ("closed by another, then without number", "<answer_1>a</answer_2> b</answer><answer_2>", [None, None, None]),
    ("a plain tag inside", "<answer_1><answer>a</answer><answer_2>b</answer_2>", [None, "b", None]),
    ("closed without number in a thought", "<answer_1>a<think></answer></think><answer_2>b", [None, "b", None]),
    ("closed before opened", "</answer_1>a<answer_1>b</answer_1>", ["b", None, None]),
    ("nested", "<answer_1><answer_2>x</answer_2></answer_1>", [None, "x", None]),
    ("nested in itself", "<answer_1><answer_1>x</answer_1></answer_1>", ["x", None, None]),
    ("other tags inside", "<answer_1><answer>x</answer></answer_1>", ["<answer>x</answer>", None, None]),
    ("text around", "Here: <answer_1>a</answer_1>, then <answer_2>b</answer_2>.", ["a", "b", None]),
    ("capitals", "<Answer_1>a</Answer_1>", [None, None, None]),
    ("reasoning first", "<think>maybe <answer_1>x</answer_1></think><answer_1>a</answer_1>", ["a", None, None]),
    ("reasoning opened by the prompt", "maybe <answer_1>x</answer_1></think><answer_1>a</answer_1>", ["a", None, None]),
    ("reasoning without end", "<think>maybe <answer_1>x</answer_1>", [None, None, None]),
    ("reasoning in an answer", "<answer_1><think>t</think>a</answer_1>", ["<think>t</think>a", None, None]),
    ("reasoning after an answer", "<answer_1>a</answer_1><think>t</think><answer_2>b</answer_2>", ["a", "b", None]),
    (
        "an end of reasoning in the last answer",
        "<answer_1>a</answer_1><answer_2>I </think> tr",
        ["a", "I </think> tr", None],
    ),
    (
        "an end of reasoning in an answer",
        "<answer_1>a </think></answer_1><answer_2>b</answer_2>",
        ["a </think>", "b", None],
    ),
    ("an end of reasoning after all", "<answer_1>a</answer_1></think>", ["a", None, None]),
    ("an answer left open in the reasoning", "try <answer_2> no </think><answer_1>a</answer_1>", ["a", None, None]),
    ("reasoning twice", "<think>s</think>ok<think>t</think><answer_1>a</answer_1>", ["a", None, None]),
    (
        "a draft in a later thought",
        "<think>s</think>ok<think>maybe <answer_1>x</answer_1></think><answer_1>a</answer_1>",
        ["a", None, None],
    ),
    (
        "words before a thought",
        "Okay. <think>maybe <answer_1>x</answer_1></think><answer_1>a</answer_1>",
        ["a", None, None],
    ),
    (
        "a tag before a thought",
        "I write <answer_1>. <think>maybe <answer_1>x</answer_1></think><answer_1>a</answer_1>",
        ["a", None, None],
    ),
    (
        "a draft between answers",
        "<answer_1>a</answer_1><think>or <answer_2>x</answer_2></think><answer_2>b</answer_2>",
        ["a", "b", None],
    ),
    (
        "a thought between answers without end",
        "<answer_1>a</answer_1><think>or <answer_2>x</answer_2>",
        ["a", None, None],
    ),
    (
        "an end of reasoning in an answer that looks like a tag",
        "<answer_1>see <answer here </think> ok</answer_1><answer_2>b</answer_2>",
        ["see <answer here </think> ok", "b", None],
    ),
    (
        "an end of reasoning in an answer with a single tag",
        "<answer_1>in <answer> tags </think></answer_1><answer_2>b</answer_2>",
        ["in <answer> tags </think>", "b", None],
    ),
    (
        "an end of reasoning in an answer after a closing tag",
        "<answer_1>a</answer_1><answer_2>b </answer_1> </think></answer_2><answer_3>c</answer_3>",
        ["a", "b </answer_1> </think>", "c"],
    ),
]


@pytest.mark.parametrize(("completion", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_counts(completion, expected):
    assert parse(completion, 3) == expected


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("<answer>a</answer>", "a"),
        ("<answer>a</answer><answer>b</answer>", "a"),
        ("<answer>a<answer>b</answer>", "b"),
        ("<answer>a", "a"),
        ("a", None),
        ("<answer_1>a</answer_1>", None),
        ("<think><answer>x</answer></think><answer>a</answer>", "a"),
        ("<answer><answer_1>a</answer_1></answer>", "<answer_1>a</answer_1>"),
    ],
)
def test_what_counts_as_a_single_answer(completion, expected):
    assert parse(completion, 1) == [expected]


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("The answer is 18.\n", "The answer is 18."),
        ("<answer>a</answer> and more", "a"),
        ("<answer>a</answer><answer>b</answer>", "a"),
        ("cut <answer>a", "a"),
        ("", None),
        (" \n", None),
        ("<think>x</think> a", "a"),
        ("x</think> a", "a"),
        ("<think>x", None),
        ("<think>is it <answer>x</answer>?</think> a", "a"),
        ("x = <answer_1>a</answer_1>", "x = <answer_1>a</answer_1>"),
    ],
)
def test_a_single_answer_without_tags_is_the_whole_completion(completion, expected):
    assert read_plain(completion, 1).answers == [expected]


def test_duplicates_have_equal_normal_forms():
    repeated = duplicates(["a b", None, "A  B", "c", None, "a b"], lambda text: tuple(text.lower().split()))
    assert repeated == [False, False, True, False, False, True]
    assert duplicates(["x", "y"], lambda text: None) == [False, False]  # what cannot be read repeats nothing


@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("<think> s </think>ok<think>t</think><answer_1>a</answer_1><think>u</think><answer_2>b</answer_2>", "s\nt"),
        ("s</think><answer_1>a</answer_1>", "s"),
        ("<answer_1>a <think>s</think></answer_1>", ""),
        ("<think></think><answer_1>a</answer_1>", ""),
    ],
)
def test_thoughts_before_the_first_answer(completion, expected):
    assert thoughts(completion, 2) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<answer_1>a</answer_1>\n<answer_2>b</answer_2>", [(22, 0), (45, 1), (45, 1)]),
        ("<answer_1>a</answer>\n<answer_2>b</answer_2>", [(20, 0), (43, 1), (43, 1)]),
        ("<think><answer_1>x</answer_1></think><answer_1>a</answer_1>tail", [(59, 0), (63, 1)]),
        ("<answer_2>b</answer_2><answer_1>a</answer_1>", [(22, 1), (44, 0), (44, 1)]),
        ("<answer_1>a</answer_1><answer_1>c</answer_1>", [(22, 0), (44, 1)]),
        ("<answer_1>a", [(11, 0), (11, 1)]),
        ("<answer_1>a<answer_2>b</answer_2>", [(11, 0), (33, 1), (33, 1)]),
        ("<answer_1>a<answer_1>b</answer_1>", [(11, 0), (33, 0), (33, 1)]),
        ("well <answer_2>b</answer_2>", [(15, 0), (27, 1), (27, 1)]),
        ("nothing", [(7, 0), (7, 1)]),
        ("", [(0, 0), (0, 1)]),
    ],
)
def test_parts_end_where_the_tag_of_an_answer_ends(text, expected):
    assert parts(text, 2) == expected
