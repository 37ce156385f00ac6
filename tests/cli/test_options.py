"""One name, one meaning: over all commands, and in every command that the documentation shows."""

import argparse
import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest

from vpo.cli.main import main, parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def parsers(command=None, name=""):
    """Every command with its parser, those that only hold other commands included."""
    command = command or parser()
    if name:
        yield name, command
    for each in command._actions:
        if isinstance(each, argparse._SubParsersAction):
            for verb, child in each.choices.items():
                yield from parsers(child, f"{name} {verb}".strip())


COMMANDS = {name: command for name, command in parsers() if "run" in command._defaults}


def options():
    """Option string → {command: action}."""
    by_flag = defaultdict(dict)
    for name, command in COMMANDS.items():
        for action in command._actions:
            for flag in action.option_strings:
                by_flag[flag][name] = action
    return by_flag


def test_all_commands_are_walked():
    expected = ["tasks", "tasks show", "tasks validate", "eval", "train", "watch", "compare", "search", "warmup"]
    expected += ["reproduce", "policy build", "export verl", "serve", "import", "score", "measure", "diagnose"]
    expected += ["select", "rewards", "doctor"]
    assert list(COMMANDS) == expected


@pytest.mark.parametrize("flag", sorted(options()))
def test_an_option_means_the_same_on_every_command(flag):
    meanings = {
        (action.dest, action.type if action.type is not str else None, action.nargs, action.metavar)
        for name, action in options()[flag].items()
        # A command that loads no server has no endpoint to choose, and one that samples has no precision of products.
        if not (flag in ("--generator", "--precision") and name != "search")
    }
    assert len(meanings) == 1


def test_generators_have_the_same_names():
    choices = {name: set(action.metavar.split("|")) for name, action in options()["--generator"].items()}
    assert choices == {
        "eval": {"transformers", "vllm", "endpoint"},
        "diagnose": {"transformers", "vllm", "endpoint"},
        "search": {"transformers", "vllm", "endpoint"},
        "serve": {"transformers", "vllm"},
        "train": {"transformers", "vllm"},
    }


@pytest.mark.parametrize("flag", ["--count", "--tokens-per-answer", "--backend", "--vllm", "--test", "--validation"])
def test_old_names_are_gone(flag, capsys):
    assert flag not in options()
    for name in ("train maze", "reproduce maze", "search embedded", "export verl maze --out x"):
        with pytest.raises(SystemExit):  # as an abbreviation of a longer option, too
            parser().parse_args([*name.split(), flag, "1"])


def test_every_command_but_serve_prints_json():
    assert [name for name, command in COMMANDS.items() if "--json" not in command._option_string_actions] == ["serve"]


def test_every_option_has_a_help_text():
    for actions in options().values():
        assert all(action.help for action in actions.values())


def examples(command):
    """The commands that a help text shows."""
    return re.findall(r"^  (vpo [^\n]*)$", command.format_help(), re.MULTILINE)


@pytest.mark.parametrize("name", dict(parsers()))
def test_every_help_text_has_examples_as_they_are_typed_which_parse(name):
    lines = examples(dict(parsers())[name])
    assert any(line.startswith(f"vpo {name}") for line in lines)
    for line in lines:
        parser().parse_args(shlex.split(line, comments=True)[1:])


def test_every_command_is_in_a_group_of_the_help_text():
    text = parser().format_help()
    names = [name for name in dict(parsers()) if " " not in name]
    assert re.findall(r"^  ([a-z]+)  +[a-z]", text.partition("from a task to answers:")[2], re.MULTILINE) == names
    assert "usage: vpo [-h] [--version] COMMAND ..." in text
    assert COMMANDS["tasks show"].format_usage().startswith("usage: vpo tasks show [-h]")


def test_vpo_alone_shows_the_way_in_commands_that_parse(capsys):
    assert main([]) == 0
    lines = re.findall(r"^  (vpo .*)$", capsys.readouterr().out, re.MULTILINE)
    ways = [shlex.split(line, comments=True)[1:] for line in lines]
    assert [each[0] for each in ways] == ["tasks", "eval", "train", "eval", "compare", "search"]
    for each in ways:
        parser().parse_args(each)


def documented():
    """Every `vpo …` command of the documentation: lines of code blocks, continued lines joined, and code in text."""
    for page in PAGES:
        text = page.read_text().replace("\\\n", " ")
        lines = re.findall(r"^(?:    )?(vpo [a-z][^`\n]*)$", text, re.MULTILINE)
        spans = [span.replace("\n", " ") for span in re.findall(r"`(vpo [a-z]+ [^`]*)`", text)]
        for number, command in enumerate([*lines, *spans], start=1):
            if "…" not in command:
                yield pytest.param(command, id=f"{page.name}-{number}")


def test_commands_are_found_in_the_documentation():
    commands = [each.values[0] for each in documented()]
    assert len(commands) > 80
    assert any("--prompts-per-step 8 " in command and "--micro-batch 32" in command for command in commands)


@pytest.mark.parametrize("line", list(documented()))
def test_a_documented_command_parses(line):
    named = re.fullmatch(r"vpo ([a-z ]+) (--[a-z-]+)", line)
    if named and named[1] in COMMANDS:  # the text names an option of a command
        assert named[2] in COMMANDS[named[1]]._option_string_actions
        return
    words = shlex.split(line, comments=True)[1:]
    parser().parse_args(words[: words.index("|")] if "|" in words else words)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("tasks show maze --set size=7 --set size=9", "set must give each name once, and gives 'size' twice: 7 and 9"),
        (
            "eval m --task math --set data=a --data b",
            "set must give each name once, and gives 'data' twice: 'a' and 'b'",
        ),
        ("train maze --method-set answers=2 --answers 3", "method_set must give each name once, and gives 'answers'"),
        (
            "train maze --trainer-set beta=0 --trainer-set beta=1",
            "trainer_set must give each name once, and gives 'beta'",
        ),
        ("search embedded --task maze --budget tokens=9 --budget tokens=8", "budget must give each name once"),
        ("search embedded --task maze --operators fresh=2,fresh", "operators must give each name once"),
    ],
)
def test_a_setting_that_is_given_twice_is_refused(arguments, message, capsys):
    assert main(shlex.split(arguments)) == 2
    assert message in capsys.readouterr().err
