"""Sampling completions from a policy with transformers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vpo.policies import Policy
from vpo.progress import progress


@dataclass(frozen=True)
class Sampling:
    """How completions are drawn.

    Attributes:
        temperature: 0.7, as published for evaluation.
        top_p: keeps the most likely tokens of this much mass.
        max_new_tokens: where a completion is cut off.
        batch: completions generated at once.
        seed: of the draws.
    """

    temperature: float = 0.7
    top_p: float = 1.0
    max_new_tokens: int = 256
    batch: int = 1024
    seed: int = 0


def complete(
    policy: Policy, prompts: Sequence[Sequence[dict[str, str]]], sampling: Sampling
) -> Iterator[tuple[str, int]]:
    """Yield a completion for each prompt, given as chat messages, and the number of its tokens."""
    import torch

    tokenizer, model = policy.tokenizer, policy.model
    texts = [tokenizer.apply_chat_template(list(each), add_generation_prompt=True, tokenize=False) for each in prompts]
    torch.manual_seed(sampling.seed)
    starts = range(0, len(texts), sampling.batch)
    settings: dict[str, Any] = {
        "do_sample": True,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": 0,
        "max_new_tokens": sampling.max_new_tokens,
        "pad_token_id": tokenizer.pad_token_id,
    }
    for start in progress(starts, "generating", len(starts)):
        inputs = tokenizer(
            texts[start : start + sampling.batch], return_tensors="pt", padding=True, add_special_tokens=False
        ).to(model.device)
        with torch.inference_mode():
            output = model.generate(inputs["input_ids"], attention_mask=inputs["attention_mask"], **settings)
        for row in output[:, inputs["input_ids"].shape[1] :].tolist():
            length = row.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in row else len(row)
            yield tokenizer.decode(row[:length], skip_special_tokens=True), length
