"""How fast completions are sampled: by transformers' own loop, with shared prompts, and with fused operations.

python benchmarks/generate.py [MODEL] [--prompts 32] [--times 8] [--words 100] [--tokens 100] [--rounds 3] [--json]
"""

import argparse
import json
import time
from contextlib import ExitStack
from unittest import mock

from operations import operations_a_token
from vpo.models import decoding, generate
from vpo.models.locate import embedded
from vpo.models.policy import Policy, load
from vpo.models.transformers_private import is_llama

LOOPS = ("alone", "shared", "fused")  # each is as the one before it, and faster


def milliseconds(policy: Policy, prompts: list[list[dict[str, str]]], tokens: int, loop: str) -> float:
    """Time of one token of all completions in one of `LOOPS`, prompts included."""
    sampling = generate.Sampling(max_new_tokens=tokens, batch=len(prompts))
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(generate, "shares_prompts", return_value=loop != "alone"))
        patches.enter_context(mock.patch.object(decoding, "can_fuse", is_llama if loop == "fused" else _never))
        generate.complete(policy, prompts[:2], sampling, quiet=True)
        start = time.perf_counter()
        completions = generate.complete(policy, prompts, sampling, quiet=True)
    return 1000 * (time.perf_counter() - start) / max(each.tokens for each in completions)


def _never(_: object) -> bool:
    return False


def main() -> None:
    """Time all loops, alternating, and print their ratios."""
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
    loops = LOOPS if is_llama(policy.model) else LOOPS[:2]
    milliseconds_of: dict[str, list[float]] = {loop: [] for loop in loops}
    for _ in range(options.rounds):
        for loop, times in milliseconds_of.items():
            times.append(milliseconds(policy, prompts, options.tokens, loop))
    operations = {loop: operations_a_token(policy.model, fused=loop == "fused") for loop in loops[1:]}
    fastest = {loop: min(times) for loop, times in milliseconds_of.items()}
    ratios = {loop: fastest["alone"] / fastest[loop] for loop in loops[1:]}
    if options.json:
        print(json.dumps({"milliseconds_a_token": milliseconds_of, "ratios": ratios, "operations_a_token": operations}))
        return
    print(f"{policy.model.device}, {len(prompts)} completions")
    for loop, time_a_token in fastest.items():
        further = f", {ratios[loop]:.2f} times as fast, {operations[loop]} operations" if loop in ratios else ""
        print(f"  {loop}: {time_a_token:.1f} ms a token{further}")


if __name__ == "__main__":
    main()
