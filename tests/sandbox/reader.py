"""A judge that rebuilds a program's outputs as plain values in its own process, and keeps them to the end.

python -m tests.sandbox.reader < REQUEST, which holds source, entry and number of tests; prints standstill and growth.
"""

import io
import json
import sys
from typing import Any

from benchmarks.heartbeat import Heartbeat


class Printed(io.BytesIO):
    """Takes the place of `os` for a program that prints by `os.write`."""

    def write(self, _: int, data: bytes) -> int:  # type: ignore[override]
        """What os.write does."""
        return super().write(data)


def rebuilt(value: Any) -> Any:
    """A copy of base types, as it comes from a text that describes the value."""
    for kind in (list, tuple, set, frozenset):
        if isinstance(value, kind):
            return kind([rebuilt(each) for each in value])
    if isinstance(value, dict):
        return {rebuilt(key): rebuilt(each) for key, each in value.items()}
    if isinstance(value, int):
        return int(hex(value), 16)
    return json.loads(json.dumps(value))


def main() -> None:
    source, entry, tests = json.load(sys.stdin)
    names: dict[str, Any] = {}
    if entry is None:
        names["os"] = Printed()
        source = source.removeprefix("import os\n")
    exec(source, names)
    output = names[entry](1) if entry else names["os"].getvalue()
    kept = []
    with Heartbeat() as heartbeat:
        for _ in range(tests):
            value = rebuilt(output) if entry else output.decode("utf-8", "replace")
            kept.append(value if entry else (value, [line.rstrip() for line in value.split("\n")]))
    print(json.dumps([heartbeat.standstill, heartbeat.growth]))


if __name__ == "__main__":
    main()
