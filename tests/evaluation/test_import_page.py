"""Every command of docs/importing.md runs, in the order of the page."""

import re
import shlex

from tests.launch import ROOT
from vpo.cli.main import main

PAGE = ROOT / "docs" / "importing.md"


def test_the_commands_of_the_page_run(tmp_path, monkeypatch, capsys):
    text = PAGE.read_text()
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (rows,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (tmp_path / "rollouts.jsonl").write_text(rows)
    monkeypatch.chdir(tmp_path)
    commands = [line for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    assert len(commands) >= 7
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0, (command, capsys.readouterr().err)


def test_the_page_names_every_format():
    from vpo.evaluation.importers.formats import NAMES

    table = PAGE.read_text().partition("## Formats")[2].partition("## ")[0]
    assert re.findall(r"^\| `([a-z][a-z-]*)` \| ", table, re.MULTILINE) == list(NAMES)
