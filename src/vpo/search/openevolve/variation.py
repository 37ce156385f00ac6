"""From an answer of a completion to the program of a child: a rewrite, or changes of the parent.

Both are read as OpenEvolve reads them. An answer that gives no program raises a `LostChildError` with the reason.
"""

from dataclasses import dataclass

from openevolve.config import Config
from openevolve.database import Program
from openevolve.utils.code_utils import (
    apply_diff_blocks,
    enforce_evolve_blocks,
    extract_diffs,
    format_diff_summary,
    parse_full_rewrite,
    split_diffs_by_target,
)

from vpo.tasks.forms import instruction

REWRITE_ANSWER = "Each answer is a complete program, in a code block."
DIFF_ANSWER = (
    "Each answer is one or more SEARCH/REPLACE blocks in the format above. They are applied to the current program, "
    "those of each answer separately."
)


class LostChildError(Exception):
    """An answer that does not become a program of the database. The message is the reason."""


@dataclass(frozen=True)
class Variation:
    """A program that was made from a parent.

    Attributes:
        code: of the program.
        changes: a summary for later prompts.
        description: of all changes since the first program, where OpenEvolve's config asks for one.
    """

    code: str
    changes: str
    description: str = ""


def request_answers(prompt: str, answers: int, *, diffs: bool) -> str:
    """A prompt of OpenEvolve that also asks for m answers, unless its template does. A single one needs no tags."""
    request = instruction(answers)
    if answers == 1 or request in prompt:
        return prompt
    return f"{prompt}\n\n# Several answers\n{DIFF_ANSWER if diffs else REWRITE_ANSWER}\n{request}\n"


def description_of(parent: Program, config: Config) -> str:
    """The description of a program's changes, in a config that asks for one."""
    return str(parent.changes_description or config.prompt.initial_changes_description)


def rewrite(code: str) -> Variation:
    """A program that was written anew."""
    return Variation(code, "Full rewrite")


def vary(answer: str, parent: Program, config: Config) -> Variation:
    """The program that an answer makes of its parent."""
    variation = _changed(answer, parent, config) if config.diff_based_evolution else _rewritten(answer, parent, config)
    if config.enforce_evolve_blocks:
        variation = _within_evolve_blocks(variation, parent)
    return variation


def check_length(code: str, config: Config) -> None:
    """Raise for a program that is longer than OpenEvolve's config allows."""
    if len(code) > config.max_code_length:
        raise LostChildError(f"code too long: {len(code)} characters, and max_code_length is {config.max_code_length}")


def _rewritten(answer: str, parent: Program, config: Config) -> Variation:
    code = parse_full_rewrite(answer, config.language)
    if not code:
        raise LostChildError("the answer has no code")
    if code == parent.code:
        raise LostChildError("the answer is the parent program")
    return rewrite(code)


def _changed(answer: str, parent: Program, config: Config) -> Variation:
    """The parent with the SEARCH/REPLACE blocks of an answer applied to it."""
    try:
        blocks = extract_diffs(answer, config.diff_pattern)
    except ValueError as error:
        raise LostChildError(f"malformed SEARCH/REPLACE block: {error}") from None
    if not blocks:
        raise LostChildError("the answer has no SEARCH/REPLACE block")
    description = ""
    if config.prompt.programs_as_changes_description:
        blocks, description = _described(blocks, parent, config)
    code, applied = apply_diff_blocks(parent.code, blocks)
    if applied == 0:
        raise LostChildError("no SEARCH block matches the parent program")
    if code == parent.code:
        raise LostChildError("the SEARCH/REPLACE blocks change nothing")
    prompts = config.prompt
    summary = format_diff_summary(
        blocks, max_line_len=prompts.diff_summary_max_line_len, max_lines=prompts.diff_summary_max_lines
    )
    return Variation(code, summary, description)


def _described(blocks: list[tuple[str, str]], parent: Program, config: Config) -> tuple[list[tuple[str, str]], str]:
    """The blocks for the code, and the description with those for the description applied to it."""
    before = description_of(parent, config)
    try:
        for_code, for_description, _ = split_diffs_by_target(
            blocks, code_text=parent.code, changes_description_text=before
        )
    except ValueError as error:
        raise LostChildError(f"ambiguous SEARCH block: {error}") from None
    description, applied = apply_diff_blocks(before, for_description)
    if applied == 0 or description.strip() in ("", before.strip()):
        raise LostChildError("the answer does not update the description of changes")
    return for_code, description


def _within_evolve_blocks(variation: Variation, parent: Program) -> Variation:
    """The program with everything outside of the parent's EVOLVE-BLOCK markers as it was."""
    try:
        code = enforce_evolve_blocks(parent.code, variation.code)
    except ValueError as error:
        raise LostChildError(f"EVOLVE-BLOCK markers: {error}") from None
    if code == parent.code:
        raise LostChildError("all changes are outside of the EVOLVE-BLOCK markers")
    return Variation(code, variation.changes, variation.description)
