"""How fast completions are written: with room for all keys and values made at once, against a cache that grows.

python benchmarks/generate.py [MODEL] [--completions 256] [--words 1000] [--tokens 100] [--json]
"""

import argparse
import json
import time
from typing import Any
from unittest import mock

from vpo import generate
from vpo.policies import Policy, embedded, load


def milliseconds(policy: Policy, prompts: list[list[dict[str, str]]], tokens: int, *, at_once: bool) -> float:
    """Return how long one token of all completions takes, prompts included."""
    from transformers import StaticCache

    def room(model: Any, length: int) -> dict[str, Any]:
        return {"past_key_values": StaticCache(config=model.config, max_cache_len=length)} if at_once else {}

    sampling = generate.Sampling(max_new_tokens=tokens, batch=len(prompts))
    with mock.patch.object(generate, "_room", room):
        generate.complete(policy, prompts[:2], sampling, quiet=True)
        start = time.perf_counter()
        drawn = generate.complete(policy, prompts, sampling, quiet=True)
    return 1000 * (time.perf_counter() - start) / max(length for _, length in drawn)


def main() -> None:
    """Time both ways, by turns, and print their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=embedded("maze", size=9), metavar="MODEL")
    parser.add_argument("--completions", type=int, default=256)
    parser.add_argument("--words", type=int, default=1000, help="of the longest prompt; the shortest has half as many")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    policy = load(options.model)
    lengths = [
        options.words - place * options.words // (2 * options.completions) for place in range(options.completions)
    ]
    prompts = [[{"role": "user", "content": "so " * length}] for length in lengths]
    found: dict[str, list[float]] = {"grown": [], "at once": []}
    for _ in range(3):
        for name, times in found.items():
            times.append(milliseconds(policy, prompts, options.tokens, at_once=name == "at once"))
    grown, at_once = (min(times) for times in found.values())
    if options.json:
        print(json.dumps({"milliseconds_a_token": found, "ratio": grown / at_once}))
        return
    print(f"{policy.model.device}: {grown:.1f} ms a token in a cache that grows, {at_once:.1f} in room made at once")
    print(f"{grown / at_once:.2f} times as fast")


if __name__ == "__main__":
    main()
