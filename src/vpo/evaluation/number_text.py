"""Numbers and intervals as text."""

from vpo.core.intervals import Interval


def number_text(value: float, form: str = ".3f") -> str:
    """A number in a format of `format`, with a minus (−) in place of a hyphen."""
    return format(value, form).replace("-", "−")


def interval_text(interval: Interval, form: str = ".3f") -> str:
    """The mean with its bounds, such as "0.545 [0.506, 0.584]"; the mean alone where there are none."""
    mean = number_text(interval.mean, form)
    if interval.low is None:
        return mean
    return f"{mean} [{number_text(interval.low, form)}, {number_text(interval.high, form)}]"
