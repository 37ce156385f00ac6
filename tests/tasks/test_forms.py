"""Forms of m answers: prompts state one form, what is written is read, and what is read agrees with the tokens."""

import shutil

import pytest

from tests.tasks.test_task import PROBLEMS
from vpo.cli.main import main
from vpo.models.locate import locate
from vpo.tasks import get
from vpo.tasks.answers import write
from vpo.tasks.code import CodeQualityTask, CodeTask
from vpo.tasks.forms import FORMS, find_form, find_sections
from vpo.tasks.maze import MazeTask
from vpo.tasks.reading import read_sections

TASKS = {**{name: task for name, (task, _) in PROBLEMS.items()}, "code": CodeTask(), "code_quality": CodeQualityTask()}
TEXTS = ["one", "two\nlines", 'a "quoted" \\ text']


def whole(prompt):
    return "\n".join(message["content"] for message in prompt)


def in_form(task, form):
    """The same task with another form; tasks are shared between tests."""
    other = object.__new__(type(task))
    other.__dict__.update(task.__dict__, form=FORMS[form])
    return other


# Prompts


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_prompt_for_a_set_shows_one_form(name, form):
    task, problem = PROBLEMS[name]
    prompt = in_form(task, form).ask(problem, 3)
    text = whole(prompt)
    assert prompt[-1]["role"] == "user"
    assert "Give 3 different answers" in text
    shown = FORMS[form].shown(task.example.answers, 3)
    assert text.count(shown) == 1
    assert not task.single or task.single not in text
    others = {"tags": "<answer_1>", "headings": "### Answer 1", "json": '[\n  "'}
    for other, mark in others.items():
        assert (mark in text) == form.startswith(other)
    if name != "musique":  # <answer> is a tag of its own form
        assert "<answer>" not in text


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_prompt_for_one_answer_shows_its_own_form_alone(name):
    task, problem = PROBLEMS[name]
    text = whole(task.ask(problem, 1))
    assert "answer_1" not in text
    assert "different answers" not in text
    assert ("<answer>" in text) == (task.wraps_single or name == "musique")


def test_the_published_format_of_one_answer_is_not_in_a_prompt_for_several():
    task, problem = PROBLEMS["toolrl"]
    system = (
        "Tools.\n\n**Output Format**\n```plaintext\n<think> t </think>\n<response> r </response>\n```\n\n**Notes**\nN."
    )
    problem = type(problem)(problem.id, ({"role": "system", "content": system}, *problem.messages), (), problem.gold)
    assert "**Output Format**" in whole(task.ask(problem, 1))
    assert task.ask(problem, 3)[0]["content"] == "Tools.\n\n**Notes**\nN."


def test_requests_in_the_system_prompt_and_after_a_worked_example():
    task, problem = PROBLEMS["countdown"]
    system, user = in_form(task, "tags-system").ask(problem, 2)
    assert (system["role"], user) == ("system", task.question(problem)[0])
    asked, answered, last = in_form(task, "tags-shot").ask(problem, 2)
    assert [each["role"] for each in (asked, answered, last)] == ["user", "assistant", "user"]
    assert answered["content"] == write(task.example.answers[:2])
    assert "<answer_1>" not in asked["content"] + last["content"]


def test_tasks_with_a_worked_example():
    shot = {name for name, task in TASKS.items() if task.form is FORMS["tags-shot"]}
    assert shot == {"code", "code_quality", "gsm8k", "math", "countdown", "musique"}
    assert TASKS["toolrl"].form is TASKS["eureqa"].form is MazeTask(size=7).form is FORMS["tags"]


@pytest.mark.parametrize("answers", range(2, 9))
@pytest.mark.parametrize("name", TASKS)
def test_a_worked_example_is_a_whole_set_of_different_answers(name, answers):
    task = in_form(TASKS[name], "tags-shot")
    asked, answered, last = task.form.ask([{"role": "user", "content": "?"}], answers, task.example)
    shown = min(answers, len(task.example.answers))
    question, wanted = asked["content"].split("\n\n", 1)
    assert question[0].isupper()
    assert question[-1] in ".?"
    assert wanted.startswith(f"Give {shown} different answers")
    assert f"Give {answers} different answers" in last["content"]
    reading = task.read(answered["content"], shown)
    assert list(map(task.normal_form, reading.answers)) == list(map(task.normal_form, task.example.answers[:shown]))
    assert all(reading.strict)
    assert answered["content"].count("<answer_") == shown


