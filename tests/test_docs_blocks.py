"""The blocks of README.md and docs/ run: Python in order, page by page, and the commands that are marked.

What stands in for what a reader has: a tiny model of random weights for a model of the hub, a CPU for a GPU, and fewer
and shorter steps (`STAND_INS`, `SHORTER`). Commands that are not marked are parsed by tests/cli/test_options.py.
"""

import json
import re
import shlex
import tomllib
from contextlib import ExitStack

import pytest

pytest.importorskip("trl")

from tests.engines.tiny import save_tiny_model
from tests.launch import ROOT
from tests.pages import PAGES, blocks, shell
from vpo.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages; pages show how to avoid ours

STAND_INS = (
    (r"\b(?:Qwen|HuggingFaceTB)/[\w.-]+", "{model}"),
    (r"\bGRPOConfig\((?![^)]*bf16)", "GRPOConfig(bf16=False, "),
    (r"\bmax_steps=\d+", "max_steps=1"),
    (r"\b(max_tokens|max_completion_length)=\d+", r"\1=8"),
)
SHORTER = ((r"--steps \d+", "--steps 1"), (r"--iterations \d+", "--iterations 2"))  # of commands
CHEAP = ("vpo tasks", "vpo tasks show maze", "vpo --help", "vpo --version")  # they run without a mark
ALL = [block for page in PAGES for block in blocks(page)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


def runs(block, *, slow):
    """Whether a block runs in this part of the tests."""
    if block.not_run is not None:
        return False
    if block.language == "python":
        return slow or block.run != "slow"
    if shell(block) and block.run is None:
        return all(cheap(each) for each in block.commands)
    return shell(block) and (slow or block.run != "slow")


def cheap(command):
    return shlex.join(shlex.split(command, comments=True)) in CHEAP


def run_page(page, folder, model, monkeypatch, *, slow):
    """Run the blocks of a page in an empty folder, Python in one namespace."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    namespace = {"__name__": "page"}
    for block in blocks(page):
        if not runs(block, slow=slow):
            continue
        if block.language == "python":
            for code in (block.before, block.code):
                run_python(code, str(block), namespace, model)
        else:
            for command in block.commands:
                for pattern, replacement in SHORTER:
                    command = re.sub(pattern, replacement, command)
                assert main(shlex.split(command, comments=True)[1:]) in (0, 1), f"{block}: {command}"


def run_python(code, name, namespace, model):
    for pattern, replacement in STAND_INS:
        code = re.sub(pattern, replacement.replace("{model}", model), code)
    exec(compile(code, name, "exec"), namespace)


def with_blocks(*, slow):
    """Pages with a block that runs; in the slow part, those with one that runs there only."""
    for page in PAGES:
        found = blocks(page)
        quick = [each for each in found if runs(each, slow=False)]
        every = [each for each in found if runs(each, slow=True)]
        if (len(every) > len(quick)) if slow else quick:
            yield pytest.param(page, id=str(page.relative_to(ROOT)))


@pytest.mark.parametrize("page", list(with_blocks(slow=False)))
def test_a_page_runs(page, tmp_path, model, monkeypatch, capsys):
    run_page(page, tmp_path, model, monkeypatch, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", list(with_blocks(slow=True)))
def test_a_page_runs_with_its_slow_blocks(page, tmp_path, model, monkeypatch, capsys):
    run_page(page, tmp_path, model, monkeypatch, slow=True)


def test_what_is_not_run_has_a_reason():
    marked = [block for block in ALL if block.not_run is not None]
    assert marked
    assert [str(block) for block in marked if len(block.not_run.split()) < 2] == []


def test_marks_are_on_code_that_can_run():
    wrong = [block for block in ALL if block.run is not None and not (shell(block) or block.language == "python")]
    assert [str(block) for block in wrong] == []
    assert {block.run for block in ALL if block.run is not None} <= {"", "slow"}


@pytest.mark.parametrize("block", [each for each in ALL if each.language in ("toml", "json")], ids=str)
def test_data_can_be_read(block):
    if block.language == "toml":
        tomllib.loads(block.code)
        return
    for line in block.code.splitlines():
        json.loads(line)


def test_most_python_runs():
    python = [block for block in ALL if block.language == "python"]
    assert len(python) > 15
    assert sum(block.not_run is not None for block in python) < len(python) / 2


def test_a_block_that_fails_is_found(tmp_path, model, monkeypatch):
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    text = "```python\na = 1\n```\n\n<!-- before: b = 2 -->\n\n```python\nassert a + b == 4\n```\n"
    page.write_text(text)
    monkeypatch.setattr("tests.pages.ROOT", tmp_path)
    with ExitStack() as stack:
        stack.enter_context(pytest.raises(AssertionError))
        run_page(page, tmp_path, model, monkeypatch, slow=False)
    page.write_text(text.replace("4", "3"))
    run_page(page, tmp_path, model, monkeypatch, slow=False)
    page.write_text("<!-- run -->\n\n    vpo measure absent.jsonl\n")
    with pytest.raises(AssertionError, match=r"page.md:3: vpo measure absent.jsonl"):
        run_page(page, tmp_path, model, monkeypatch, slow=False)
