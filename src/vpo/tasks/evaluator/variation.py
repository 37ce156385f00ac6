"""From an answer of a completion to the program of a child: a rewrite, or changes of the parent.

Both are read as OpenEvolve reads them. An answer that gives no program raises a `VariationError` with the reason.
"""

from dataclasses import dataclass

from openevolve.config import Config
from openevolve.utils.code_utils import (
    apply_diff_blocks,
    enforce_evolve_blocks,
    extract_diffs,
    format_diff_summary,
    parse_full_rewrite,
    split_diffs_by_target,
)

OPENING, MIDDLE, CLOSING = "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE"  # of OpenEvolve's own `diff_pattern`


class VariationError(ValueError):
    """An answer that gives no program. The message is the reason."""


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


def rewrite(code: str) -> Variation:
    """A program that was written anew."""
    return Variation(code, "Full rewrite")


def vary(answer: str, parent: str, config: Config, description: str = "") -> Variation:
    """The program that an answer makes of its parent.

    Args:
        answer: of a model.
        parent: the code of the program that its prompt showed.
        config: of OpenEvolve.
        description: of the parent's changes, where the config asks for one.
    """
    if config.diff_based_evolution:
        variation = _changed(answer, parent, config, description)
    else:
        variation = _rewritten(answer, parent, config)
    if config.enforce_evolve_blocks:
        variation = _within_evolve_blocks(variation, parent)
    return variation


def check_length(code: str, config: Config) -> None:
    """Raise for a program that is longer than OpenEvolve's config allows."""
    if len(code) > config.max_code_length:
        raise VariationError(f"code too long: {len(code)} characters, and max_code_length is {config.max_code_length}")


def _rewritten(answer: str, parent: str, config: Config) -> Variation:
    code = parse_full_rewrite(answer, config.language)
    if not code:
        raise VariationError("the answer has no code")
    if code == parent:
        raise VariationError("the answer is the parent program")
    return rewrite(code)


def _changed(answer: str, parent: str, config: Config, before: str) -> Variation:
    """The parent with the SEARCH/REPLACE blocks of an answer applied to it."""
    if config.diff_pattern == Config.diff_pattern:
        _check_closed(answer)
    try:
        blocks = extract_diffs(answer, config.diff_pattern)
    except ValueError as error:
        raise VariationError(f"malformed SEARCH/REPLACE block: {error}") from None
    if not blocks:
        raise VariationError("the answer has no SEARCH/REPLACE block")
    description = ""
    if config.prompt.programs_as_changes_description:
        blocks, description = _described(blocks, parent, before)
    code, applied = apply_diff_blocks(parent, blocks)
    if applied == 0:
        raise VariationError("no SEARCH block matches the parent program")
    if code == parent:
        raise VariationError("the SEARCH/REPLACE blocks change nothing")
    prompts = config.prompt
    summary = format_diff_summary(
        blocks, max_line_len=prompts.diff_summary_max_line_len, max_lines=prompts.diff_summary_max_lines
    )
    return Variation(code, summary, description)


def _check_closed(answer: str) -> None:
    """Raise for a block that is not closed: looking for its end, OpenEvolve's pattern takes cubic time."""
    position = 0
    while (start := answer.find(OPENING, position)) >= 0:
        middle = answer.find(MIDDLE, start + len(OPENING))
        end = -1 if middle < 0 else answer.find(CLOSING, middle + len(MIDDLE))
        if end < 0:
            raise VariationError("malformed SEARCH/REPLACE block: it is not closed")
        position = end + len(CLOSING)


def _described(blocks: list[tuple[str, str]], parent: str, before: str) -> tuple[list[tuple[str, str]], str]:
    """The blocks for the code, and the description with those for the description applied to it."""
    try:
        for_code, for_description, _ = split_diffs_by_target(blocks, code_text=parent, changes_description_text=before)
    except ValueError as error:
        raise VariationError(f"ambiguous SEARCH block: {error}") from None
    description, applied = apply_diff_blocks(before, for_description)
    if applied == 0 or description.strip() in ("", before.strip()):
        raise VariationError("the answer does not update the description of changes")
    return for_code, description


def _within_evolve_blocks(variation: Variation, parent: str) -> Variation:
    """The program with everything outside of the parent's EVOLVE-BLOCK markers as it was."""
    try:
        code = enforce_evolve_blocks(parent, variation.code)
    except ValueError as error:
        raise VariationError(f"EVOLVE-BLOCK markers: {error}") from None
    if code == parent:
        raise VariationError("all changes are outside of the EVOLVE-BLOCK markers")
    return Variation(code, variation.changes, variation.description)
