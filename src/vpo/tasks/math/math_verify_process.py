"""Compares answers with math-verify, one JSON line in and one out: a script for a process that is killed if it hangs.

It is run by its path and imports nothing of this package, so that it starts fast and can be killed at any time.
"""

import json
import logging
import resource
import signal
import sys

MEMORY = 4 * 1024**3  # bytes of address space
ORPHANED = 60  # seconds for a comparison, after which the process ends itself: its parent may have died


def main() -> None:
    """Write a line when ready, then answer each line ``[gold, answer]`` with true or false."""
    logging.disable(logging.CRITICAL)
    from math_verify import LatexExtractionConfig, parse, verify

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # LaTeX only, which parses plain expressions too: the other extraction picks any number from text it cannot parse.
    configs = (LatexExtractionConfig(boxed_match_priority=0),)

    def read(text: str) -> list[object]:
        parsed: list[object] = parse(
            f"\\boxed{{{text}}}", extraction_config=configs, fallback_mode="no_fallback", parsing_timeout=None
        )
        return parsed

    print("true", flush=True)
    for line in sys.stdin:
        signal.alarm(ORPHANED)  # by default it ends the process, whatever that is doing
        gold, answer = json.loads(line)
        try:
            equal = bool(verify(read(gold), read(answer), timeout_seconds=None))
        except Exception:  # hostile text may raise anything in a parser: it is not equal
            equal = False
        signal.alarm(0)
        print(json.dumps(equal), flush=True)


if __name__ == "__main__":
    main()
