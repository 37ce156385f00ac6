"""The formats of `vpo import`, by name, and how one is detected."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vpo.evaluation.importers import bigcode, evalplus, lighteval, lm_eval, openevolve, table, trl, verifiers
from vpo.evaluation.importers.answers import ImportedAnswer, Notes
from vpo.evaluation.importers.source import Source
from vpo.util.errors import InputError, nearest


@dataclass(frozen=True)
class Format:
    """A format of files.

    Attributes:
        summary: what writes them.
        files: those of a source that are in this format, by their content.
        read: their answers; what it leaves out is counted in the notes.
    """

    summary: str
    files: Callable[[Source], list[Path]]
    read: Callable[[Source, list[Path], Notes], Iterator[ImportedAnswer]]


FORMATS: dict[str, Format] = {
    "lm-eval": Format("lm-evaluation-harness: samples_*.jsonl of --log_samples", lm_eval.files, lm_eval.read),
    "lighteval": Format("lighteval: details_*.parquet of --save-details", lighteval.files, lighteval.read),
    "evalplus": Format("EvalPlus: *eval_results.json", evalplus.files, evalplus.read),
    "bigcode": Format("bigcode-evaluation-harness: logs.json with generations*.json", bigcode.files, bigcode.read),
    "verifiers": Format("verifiers: results.jsonl of vf-eval", verifiers.files, verifiers.read),
    "openevolve": Format("OpenEvolve: a checkpoint with programs/*.json", openevolve.files, openevolve.read),
    "trl": Format("TRL: completions_*.parquet of log_completions", trl.files, trl.read),
}
TABLE = "table"
NAMES = (*FORMATS, TABLE)


def files_of(source: Source, name: str) -> list[Path]:
    """The files of a source in a format; refuses a source that has none."""
    if name not in FORMATS:
        raise InputError(f"from names the format {name!r}: {nearest(name, NAMES)}")
    paths = FORMATS[name].files(source)
    if not paths:
        raise InputError(f"{source.path}: no file in the format {name} ({FORMATS[name].summary}); {_seen(source)}")
    return paths


def detect(source: Source) -> str:
    """The format of a source by its content; refuses one that is unknown or ambiguous."""
    matching = {name: paths for name, each in FORMATS.items() if (paths := each.files(source))}
    if len(matching) == 1:
        return next(iter(matching))
    if not matching and table.files(source):
        return TABLE
    if matching:
        several = ", ".join(f"{name} ({paths[0]})" for name, paths in matching.items())
        raise InputError(f"{source.path} has files of several formats: {several}; choose one with --from")
    raise InputError(
        f"{source.path}: the format is not known: give --from {'|'.join(FORMATS)}, or name the columns of a table, "
        f"such as --map problem=COLUMN,scores=COLUMN; {_seen(source)}"
    )


def _seen(source: Source) -> str:
    """What is in a source, for a message."""
    if source.tables:
        columns = source.first_row(source.tables[0])
        return f"the columns of {source.tables[0]} are {', '.join(columns) or 'none: it has no rows'}"
    if source.documents:
        document = source.document(source.documents[0])
        fields = list(document)[:8] if isinstance(document, dict) else []
        return f"{source.documents[0]} has {', '.join(fields) or f'a JSON {type(document).__name__}'}"
    return "it has no .jsonl, .parquet or .json file, or only pools (*.pool.jsonl)"
