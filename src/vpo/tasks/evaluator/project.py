"""The files of an evaluator: `evaluate`, the program that it starts from, and a config of OpenEvolve.

In a folder they are named as in OpenEvolve's examples.
"""

import hashlib
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from openevolve.config import Config
from openevolve.prompt.templates import TemplateManager
from openevolve.utils.code_utils import extract_code_language, parse_evolve_blocks

from vpo.util.errors import InputError, one_line

EVALUATORS = ("evaluator.py", "evaluate.py")
STARTS = ("initial_program.*", "initial.*")
CONFIGS = ("config.yaml", "config_phase_1.yaml")
MOST_FILES, LARGE = 1000, 100_000_000  # of a fingerprint: files, and bytes of one that is not read


@dataclass(frozen=True)
class Project:
    """An evaluator with its start program.

    Attributes:
        evaluator: its file, an absolute path.
        start: the file of the start program.
        program: the text of that.
        config: of OpenEvolve.
        system: the system message.
        has_blocks: whether the start program has EVOLVE-BLOCK markers. Whether what is outside of them can change is a
            setting of the config; without a config it cannot.
        fingerprint: a hash of the evaluator with the files beside it and the Python files below, the start program and
            the config.
    """

    evaluator: Path
    start: Path
    program: str
    config: Config
    system: str
    has_blocks: bool
    fingerprint: str

    @property
    def suffix(self) -> str:
        """Of the files of programs."""
        return self.start.suffix or ".py"


def read_project(evaluator: str, start: str | None, config: str | None) -> Project:
    """Read the files; the evaluator may be the folder that has them all."""
    file = Path(evaluator).absolute()
    if file.is_dir():
        start = start or str(_only(file, STARTS, "start"))
        file = _only(file, EVALUATORS, "evaluator")
    if not file.is_file():
        raise InputError(f"no such file: {file} (evaluator)")
    if start is None:
        raise InputError("start must be given: the program to begin with (--start FILE)")
    start_file = Path(start).absolute()
    for name, path in (("evaluator", file), ("start", start_file)):
        if not path.is_file():
            raise InputError(f"no such file: {path} ({name})")
    for folder in (file.parent, file.resolve().parent):
        _check_folder(folder)
    try:
        program = start_file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{start_file}: the start program is not text in UTF-8") from None
    blocks = bool(parse_evolve_blocks(program))
    openevolve = _read_config(file.parent, config) or Config(enforce_evolve_blocks=blocks)
    openevolve.language = openevolve.language or extract_code_language(program)
    system = openevolve.prompt.system_message
    templates = TemplateManager(custom_template_dir=openevolve.prompt.template_dir).templates
    fingerprint = _fingerprint(file, start_file, openevolve)
    return Project(file, start_file, program, openevolve, templates.get(system, system), blocks, fingerprint)


def _fingerprint(evaluator: Path, start: Path, config: Config) -> str:
    folder = evaluator.resolve().parent
    beside = [*folder.iterdir(), *islice(folder.rglob("*.py"), MOST_FILES)]
    files = sorted({start, evaluator, *beside})[: 2 * MOST_FILES]
    parts = [f"{path.name} {_contents(path)}" for path in files if path.is_file()]
    return hashlib.sha256("\n".join([evaluator.name, *parts, repr(config)]).encode()).hexdigest()


def _contents(path: Path) -> str:
    """A hash of a file; of a very large one its size."""
    size = path.stat().st_size
    return str(size) if size > LARGE else hashlib.sha256(path.read_bytes()).hexdigest()


def _only(folder: Path, patterns: Sequence[str], setting: str) -> Path:
    """The one file of a folder whose name is like one of the patterns."""
    found = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    if len(found) != 1:
        names = " or ".join(patterns)
        raise InputError(f"{setting} must be given: {folder} has {len(found)} files {names}, not 1")
    return found[0]


def _check_folder(folder: Path) -> None:
    """Refuse a folder whose contents no program should see: all that lies beside the evaluator can be read by them."""
    folder, home = folder.resolve(), Path(os.path.expanduser("~")).resolve()
    if folder == Path("/tmp") or folder == home or folder in home.parents:
        raise InputError(f"evaluator must be in a folder of its own, which programs may read, not in {folder}")


def _read_config(folder: Path, config: str | None) -> Config | None:
    """The config; None where there is none."""
    import yaml  # type: ignore[import-untyped]  # a dependency of openevolve

    paths: Sequence[Path] = [Path(config).absolute()] if config else [folder / name for name in CONFIGS]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        if config:
            raise InputError(f"no such file: {config} (config)")
        return None
    try:
        values: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        values.pop("llm", None)  # names models and keys, which this machine need not have
        read = Config.from_dict(values)
    except Exception as error:  # whatever OpenEvolve raises for what it does not know
        raise InputError(f"{path}: not a config of OpenEvolve ({type(error).__name__}: {one_line(error)})") from None
    if read.evaluator.use_llm_feedback:
        warnings.warn(f"{path}: use_llm_feedback is ignored: an evaluator has no network", stacklevel=2)
    read.prompt.programs_as_changes_description = False
    if read.prompt.template_dir:
        read.prompt.template_dir = str((path.parent / read.prompt.template_dir).resolve())
    return read
