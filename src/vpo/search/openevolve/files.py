"""Files of an OpenEvolve project: the template that asks for m answers, and the checkpoints."""

import json
from pathlib import Path

from vpo.tasks.forms import instruction
from vpo.util.files import write_text

CHECKPOINTS = "checkpoints"
REWRITE = """# Scores of the current program
- Fitness: {fitness_score}
- Feature coordinates: {feature_coords}
- Focus areas: {improvement_areas}

{artifacts}

# Programs so far
{evolution_history}

# Current program
```{language}
{current_program}
```

# Task
Rewrite the program to improve its fitness. Programs that are good in different ways are wanted, over these dimensions:
{feature_dimensions}. Keep its inputs and outputs, and give the complete program each time.

"""


def write_template(answers: int, folder: Path, text: str = REWRITE, request: str | None = None) -> None:
    """Write the prompt template that asks for m answers.

    Args:
        answers: m.
        folder: of the templates, `prompt.template_dir` of OpenEvolve's config.
        text: of the prompt before the request, with the fields of OpenEvolve's template `full_rewrite_user`.
        request: the text that asks for the answers; by default in tags, without an example.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "full_rewrite_user.txt", f"{text}{escaped(request or instruction(answers))}\n")


def escaped(text: str) -> str:
    """A text for a template, with braces that are not fields."""
    return text.replace("{", "{{").replace("}", "}}")


def checkpoint_path(output: Path, iteration: int) -> Path:
    """The folder of a checkpoint, named as OpenEvolve names it."""
    return output / CHECKPOINTS / f"checkpoint_{iteration}"


def newest_checkpoint(output: Path) -> tuple[int, Path] | None:
    """The iteration and the folder of the last complete checkpoint; None where there is none."""
    complete = []
    for path in (output / CHECKPOINTS).glob("checkpoint_*"):
        try:
            complete.append((int(json.loads((path / "metadata.json").read_text())["last_iteration"]), path))
        except (OSError, ValueError, KeyError, TypeError):  # it was not written to its end
            continue
    return max(complete, default=None)
