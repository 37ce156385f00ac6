"""Models in this process with vLLM: how it is set up, and completions of prompts."""

import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from vpo.models.forced_tags import tags_of
from vpo.models.generate import Completion, Sampling, render_prompts
from vpo.models.locate import ResolvedModel
from vpo.models.model_files import check_model_files, check_whole
from vpo.models.policy import load_tokenizer
from vpo.util.errors import InputError, one_line
from vpo.util.hub import loading_options
from vpo.util.packages import require
from vpo.util.progress import progress, waiting

# Its logs are long, and go to standard output, where a command prints its result.
LOGS = {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_LOGGING_STREAM": "ext://sys.stderr"}
# On a CPU vLLM takes nearly all memory for keys and values, and binds the threads of its process to cores.
CPU = {"VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}  # GiB
CPU_ARGUMENTS = {"dtype": "float32", "enforce_eager": True}  # bf16 crashes some CPUs; nothing is compiled
# On a CPU vLLM 0.31 ends where a request with a seed has a prompt that is computed in parts.
SEEDED_CPU_ARGUMENTS = {**CPU_ARGUMENTS, "enable_chunked_prefill": False}


class VllmModel:
    """A model in this process, sampled by vLLM."""

    def __init__(self, path: str, sampling: Sampling, opening: str = "") -> None:
        """Load a model from its folder, or by its name on the hub.

        Args:
            path: the folder or the name.
            sampling: of the completions; its batch is only how many are requested at once.
            opening: begins completions without a prefix: the tag of a single answer.
        """
        check_whole(path, "generator vllm")
        set_up()
        vllm = require("vllm", "generator vllm", extra=None)
        if Path(path).exists():
            check_model_files(Path(path))
        else:
            loading_options(path)  # refuses a name that the hub does not have
        self.path, self.sampling, self.opening = path, sampling, opening
        self.tokenizer = load_tokenizer(path)
        self._parameters = vllm.SamplingParams
        try:
            self._parameters(temperature=sampling.temperature, top_p=sampling.top_p)
        except ValueError as error:  # vLLM has bounds of its own
            raise InputError(f"vLLM refuses the sampling ({one_line(error)})") from None
        try:
            with waiting(f"vLLM is loading {Path(path).name}"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those of other packages
                # As long a context as the memory has capacity for: models have contexts that few GPUs do.
                self._llm = vllm.LLM(model=path, max_model_len=-1, use_tqdm_on_load=False, **arguments(seeds=True))
        except Exception as error:  # vLLM raises whatever its engine does
            raise InputError(
                f"{path}: vLLM cannot load the model ({one_line(f'{type(error).__name__}: {error}')})"
            ) from None

    @property
    def precision(self) -> str:
        """Of the weights: "float32" or "bfloat16"."""
        return str(self._llm.llm_engine.model_config.dtype).removeprefix("torch.")

    def complete(
        self,
        prompts: Sequence[Sequence[dict[str, str]]],
        seeds: Sequence[int],
        prefixes: Sequence[str] | None = None,
        max_tokens: Sequence[int] | None = None,
    ) -> list[Completion]:
        """Sample a completion for each prompt, all at once.

        Args:
            prompts: as chat messages.
            seeds: one for each completion.
            prefixes: beginnings of the completions; the model continues them.
            max_tokens: token budget of each completion; by default that of the sampling.
        """
        prefixes = prefixes or [""] * len(prompts)
        openings = ["" if prefix else self.opening for prefix in prefixes]
        begun = [prefix + opening for prefix, opening in zip(prefixes, openings, strict=True)]
        texts = render_prompts(self.tokenizer, prompts, begun, thinking=self.sampling.thinking)
        # As tokens: a text would get a second begin-of-sequence token, beside that of the chat template.
        tokens = self._tokens(texts)
        counts = [len(each) for each in self._tokens(openings)]  # counted as where they are forced
        budgets = max_tokens or [self.sampling.max_new_tokens] * len(prompts)
        parameters = [
            self._parameters(
                temperature=self.sampling.temperature,
                top_p=self.sampling.top_p,
                max_tokens=max(1, budget - count),
                seed=seed,
                detokenize=False,
            )
            for budget, count, seed in zip(budgets, counts, seeds, strict=True)
        ]
        try:
            outputs = self._llm.generate([{"prompt_token_ids": each} for each in tokens], parameters, use_tqdm=False)
        except ValueError as error:  # a prompt that is longer than the model's context
            raise InputError(f"{self.path}: vLLM refuses the prompts ({one_line(error)})") from None
        sampled = [list(each.outputs[0].token_ids) for each in outputs]
        return [
            Completion(opening + self.tokenizer.decode(row, skip_special_tokens=True), count + len(row))
            for opening, count, row in zip(openings, counts, sampled, strict=True)
        ]

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        tokens: list[list[int]] = self.tokenizer(list(texts), add_special_tokens=False)["input_ids"]
        return tokens


def vllm_batches(
    model: VllmModel, prompts: Sequence[Sequence[dict[str, str]]], known: Collection[int]
) -> Iterator[dict[int, Completion]]:
    """Completions by the index of their prompt, batch by batch, of the prompts that are not known.

    Each has a seed of its own, which follows from that of the sampling and the index, whatever batch it is in.
    """
    size, seed = model.sampling.batch, model.sampling.seed
    left = [index for index in range(len(prompts)) if index not in known]
    batches = [left[start : start + size] for start in range(0, len(left), size)]
    for batch in progress(batches, "generating", len(batches)):
        seeds = [Random(f"{seed} {index}").getrandbits(31) for index in batch]
        yield dict(zip(batch, model.complete([prompts[index] for index in batch], seeds), strict=True))


def forced_opening(model: ResolvedModel) -> str:
    """What completions begin with under prefill; raises where tags would have to be forced after the first."""
    if not model.prefill:
        return ""
    if model.answers > 1:
        raise InputError(
            f"prefill does not work with generator vllm and {model.answers} answers: it cannot force the tags after "
            "the first; give --no-prefill, or --generator transformers"
        )
    return tags_of(model.task, 1)[0][0]


def set_up() -> None:
    """Set defaults of vLLM that it reads from the environment, before it is imported; what is set there stays."""
    for name, value in (LOGS if _on_gpu() else LOGS | CPU).items():
        os.environ.setdefault(name, value)


def arguments(*, seeds: bool) -> dict[str, Any]:
    """What `vllm.LLM` is called with on this machine; `seeds` is whether requests have seeds of their own."""
    return {} if _on_gpu() else dict(SEEDED_CPU_ARGUMENTS if seeds else CPU_ARGUMENTS)


def _on_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())
