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
    pytest.importorskip("math_verify")  # of math
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
