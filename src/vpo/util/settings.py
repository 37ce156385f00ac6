"""Settings as fields of dataclasses: each field carries its default, its bounds, and the help of its option.

The command line is made from these fields, so a default or a bound is written once.
"""

import math
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, get_type_hints

from vpo.util.errors import InputError
from vpo.util.type_checks import matches_type, type_name

KEY = "vpo.setting"  # of the metadata of a field
SEEDS = 2**32  # numpy takes no larger seed


@dataclass(frozen=True)
class Setting:
    """What is known of a field beside its type and default.

    Attributes:
        help: of the option, without its default.
        metavar: of the option.
        choices: the values that a text may have.
        shown: the default in words, for the help, where the field's own does not say it: "as trained".
        least: the smallest value.
        above: the value must be greater.
        most: the largest value.
    """

    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    shown: str | None = None
    least: float | None = None
    above: float | None = None
    most: float | None = None

    @property
    def bounds(self) -> str:
        """What a number must do, in words: "be greater than 0 and at most 1"; nothing where it has no bounds."""
        if self.least is not None and self.most is not None:
            return f"lie in {self.least}..{self.most}"
        low = None if self.least is None else f"{self.least} or more"
        low = low if self.above is None else f"greater than {self.above}"
        high = None if self.most is None else f"at most {self.most}"
        words = " and ".join(filter(None, (low, high)))
        return words and f"be {words}"

    def allows(self, value: float) -> bool:
        """Whether a number is within the bounds; one with bounds must be finite."""
        low = -math.inf if self.least is None else self.least
        above = -math.inf if self.above is None else self.above
        most = math.inf if self.most is None else self.most
        return not self.bounds or (math.isfinite(value) and low <= value <= most and value > above)


def setting(default: Any, help: str, **more: Any) -> Any:
    """Make a field of a settings dataclass; `more` is the rest of `Setting`. `list` and `dict` make new defaults."""
    metadata = {KEY: Setting(help, **more)}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def setting_like(settings: type, name: str, **changed: Any) -> Any:
    """Make a field as another dataclass has it, so that default, bounds and help are written once."""
    (source,) = (each for each in fields(settings) if each.name == name)
    known = setting_of(source)
    default = source.default_factory if source.default is MISSING else source.default
    return setting(changed.pop("default", default), **{**vars(known), **changed})


def setting_of(attribute: Field[Any]) -> Setting:
    """What is known of a field; of one that was not made by `setting`, nothing."""
    known: Setting = attribute.metadata.get(KEY, Setting(""))
    return known


def is_setting(attribute: Field[Any]) -> bool:
    """Whether a field was made by `setting`."""
    return KEY in attribute.metadata


def check_settings(settings: Any) -> None:
    """Refuse values of a settings dataclass that are of the wrong type, out of bounds, or no choice."""
    types = get_type_hints(type(settings))
    for each in fields(settings):
        value, known = getattr(settings, each.name), setting_of(each)
        if not matches_type(value, types[each.name]):
            raise InputError(f"{each.name} must be {type_name(types[each.name])}, not {value!r}")
        if isinstance(value, int | float) and not isinstance(value, bool) and not known.allows(value):
            raise InputError(f"{each.name} must {known.bounds}, not {value}")
        several = isinstance(value, list)
        for one in value if several else [value]:
            if known.choices and one not in (*known.choices, each.default):
                must = "name" if several else "be one of"
                raise InputError(f"{each.name} must {must} {', '.join(known.choices)}, not {one!r}")