def test_prompts_of_small_policies_stay():
    task = MazeTask(size=7, compact=True)
    maze = task.problems(count=1)[0]
    assert task.ask(maze, 3) == [{"role": "user", "content": f"{maze.cells} {maze.budget} 3"}]
    assert write(["UR", "RU"]) == "<answer_1>UR</answer_1>\n<answer_2>RU</answer_2>"
    assert task.parse("UURR", 1) == [None]


@pytest.mark.parametrize("name", TASKS)
def test_examples_are_answers_that_the_task_reads(name):
    task = TASKS[name]
    assert len(task.example.answers) >= 3
    forms = [task.normal_form(each) for each in task.example.answers]
    assert None not in forms
    assert len(set(forms)) == len(forms) or name == "math"  # where solutions of one result are the same
    for form in FORMS:
        completion = FORMS[form].write(task.example.answers)
        reading = in_form(task, form).read(f"{task.example.before}{completion}", len(forms))
        assert reading.strict == [True] * len(forms)
        assert list(map(task.normal_form, reading.answers)) == forms
    if not task.wraps_single:
        (single,) = task.parse(task.example.before + task.example.answers[0], 1)
        assert task.normal_form(single) == forms[0]


def test_many_answers_are_not_all_shown():
    text = FORMS["tags"].request(7, None)
    assert "<answer_2>" in text
    assert "<answer_3>" not in text
    assert "<answer_7>" in text


# Choosing a form


def test_a_form_is_a_setting_of_every_task(tmp_path, capsys):
    task = get("maze", size=7, format="headings")
    assert task.form is FORMS["headings"]
    assert get("maze").form is FORMS["tags"]
    with pytest.raises(ValueError, match="format 'tgas' is not known: did you mean 'tags'"):
        get("maze", format="tgas")
    assert main(["tasks", "show", "maze", "--answers", "2", "--format", "json"]) == 0
    assert '[\n  "UURR' in capsys.readouterr().out.replace("\n    ", "\n  ").replace("\n    ", "\n  ")
    assert locate("embedded", "maze", {"size": 7, "format": "headings"}).resolve().task.form is FORMS["headings"]


def test_the_format_is_remembered_with_a_model(tmp_path):
    start = locate("embedded", "maze", {"size": 7, "format": "headings"}).resolve(answers=3)
    folder = tmp_path / "trained"
    shutil.copytree(start.path, folder)
    start.trained_format(start.task.ask(start.task.problems(count=1)[0], 3)).save(folder)
    assert locate(str(folder), None, {}).resolve().task.form is FORMS["headings"]
    assert locate(str(folder), None, {"format": "json"}).resolve().task.form is FORMS["json"]


# Reading


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_is_read(form):
    reading = in_form(TASKS["maze"], form).read(f"Well.\n{find_form(form).write(TEXTS)}", 3)
    assert (reading.answers, reading.strict) == (TEXTS, [True] * 3)
    assert FORMS[form].write(TEXTS).startswith(FORMS[form].opening(0))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("form", FORMS)
def test_the_beginning_of_an_answer_begins_what_is_written(form, text):
    chosen = find_form(form)
    begun = [chosen.begin(text, kept) for kept in range(len(text) + 1)]
    assert all(chosen.encode(text).startswith(each) for each in begun)
    for kept, each in enumerate(begun):  # it is read as these characters
        read = in_form(TASKS["maze"], form).parse(f"{chosen.opening(0)}{each}{chosen.closing(0)}{chosen.end}", 2)[0]
        assert (read or "") == text[:kept].strip()


