"""How commands print."""

import json
import sys


def as_json(data: object) -> str:
    """JSON in plain ASCII, which any terminal can show."""
    return json.dumps(data, indent=2)


def plain(text: str) -> str:
    """Escape control characters but for newlines, so that the terminal shows them and does not obey them."""
    return "".join(each if each == "\n" or each.isprintable() else ascii(each)[1:-1] for each in text)


def print_warning(text: str) -> None:
    """Print a warning after what was printed so far."""
    sys.stdout.flush()
    print(plain(f"vpo: warning: {text}"), file=sys.stderr)
