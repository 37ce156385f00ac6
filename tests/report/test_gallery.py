"""The answers on the page: as they were written, by set, with what differs between them."""

import json

import pytest

from tests.report.browser import needs_browser, opened, page_json
from vpo.cli.main import main
from vpo.evaluation.compare import compare_groups
from vpo.evaluation.eval_folder import read_evaluation
from vpo.evaluation.pools import write_pool
from vpo.report.page import write_page
from vpo.report.page_data import page_data


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The page of two pools of texts: one of single answers, one of sets."""
    folder = tmp_path_factory.mktemp("texts")
    single = ["def f(x):\n    return x", "def f(x):\n    return x + 1", "def f(x):\n    return x"]
    sets = ["a <b>bold</b> word\nand more & more", None, "quite another text, which has nothing of it"]
    evaluations = []
    for name, answers, size in (("grpo", single, 1), ("vpo", sets, 3)):
        rows = [
            {
                "problem": problem,
                "generation": index // size,
                "position": index % size + 1,
                "answers": size,
                "scores": {"right": (index + problem) % 2, "short": 0.5, **extra},
                "solved": index == 0,
                "answer": text,
            }
            for problem in range(3)
            for index, text in enumerate(answers)
            if text is not None
            for extra in [{"long": 1.0} if problem else {}]  # problems differ in their objectives
        ]
        write_pool(folder / f"{name}.jsonl", rows)
        evaluations.append([read_evaluation(folder / f"{name}.jsonl")])
    comparison = compare_groups([[each.pool for each in group] for group in evaluations])
    write_page(folder / "page.html", page_data(comparison, evaluations, ["grpo", "vpo"], "vpo compare"))
    return folder / "page.html"


@needs_browser
def test_answers_are_shown_as_they_were_written_by_set_with_what_differs(texts):
    parsed, console = opened(texts, 390)
    seen = parsed.seen
    assert console == []
    assert seen["width"] <= 390
    assert "front" not in seen["sections"]  # problems differ in their objectives
    assert seen["texts"][1] == "def f(x):\n    return x + 1"
    assert seen["texts"][3:] == ["a <b>bold</b> word\nand more & more", "(missing)", seen["texts"][5]]
    assert seen["marks"] == [" + 1"]  # the third is the first again, and of the set nothing is alike
    assert seen["sets"] == ["generations of one answer each", "generation 1, a set of 3"]
    assert seen["scores"][0] == "answer 1: 0.250✓ solvedright 0short 0.500"
    assert "the same as answer 1" in seen["scores"][2]
    assert "differs nearly everywhere" in seen["scores"][5]


@needs_browser
def test_answers_are_compared_with_the_first_that_is_not_missing(tmp_path):
    answers = ["take the left way home", "take the left way home", "take the left way", "take the way"]
    rows = [
        {"problem": problem, "generation": 0, "position": position, "answers": 5, "scores": {"a": 0.5}, "answer": text}
        for problem in range(2)
        for position, text in enumerate(answers, start=2)
    ]
    write_pool(tmp_path / "vpo.jsonl", rows)
    evaluation = read_evaluation(tmp_path / "vpo.jsonl")
    data = page_data(compare_groups([[evaluation.pool]]), [[evaluation]], ["vpo"], "vpo compare")
    write_page(tmp_path / "page.html", data)
    scores = opened(tmp_path / "page.html", 390)[0].seen["scores"]
    assert scores == [
        "answer 1: 0a 0",
        "answer 2: 0.500a 0.500",
        "answer 3: 0.500a 0.500the same as answer 2",
        "answer 4: 0.500a 0.500without 1 word of answer 2",
        "answer 5: 0.500a 0.500without 2 words of answer 2",
    ]


def test_the_gallery_has_the_question_and_the_gold_answer_of_the_task(tmp_path, capsys):
    solutions = ["1 + 1 = <<1+1=2>>2\n#### 2", "2 + 1 = <<2+1=3>>3\n#### 3"]
    rows = [{"question": f"What is {n} + 1?", "answer": each} for n, each in enumerate(solutions, start=1)]
    data = tmp_path / "test.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    completions = [{"index": index, "completion": f"It is\n#### {index + 2}"} for index in (0, 1)]
    (tmp_path / "made.jsonl").write_text("".join(json.dumps(row) + "\n" for row in completions))
    named = ["--task", "gsm8k", "--data", str(data)]
    assert main(["score", str(tmp_path / "made.jsonl"), *named, "--out", str(tmp_path / "pool.jsonl")]) == 0
    pool, out = str(tmp_path / "pool.jsonl"), ["--out", str(tmp_path / "out")]
    assert main(["compare", pool, *named, *out]) == 0
    shown = page_json(tmp_path / "out" / "report.html")
    assert shown["title"] == "gsm8k: pool"
    assert shown["gallery"][0]["question"].startswith("What is 1 + 1?")
    assert shown["gallery"][0]["gold"].endswith("#### 2")
    assert shown["gallery"][0]["runs"][0][0][0]["text"] == "It is\n#### 2"
    assert main(["compare", pool, *out]) == 0
    assert page_json(tmp_path / "out" / "report.html")["gallery"][0]["question"] is None
    assert main(["compare", pool, "--data", str(data), *out]) == 2
    assert "name it with --task" in capsys.readouterr().err