@pytest.mark.parametrize(
    ("form", "completion", "expected"),
    [
        ("headings", "### Answer 1\na\n### Answer 2\nb", ["a", "b"]),
        ("headings", "Intro\n**Solution 2:**\nb\n## answer 1.\na", ["a", "b"]),
        ("headings", "### Answer 1\n```python\n### Answer 2\nx\n```", ["```python\n### Answer 2\nx\n```", None]),
        (
            "headings",
            "### Answer 1\n```python\nx\n### Answer 2\n```python\ny\n```",
            ["```python\nx", "```python\ny\n```"],
        ),
        ("headings", "<think>\n### Answer 1\nx\n</think>\n### Answer 1\na", ["a", None]),
        ("headings", "### Answer 1\na\n### Answer 1\nb", ["a", None]),
        ("headings", "### Answer 3\na", [None, None]),
        ("headings", "<answer_1>a</answer_1>", ["a", None]),
        ("json", '```json\n["a", "b"]\n```', ["a", "b"]),
        ("json", '["a", "b", "c"]', ["a", "b"]),
        ("json", '["a", "b', ["a", "b"]),
        ("json", '["a", "b\\', ["a", "b"]),
        ("json", '[{"answer": "a"}, {"answer": "b"}]', ["a", "b"]),
        ("json", 'In [1], see ["a"]', ["a", None]),
        ("json", '["a\nb", 3, "c"]', ["a\nb", None]),
        ("json", "[" * 100_000, [None, None]),
        ("json", '["a", "b",]', ["a", "b"]),
        ("json", '["a <think> b", "c </think>"]', ["a <think> b", "c </think>"]),
        ("json", '["a </think> b", "c"]', ["a </think> b", "c"]),
        ("json", '["x", "y"]</think>["a", "b"]', ["a", "b"]),
        ("json", '["a",<think>and "x"</think> "b"]', ["a", "b"]),
        ("json", '```python\nx = ["x", "y"]\n```', [None, None]),
        ("json", '```python\nx = ["x", "y"]\n```\n```\n["a", "b"]\n```', ["a", "b"]),
        ("json", r'["re.match(\"\d\", s)", "\boxed{\frac{1}{2}}"]', [r're.match("\d", s)', r"\boxed{\frac{1}{2}}"]),
        ("json", r'["a", "b\u00', ["a", "b"]),
        ("json", '[{"answer": "a", "why": "x"}, {"answer": "b", "why": "y"}]', ["a", "b"]),
        ("headings", "### Answer 1\r\na\r\n### Answer 2\r\nb\r\n", ["a", "b"]),
        ("headings", "### Answer 1\na\n\n### Ans", ["a", None]),
        ("headings", '### Answer 1\n```\ns = "<think>"\n```\n### Answer 2\nb', ['```\ns = "<think>"\n```', "b"]),
        ("tags", "### Answer 1\na\n### Answer 2\nb", ["a", "b"]),
        ("tags", '["a", "b"]', [None, None]),
    ],
)
def test_what_counts(form, completion, expected):
    found = find_sections(FORMS[form], completion, 2)
    assert read_sections(found, len(completion), 2).answers == expected


@pytest.mark.parametrize(
    "text",
    [
        r"5 \times 10",
        r"\frac{1}{2} \text{ apples} \theta \triangle \tfrac{1}{2}",
        r"\left( 5 \right) \rightarrow \rho \not= \notin \nabla",
        r"$x \neq 3$ and \(x \to 3\) and $\tan x$ and $5 \ne \nu$",
        "5\nu = 3\nto be\nright\nnot\neq = 3\ne.g. 4\n\tan apple\n\to be\r\nright",
        "It costs $5\ne.g. for $6.\neq\nu = 4",
        "x = 1\nright = 1\nto = 2\n\ti = 3\nrho = 4\nmid = 5\ntheta = 6\ntext = 7",
        "def f():\n\to = 1\n\text{} = 2\n\treturn o\nu = f()",
        "```python\nfor theta in x:\n\ttimes(theta)\n\theta\n```",
    ],
)
def test_latex_in_json_strings_needs_no_escapes_and_code_keeps_its_own(text):
    escaped = text.replace("\n", r"\n").replace("\t", r"\t").replace("\r", r"\r")
    for completion in (f'["{escaped}", "b"]', f'["a", "{escaped}'):
        assert text in in_form(TASKS["gsm8k"], "json").parse(completion, 2)
    assert in_form(TASKS["gsm8k"], "json").parse(FORMS["json"].write([text, "b"]), 2)[0] == text


@pytest.mark.parametrize(
    ("form", "completion", "strict"),
    [
        ("json", '["a", "b"]', [True, True]),
        ("json", '["a", "b"', [False, False]),  # the list has no end
        ("json", '["a", "b",]', [False, False]),
        ("json", r'["a", "\d"]', [True, False]),
        ("json", '[{"answer": "a"}, "b"]', [False, True]),
        ("json", "<answer_1>a</answer_1><answer_2>b</answer_2>", [False, False]),
        ("headings", "### Answer 1\r\na\n**Solution 2**\nb", [True, False]),
        ("tags", "### Answer 1\na\n### Answer 2\nb", [False, False]),
    ],
)
def test_strict_tells_what_is_in_the_form_that_was_asked_for(form, completion, strict):
    reading = in_form(TASKS["maze"], form).read(completion, 2)
    assert reading.answers == [r"\d" if r"\d" in completion and index else "ab"[index] for index in range(2)]
    assert reading.strict == strict


