"""The small policy for maze: its vocabulary, its shape, and the demonstrations that it learns from."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from vpo.methods import draw_weighting
from vpo.models.prompt_format import PromptFormat
from vpo.tasks import Message
from vpo.tasks.answers import write
from vpo.tasks.maze import MazeTask
from vpo.tasks.maze.generator import make_maze
from vpo.tasks.maze.routes import demonstration

MOST_ANSWERS = 8
NUMBERS = range(1, MOST_ANSWERS + 1)
TAGS = ["<answer>", "</answer>", *(f"<{end}answer_{number}>" for number in NUMBERS for end in ("", "/"))]
CHARACTERS = [*"#.SEGDLBUR0123456789X >", "\n"]
# The prompt, in the task's compact form, then a character that begins the answer.
TEMPLATE = "{{ messages[-1]['content'] }}{% if add_generation_prompt %}>{% endif %}"
TRAINING_SEED = 7  # of mazes that no split has


@dataclass(frozen=True)
class Shape:
    """The size of a policy."""

    layers: int
    width: int
    heads: int


# 0.3, 0.8 and 1.9 million parameters.
SHAPES = {7: Shape(3, 96, 3), 9: Shape(4, 128, 4), 13: Shape(4, 192, 6)}


def make_tokenizer() -> Any:
    """A tokenizer with a token for each character of a maze and each answer tag."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<eos>", "<unk>", *CHARACTERS, *TAGS]
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"</?answer(_[1-8])?>|[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    fast.chat_template = TEMPLATE
    return fast


def shape_for(size: int, width: int | None = None) -> Shape:
    """The shape of the policy for a size of maze; another width, a multiple of 32, has heads of 32."""
    shape = SHAPES.get(size, SHAPES[13])
    if width is None:
        return shape
    return Shape(shape.layers, width, width // 32)


def make_model(shape: Shape, vocabulary: int) -> Any:
    """A Qwen3 model with random weights."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=vocabulary,
            hidden_size=shape.width,
            intermediate_size=3 * shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.heads,
            head_dim=shape.width // shape.heads,
            max_position_embeddings=1024,
            tie_word_embeddings=True,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=None,
            use_sliding_window=False,
        )
    )


def prompt_format(size: int, *, goals: bool) -> PromptFormat:
    """How the policy is prompted; with `goals` it can read a weighting in its prompt."""
    task = MazeTask(size=size, compact=True)
    return PromptFormat(
        task=task.name,
        task_name=task.name,
        task_settings={"size": size, "compact": True},
        answers=3,
        max_tokens=task.longest_answer,
        most_answers=MOST_ANSWERS,
        reads_target=goals,
        example=task.ask(task.problems("test", count=1)[0], 3),
    )


def examples(size: int, index: int, *, goals: bool = False) -> Iterator[tuple[list[Message], str]]:
    """Yield prompts and completions for one maze: two single answers, a set of three, and a set of another size.

    With `goals`, one more, whose prompt states a weighting: the best of the routes under it.
    """
    task = MazeTask(size=size, compact=True)
    maze = make_maze(size, TRAINING_SEED, index)
    random = Random(f"examples {size} {index}")
    routes = [demonstration(maze, random) for _ in range(6)]
    other = (2, 4, 5)[index % 3]
    for chosen in (routes[:1], routes[1:2], routes[2:5], random.sample(routes, other)):
        yield task.ask(maze, len(chosen)), write(chosen)
    if goals:
        weights_D = draw_weighting(len(task.names), key=("goal", size, index))
        best = max(routes, key=lambda route: float(np.dot(task.score(maze, route), weights_D)))
        yield task.ask(maze, 1, weights_D.tolist()), write([best])
