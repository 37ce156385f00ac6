"""Compares answers with math-verify, one JSON line in and one out: a script for a process that is killed if it hangs.

It is run by its path and imports nothing of this package, so that it starts fast and holds nothing worth keeping.
"""

import json
import logging
import resource
import signal
import sys

MEMORY = 4 * 1024**3  # bytes of address space
ORPHANED = 60  # seconds for a comparison after which the process ends by itself, should nobody be left to kill it


def main() -> None:
    """Say that all is ready, then answer each line ``[gold, answer]`` with true or false."""
    logging.disable(logging.CRITICAL)
    from math_verify import LatexExtractionConfig, parse, verify

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # LaTeX alone, which reads plain expressions too: the other way looks for any number in what it cannot read.
    configs = (LatexExtractionConfig(boxed_match_priority=0),)

    def read(text: str) -> list[object]:
        found: list[object] = parse(
            f"\\boxed{{{text}}}", extraction_config=configs, fallback_mode="no_fallback", parsing_timeout=None
        )
        return found

    print("true", flush=True)
    for line in sys.stdin:
        signal.alarm(ORPHANED)  # its default is to end the process, whatever it is doing
        gold, answer = json.loads(line)
        try:
            equal = bool(verify(read(gold), read(answer), timeout_seconds=None))
        except Exception:  # whatever a hostile text makes of a parser: it is not equal to anything
            equal = False
        signal.alarm(0)
        print(json.dumps(equal), flush=True)


if __name__ == "__main__":
    main()