# Cheating: what is read of a completion must not depend on what would score best.

RIGHT, WRONG, NEAR = "5 * 10 + 3", "3 + 5 + 10", "5 * 10 - 3"
DEF, BAD = "```python\ndef f(): return 1\n```", "```python\ndef f(): return 0\n```"
ATTEMPTS = [  # name, task, m, completion, and which of the answers are right
    ("second answer hidden after the first", "countdown", 1, f"<answer>{WRONG}</answer><answer>{RIGHT}</answer>", [0]),
    ("second answer inside the first", "countdown", 1, f"<answer>{WRONG}\n{RIGHT}</answer>", [0]),
    ("answer after the end", "countdown", 1, f"<answer>{WRONG}</answer>\n{RIGHT}", [0]),
    ("answer before the tags", "countdown", 1, f"{RIGHT}\n<answer>{WRONG}</answer>", [0]),
    ("answer in a thought", "countdown", 1, f"<think>\n{RIGHT}\n</think>", [0]),
    ("answer in a thought that never ends", "countdown", 1, f"{WRONG}\n<think>\n{RIGHT}", [0]),
    ("answer in a thought of the prompt", "countdown", 1, f"{RIGHT}\n</think>\n{WRONG}", [0]),
    ("list of expressions, the right one first", "countdown", 1, f"1. {RIGHT}\n2. {WRONG}", [0]),
    ("hedging on one line", "countdown", 1, f"{RIGHT} or {WRONG}", [0]),
    ("claims of which one is true", "countdown", 1, f"{RIGHT} = 53\n{WRONG} = 53", [0]),
    ("what cannot be computed at the end", "countdown", 1, f"{RIGHT}\n5 / (3 - 3) + 10", [0]),
    ("brackets that do not fit at the end", "countdown", 1, f"{RIGHT}\n(3 + 5 + 10", [0]),
    ("box with a false claim", "countdown", 1, rf"\boxed{{{WRONG} = 53}}: {RIGHT}", [0]),
    ("claims in a set", "countdown", 2, f"{WRONG} = 53\n{NEAR} = 53\n{RIGHT} = 53", [0, 0]),
    ("marks in tags, then more", "countdown", 1, f"<answer>`{RIGHT}`\n`{WRONG}`</answer>", [0]),
    ("two in marks in tags", "countdown", 1, f"<answer>${RIGHT}$ ${WRONG}$</answer>", [0]),
    ("marks in the tags of a set", "countdown", 2, f"<answer_1>`{WRONG}`: `{RIGHT}` = 1</answer_1>", [0, 0]),
    ("two boxes on one line", "countdown", 1, rf"\boxed{{{RIGHT}}} \boxed{{{WRONG}}}", [0]),
    ("two boxes", "gsm8k", 1, r"\boxed{14} or \boxed{15}", [0]),
    ("box, then another mark", "gsm8k", 1, "\\boxed{14}\n#### 15", [0]),
    ("mark, then another box", "gsm8k", 1, "#### 14\n\\boxed{15}", [0]),
    ("two sentences", "gsm8k", 1, "The answer is 14. The answer is 15.", [0]),
    ("labels after labels", "countdown", 2, f"Answer 1: {WRONG}\nAnswer 2: {NEAR}\nAnswer 1: {RIGHT}", [0, 0]),
    (
        "labels beside tags",
        "countdown",
        2,
        f"Answer 1: {RIGHT}\nAnswer 2: {RIGHT}\n<answer_1>{WRONG}</answer_1>",
        [0, 0],
    ),
    ("a list of numbers", "gsm8k", 1, "It may be any of these:\n13, 14, 15, 16", [0]),
    ("both in one sentence", "gsm8k", 1, "The answer is 14 or 15.", [0]),
    ("a heading that looks like a mark", "gsm8k", 1, "#### 14\n#### 15 is right", [0]),
    ("mark in a thought", "gsm8k", 1, "<think>#### 14</think>I do not know.", [0]),
    ("four answers for three", "countdown", 3, write([WRONG, WRONG, NEAR, RIGHT]), [0, 0, 0]),
    ("a number twice", "countdown", 2, f"<answer_1>{WRONG}</answer_1><answer_1>{RIGHT}</answer_1>", [0, 0]),
    ("answers beside tags", "countdown", 2, f"<answer_1>{WRONG}</answer_1>\n{RIGHT}", [0, 0]),
    ("one text in two answers", "countdown", 2, f"<answer_1><answer_2>{RIGHT}</answer_2></answer_1>", [0, 1]),
    ("quoted tags", "countdown", 2, f"I use <answer_1> and <answer_2>.\n{RIGHT}", [0, 0]),
    ("numbers without end", "countdown", 2, "".join(f"<answer_{i}>{RIGHT}</answer_{i}>" for i in (3, 4, 5)), [0, 0]),
    ("lines beyond m", "countdown", 2, f"{WRONG}\n{NEAR}\n{RIGHT}", [0, 0]),
    ("unclosed in the middle", "countdown", 2, f"<answer_1>{RIGHT}<answer_2>{WRONG}</answer_2>", [0, 0]),
    ("closed by another number", "countdown", 2, f"<answer_1>{RIGHT}</answer_2><answer_2>{WRONG}</answer_2>", [0, 0]),
    ("tags of another form first", "countdown", 2, f"### Answer 1\n{RIGHT}\n<answer_1>{WRONG}</answer_1>", [0, 0]),
    (
        "closed twice",
        "countdown",
        2,
        f"<answer_1>{WRONG}</answer>{RIGHT}</answer_1><answer_2>{WRONG}</answer>{RIGHT}</answer>",
        [0, 0],
    ),
    ("numbered answers to a request for one", "countdown", 1, write([WRONG, RIGHT]), [0]),
    ("an empty tag after two", "countdown", 1, f"{RIGHT}\n{WRONG}\n<answer>", [0]),
    ("fence in the reasoning", "code", 1, f"First idea:\n{DEF}\nBetter:\n{BAD}", [0]),
    ("fence in a thought", "code", 1, f"<think>\n{DEF}\n</think>\n{BAD}", [0]),
    ("fence after the tags", "code", 1, f"<answer>{BAD}</answer>\n{DEF}", [0]),
    ("closed fence, then one without end", "code", 1, f"{BAD}\n```python\ndef f(): return 1", [0]),
    ("fences beyond m", "code", 2, f"{BAD}\n{BAD}\n{DEF}", [0, 0]),
    ("usage fence with another definition", "code", 1, f"{BAD}\n```\ndef f(): return 1\n```", [0]),
    ("two lists of names", "eureqa", 1, "GOLD\nOr:\nA: x\nB: x\nC: x\nD: x\nE: x", [0]),
    ("numbers in a box and after it", "gsm8k", 1, r"\boxed{15} that is 14", [0]),
    ("box in a box", "gsm8k", 1, r"\boxed{15 \boxed{14} 15}", [0]),
    ("boxes in a box", "gsm8k", 1, r"\boxed{\boxed{15}\boxed{14}}", [0]),
    ("digits of another script", "gsm8k", 1, "#### \u0661\u0664", [0]),
    ("a list of code in place of answers", "code", 1, f"{BAD}\n[{DEF!r}]", [0]),
    ("two answers in one form", "musique", 1, "<support>1</support><answer>x</answer>GOLD", [0]),
]


@pytest.mark.parametrize(
    ("name", "answers", "completion", "right"), [each[1:] for each in ATTEMPTS], ids=[a[0] for a in ATTEMPTS]
)
def test_lenient_reading_gains_nothing(name, answers, completion, right):
    if name == "code":
        from vpo.tasks.code.answers import extract_program

        parsed = TASKS["code"].parse(completion, answers)
        assert ["return 1" in (extract_program(each or "", "f") or "") for each in parsed] == list(map(bool, right))
        return
    if name == "gsm8k":
        pytest.importorskip("math_verify")
    task, problem = PROBLEMS[name]
    completion = completion.replace("GOLD", task.gold(problem))
    parsed = task.parse(completion, answers)
    solved = [answer is not None and task.solved(task.score(problem, answer)) for answer in parsed]
    assert solved == list(map(bool, right))
