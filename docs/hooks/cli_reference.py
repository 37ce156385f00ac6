"""Writes the reference of the command line from the parsers, wherever a page has `<!-- generated: commands -->`."""

import argparse
import re
from collections.abc import Iterator
from typing import Any

MARK = "<!-- generated: commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the reference in its place."""
    return markdown.replace(MARK, reference()) if MARK in markdown else markdown


def reference() -> str:
    """All commands, with usage and options."""
    from vpo.cli.main import parser

    return "\n\n".join(command_text(name, each) for name, each in commands(parser(), "vpo"))


def commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that can be run, and each group of commands before its members."""
    nested = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if name != "vpo":
        yield name, parser
    for each in nested:
        for verb, child in each.choices.items():
            yield from commands(child, f"{name} {verb}")


def command_text(name: str, parser: argparse.ArgumentParser) -> str:
    """The section of a command."""
    parts = [f"## {name}", escaped(filled(parser.description, parser))]
    parts.append(f"```text\n{usage(parser)}\n```")
    for group in parser._action_groups:
        actions = [each for each in group._group_actions if shown(each)]
        if actions:
            title = {"positional arguments": "Arguments", "options": "Options"}.get(group.title or "", group.title)
            parts += [f"**{escaped(title or '')}**", "\n\n".join(map(action_text, actions))]
    if parser.epilog:
        parts.append(f"```text\n{filled(parser.epilog, parser).strip()}\n```")
    return "\n\n".join(part for part in parts if part)


def filled(text: str | None, parser: argparse.ArgumentParser) -> str:
    """A text of a parser with its name filled in, as argparse does it."""
    return (text or "").replace("%(prog)s", parser.prog)


def usage(parser: argparse.ArgumentParser) -> str:
    """The usage line, without its first word, at a width that fits the page."""
    formatter = argparse.HelpFormatter(parser.prog, width=84)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix="")
    return formatter.format_help().strip()


def shown(action: argparse.Action) -> bool:
    """Whether an action stands in the reference: commands of commands have sections of their own."""
    hidden = isinstance(action, (argparse._HelpAction, argparse._SubParsersAction))
    return not hidden and action.help is not argparse.SUPPRESS


def action_text(action: argparse.Action) -> str:
    """One option or argument as a definition."""
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if not metavar and action.choices:
        metavar = "|".join(map(str, action.choices))
    if action.option_strings:
        value = "" if action.nargs == 0 else f" {metavar or action.dest.upper()}"
        term = ", ".join(action.option_strings) + value
    else:
        term = metavar or action.dest
    text = (action.help or "") % {**vars(action), "prog": "vpo"}
    return f"`{term}`\n:   {escaped(text)}"


def escaped(text: str) -> str:
    """A text of the parsers as Markdown: code in backticks stays, all else is plain."""
    pieces = re.split(r"(`[^`]*`)", text)
    pieces[::2] = [re.sub(r"([\\*_<>\[\]|#])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)
