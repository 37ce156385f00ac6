"""Tokens per second of decoding at the shapes of real models, with random weights: own, fused, and Triton's operations.

python benchmarks/decode.py [--shape qwen2.5-0.5b] [--prompts 32] [--times 8] [--length 330] [--tokens 256] [--top-k K]
    [--layers N] [--lora RANK] [--rounds 2] [--kernels] [--json FILE]

No model is downloaded: the time depends on shapes alone. --kernels lists what the GPU computes for a token, --layers
keeps the first layers of a shape alone, for a CPU; --lora adds an adapter, as in training.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, GenerationConfig, LlamaConfig, PretrainedConfig, Qwen2Config

from vpo.models import decoding
from vpo.models.fused_step import fused_steps

ON_GPU = torch.cuda.is_available()
PROFILED = 64  # tokens
LOOPS = ("shared", "fused", "triton")  # the model's own operations, fused ones, and Triton's kernels where it runs


def shapes() -> dict[str, PretrainedConfig]:
    """The configs of the models by name."""
    return {
        "qwen2.5-0.5b": Qwen2Config(
            hidden_size=896,
            intermediate_size=4864,
            num_hidden_layers=24,
            num_attention_heads=14,
            num_key_value_heads=2,
            vocab_size=151_936,
            tie_word_embeddings=True,
        ),
        "smollm2-135m": LlamaConfig(
            hidden_size=576,
            intermediate_size=1536,
            num_hidden_layers=30,
            num_attention_heads=9,
            num_key_value_heads=3,
            vocab_size=49_152,
            tie_word_embeddings=True,
        ),
    }


class Decoder:
    """A model of a shape, and the completions that it samples."""

    def __init__(self, config: PretrainedConfig, options: argparse.Namespace) -> None:
        """Make random weights, on the GPU in bf16."""
        if options.layers:
            config.num_hidden_layers = options.layers
        device = "cuda" if ON_GPU else "cpu"
        with torch.device(device):
            model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16 if ON_GPU else torch.float32)
        if options.lora:
            adapter = LoraConfig(r=options.lora, target_modules="all-linear", init_lora_weights=False)
            get_peft_model(model, adapter)  # changes its layers
        self.model, self.top_k = model.eval(), options.top_k
        prompts = torch.randint(5, 1000, (options.prompts, options.length), device=device)
        self.ids = prompts.repeat_interleave(options.times, 0)

    @torch.no_grad()
    def seconds(self, tokens: int) -> float:
        """Time to sample so many tokens of each completion."""
        settings = GenerationConfig(do_sample=True, top_k=self.top_k, max_new_tokens=tokens, pad_token_id=0)
        start = time.perf_counter()
        mask = torch.ones_like(self.ids)
        self.model.generate(self.ids, attention_mask=mask, generation_config=settings, custom_generate=decoding.decode)
        if ON_GPU:
            torch.cuda.synchronize()
        return time.perf_counter() - start

    def kernels(self) -> list[tuple[float, float, str]]:
        """Milliseconds and calls a token of each kernel, the longest first."""
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            self.seconds(PROFILED)
        rows = sorted(profile.key_averages(), key=lambda row: -row.self_device_time_total)
        return [(row.self_device_time_total / 1000 / PROFILED, row.count / PROFILED, row.key) for row in rows]


def main() -> None:
    """Time the loops for each shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=shapes(), action="append", help="may be repeated (default: all)")
    for name, default in {"prompts": 32, "times": 8, "length": 330, "tokens": 256, "top-k": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--lora", type=int, metavar="RANK")
    parser.add_argument("--rounds", type=int, default=2, help="of which the fastest counts")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for shape in options.shape or shapes():
        decoder = Decoder(shapes()[shape], options)
        steps = fused_steps(decoder.model.device)  # the last of them without Triton
        for loop, make in zip(LOOPS, [None, *reversed(steps)], strict=False):
            with mock.patch.object(decoding, "_fused_step", return_value=make):
                decoder.seconds(4)  # warms up
                seconds = min(decoder.seconds(options.tokens) for _ in range(options.rounds))
                kernels = decoder.kernels() if options.kernels and ON_GPU else []
            rate = len(decoder.ids) * options.tokens / seconds
            figures[f"{shape}, {loop}"] = {"tokens_per_second": round(rate), "kernels": kernels[:20]}
            print(
                f"{shape}, {loop}: {rate:,.0f} tokens/s, {1000 * seconds / options.tokens:.2f} ms a token", flush=True
            )
            for milliseconds, calls, name in kernels[:20]:
                print(f"  {milliseconds:7.3f} ms {calls:6.1f} calls  {name[:90]}")
    if options.json:
        settings = {name: value for name, value in vars(options).items() if name != "json"}
        options.json.write_text(json.dumps({"settings": settings, **figures}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
