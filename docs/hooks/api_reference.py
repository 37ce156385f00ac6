"""Writes the reference of the Python names, and refuses to build a site that lacks one.

`<!-- generated: names of MODULE -->` in a page becomes a directive of mkdocstrings for each name in `MODULE.__all__`,
`<!-- generated: methods -->` one for each method, `<!-- generated: settings of MODULE:CLASS -->` a table of its fields.
The build fails where a module with an `__all__` is in no page, or a public name or a public member of it has no
docstring.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

SOURCE = Path(__file__).resolve().parents[2] / "src"
METHODS = "<!-- generated: methods -->"
SETTINGS = re.compile(r"^<!-- generated: settings of ([\w.]+):(\w+) -->$", re.MULTILINE)
MARK = re.compile(r"^<!-- generated: names of ([\w.]+) -->$", re.MULTILINE)
# Importing it needs verl, which lives in an environment of its own; docs/verl.md describes it.
ELSEWHERE = ("vpo.engines.verl",)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put a directive for each public name in its place."""
    markdown = SETTINGS.sub(
        lambda match: class_directive(getattr(import_module(match[1]), match[2]), f"{match[1]}.{match[2]}"), markdown
    )
    if METHODS in markdown:
        every = import_module("vpo.methods").METHODS
        markdown = markdown.replace(METHODS, "\n\n".join(method_directive(kind) for kind in every.values()))
    return MARK.sub(lambda match: directives(match[1]), markdown)


def on_pre_build(config: Any) -> None:
    """Refuse to build where a public module is in no page, or a public name has no docstring."""
    pages = "\n".join(path.read_text() for path in sorted(Path(config["docs_dir"]).rglob("*.md")))
    listed = set(MARK.findall(pages))
    absent = [module for module in public_modules() if names_of(module) and module not in listed]
    if absent:
        raise PluginError(f"no page of the reference has <!-- generated: names of {absent[0]} -->")
    undocumented = [name for module in sorted(listed) for name in without_docstring(module)]
    if undocumented:
        raise PluginError(f"public names without a docstring: {', '.join(undocumented)}")


@cache
def public_modules() -> tuple[str, ...]:
    """Every module of vpo that states its public names, a package before its modules."""
    return tuple(sorted(_stating_modules()))


def _stating_modules() -> Iterator[str]:
    for path in sorted((SOURCE / "vpo").rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        states = any(
            isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
            for node in ast.parse(path.read_text()).body
        )
        if states and not module.startswith(ELSEWHERE):
            yield module


def names_of(module: str) -> list[str]:
    """The public names of a module, without those that an earlier one has: `vpo` re-exports names of `vpo.core`."""
    earlier = [each for each in public_modules() if each < module]
    shown = {id(getattr(import_module(each), name)) for each in earlier for name in import_module(each).__all__}
    own = import_module(module)
    return [name for name in own.__all__ if id(getattr(own, name)) not in shown]


def directives(module: str) -> str:
    """A directive of mkdocstrings for each public name, functions and classes before constants."""
    names = sorted(names_of(module), key=lambda name: (not documented(module, name), name.lower()))
    return "\n\n".join(directive(module, name) for name in names)


def directive(module: str, name: str) -> str:
    """The directive of one name, by where it is defined: `vpo.core.diversity` is a module and a function."""
    value = getattr(import_module(module), name)
    if not documented(module, name):
        return lines(f"::: {module}.{name}", heading=f"{module}.{name}", toc_label=name, show_attribute_values="false")
    return class_directive(value, f"{module}.{name}")


def class_directive(value: Any, heading: str) -> str:
    """The directive of a class or function; one of settings has a table of these in place of its signature."""
    path, label = f"::: {value.__module__}.{value.__qualname__}", heading.rpartition(".")[2]
    table = settings_table(value) if inspect.isclass(value) and is_dataclass(value) else ""
    if not table:
        return lines(path, heading=heading, toc_label=label)
    hidden = {"show_signature": "false", "separate_signature": "false", "members": "false"}
    return lines(path, heading=heading, toc_label=label, **hidden) + f"\n\n{table}"


def method_directive(kind: Any) -> str:
    """The directive of a method: its paper, formula and settings; what it declares is that of `Method`."""
    path = f"::: {kind.__module__}.{kind.__qualname__}"
    return lines(path, heading=kind.name, toc_label=kind.name, members="false")


def lines(directive: str, **options: str) -> str:
    """A directive with its options."""
    return "\n".join([directive, "    options:", *(f"      {name}: {value}" for name, value in options.items())])


def settings_table(kind: Any) -> str:
    """A table of the fields that are settings, as the command line shows them; empty where there are none."""
    from vpo.util.settings import is_setting, setting_of

    rows = []
    for each in fields(kind):
        if is_setting(each):
            known = setting_of(each)
            default = known.shown or ("" if each.default is MISSING else f"`{each.default!r}`")
            cells = (f"`{each.name}`", default, known.help)
            rows.append(" | ".join(cell.replace("|", "\\|") for cell in cells))
    if not rows:
        return ""
    return "\n".join(["| setting | default | |", "|---|---|---|", *(f"| {row} |" for row in rows)])


def documented(module: str, name: str) -> bool:
    """Whether a name is a function or class; others are constants and type aliases, which have no docstring."""
    value = getattr(import_module(module), name)
    return inspect.isclass(value) or inspect.isroutine(value)


def without_docstring(module: str) -> Iterator[str]:
    """Public names of a module, and public members of its classes, that have no docstring."""
    for name in names_of(module):
        value = getattr(import_module(module), name)
        if not documented(module, name):
            continue
        if not value.__doc__:
            yield f"{module}.{name}"
        if inspect.isclass(value):
            yield from (f"{module}.{name}.{member}" for member in bare_members(value))


def bare_members(owner: type) -> Iterator[str]:
    """Public methods and properties that a class itself defines without a docstring."""
    for name, value in vars(owner).items():
        member = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if not name.startswith("_") and inspect.isroutine(member) and not inspect.getdoc(getattr(owner, name)):
            yield name
