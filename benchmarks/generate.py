"""How fast completions are sampled: with shared prompts, and by transformers' own loop.

python benchmarks/generate.py [MODEL] [--prompts 32] [--times 8] [--words 100] [--tokens 100] [--rounds 3] [--json]
"""

import argparse
import json
import time
from unittest import mock

from vpo.models import generate
from vpo.models.locate import embedded
from vpo.models.policy import Policy, load


def milliseconds(policy: Policy, prompts: list[list[dict[str, str]]], tokens: int, *, shared: bool) -> float:
    """Time of one token of all completions, prompts included."""
    sampling = generate.Sampling(max_new_tokens=tokens, batch=len(prompts))
    with mock.patch.object(generate, "shares_prompts", return_value=shared):
        generate.complete(policy, prompts[:2], sampling, quiet=True)
        start = time.perf_counter()
        completions = generate.complete(policy, prompts, sampling, quiet=True)
    return 1000 * (time.perf_counter() - start) / max(each.tokens for each in completions)


def main() -> None:
    """Time both, alternating, and print their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default=embedded("maze", size=9), metavar="MODEL")
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--times", type=int, default=8, help="completions of each prompt")
    parser.add_argument("--words", type=int, default=100, help="of the longest prompt; the shortest has half as many")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3, help="of which the fastest counts")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    policy = load(options.model)
    lengths = [options.words - index * options.words // (2 * options.prompts) for index in range(options.prompts)]
    prompts = [[{"role": "user", "content": "so " * length}] for length in lengths for _ in range(options.times)]
    milliseconds_of: dict[str, list[float]] = {"alone": [], "shared": []}
    for _ in range(options.rounds):
        for name, times in milliseconds_of.items():
            times.append(milliseconds(policy, prompts, options.tokens, shared=name == "shared"))
    alone, shared = (min(times) for times in milliseconds_of.values())
    if options.json:
        print(json.dumps({"milliseconds_a_token": milliseconds_of, "ratio": alone / shared}))
        return
    print(
        f"{policy.model.device}: {alone:.1f} ms a token of {len(prompts)} completions, {shared:.1f} with shared prompts"
    )
    print(f"{alone / shared:.2f} times as fast")


if __name__ == "__main__":
    main()
