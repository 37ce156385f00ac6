"""Forms of m answers in one completion, by name. `--format NAME` chooses one; `vpo.json` remembers it with a model.

A new form subclasses `Form`, in a file of this package, and stands in `FORMS`.
"""

from vpo.tasks.fences import OPAQUE
from vpo.tasks.forms.base import Example, Form
from vpo.tasks.forms.headings import Headings, labelled
from vpo.tasks.forms.json_list import JsonList
from vpo.tasks.forms.tags import OneShotTags, SystemTags, Tags
from vpo.tasks.reading import Section
from vpo.tasks.thoughts import prompted_end
from vpo.util.errors import InputError, nearest

FORMS: dict[str, Form] = {form.name: form for form in (Tags(), SystemTags(), OneShotTags(), Headings(), JsonList())}
TAGS = FORMS["tags"]
ONE_SHOT = FORMS["tags-shot"]

__all__ = ["FORMS", "ONE_SHOT", "TAGS", "Example", "Form", "find_form", "find_sections", "instruction", "labelled"]


def find_form(name: object) -> Form:
    """A form by its name."""
    if not isinstance(name, str) or name not in FORMS:
        raise InputError(f"format {name!r} is not known: {nearest(str(name), FORMS)}")
    return FORMS[name]


def instruction(answers: int, example: Example | None = None) -> str:
    """The text that asks for answers in tags; for a single one, in ``<answer>``."""
    if answers < 1:
        raise InputError(f"answers must be 1 or more, not {answers}")
    if answers > 1:
        return TAGS.request(answers, example)
    given = "Give your answer between these tags, and nothing after them"
    if example is None:
        return f"{given}:\n<answer>your answer</answer>"
    shown = f"{example.before}<answer>{example.answers[0]}</answer>"
    return f"{given}. For example, for another question ({example.question}):\n{shown}"


def find_sections(form: Form, completion: str, answers: int) -> list[Section]:
    """The answers of a set: in the form that was asked for; without any, in numbered tags, then under headings.

    A form of which all is in a thought that the prompt opened counts last.
    """
    thought = prompted_end(completion, OPAQUE)
    drafts: list[Section] = []
    for each in dict.fromkeys([form, TAGS, FORMS["headings"]]):
        found = [
            section._replace(strict=section.strict and each is form) for section in each.sections(completion, answers)
        ]
        if found and found[-1].end > thought:
            return found
        drafts = drafts or found
    return drafts
