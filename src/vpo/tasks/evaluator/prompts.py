"""What a model is asked: to improve the start program, or an earlier answer, by rewriting or changing it."""

import re
from collections.abc import Mapping, Sequence

from vpo.tasks.evaluator.evaluation import Evaluation
from vpo.tasks.evaluator.metrics import COMBINED

DIFFS = """An answer is one or more SEARCH/REPLACE blocks, in exactly this form:

<<<<<<< SEARCH
lines of the program, exactly as they are
=======
the lines that replace them
>>>>>>> REPLACE

Lines that no block replaces stay as they are. The blocks of each answer are applied separately."""
REWRITES = (
    "An answer is the complete new program in one {fence} block. It keeps the functions, inputs and outputs that the "
    "evaluator uses."
)
BLOCKS = "Change only what is between EVOLVE-BLOCK-START and EVOLVE-BLOCK-END, and keep the lines with these markers."
ARTIFACTS, LONGEST = 8, 600  # of an evaluation that prompts show, and the characters of each
_FENCE = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


def block(program: str, language: str) -> str:
    """A program in a fenced block, whose fence is longer than any in it."""
    marks = "`" * max(3, 1 + max((len(each) for each in _FENCE.findall(program)), default=0))
    return f"{marks}{language}\n{program.strip()}\n{marks}"


def question(program: str, language: str, report: str, *, diffs: bool, blocks: bool) -> str:
    """The request to improve the start program.

    Args:
        program: to start from.
        language: of programs.
        report: on its evaluation.
        diffs: whether answers are changes.
        blocks: whether it has EVOLVE-BLOCK markers.
    """
    parts = [
        "Improve this program, so that its evaluation gives better metrics.",
        block(program, language),
        report,
        DIFFS if diffs else REWRITES.format(fence=f"```{language}"),
        BLOCKS if blocks else "",
    ]
    return "\n\n".join(filter(None, parts))


def report_on(evaluation: Evaluation, names: Sequence[str], lower: Sequence[str]) -> str:
    """The metrics of a program with what else its evaluator says, shortened.

    Args:
        evaluation: of the program.
        names: of the objectives, which come first.
        lower: of those, the ones of which less is better.
    """
    if evaluation.failure:
        return "\n\n".join([f"It could not be evaluated: {evaluation.failure}.", *_artifacts(evaluation.artifacts)])
    metrics = evaluation.metrics
    shown = [f"{name} {metrics[name]:.6g}" for name in names if name in metrics]
    more = [f"{name} {value:.6g}" for name, value in metrics.items() if name not in names]
    lines = [f"Its metrics: {', '.join(shown)}."]
    if COMBINED in names:
        lines.append(f"{COMBINED} decides.")
    if lower:
        lines.append(f"Less is better of {', '.join(lower)}.")
    if more:
        lines.append(f"For information: {', '.join(more[:20])}.")
    return "\n\n".join([" ".join(lines), *_artifacts(evaluation.artifacts)])


def _artifacts(artifacts: Mapping[str, str]) -> list[str]:
    """What an evaluator says besides numbers, as a list; empty for nothing."""
    shown = [f"- {name}: {_short(text)}" for name, text in list(artifacts.items())[:ARTIFACTS] if text.strip()]
    return ["\n".join(["Its evaluator says:", *shown])] if shown else []


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
