"""Forced tags: the tags that open answers are put into a completion, and the policy writes the rest.

    forced = ForcedTags(tokenizer, tags_of(task, 3)).processor(prefixes)
    model.generate(tokens, logits_processor=[forced])
    forced.mask()                                     # which tokens were forced

A completion begins with the tag of its first answer. Where the policy closes an answer, the tag of the next one
follows, until m answers are open. A tag is forced by its tokens, one a step: every other token has probability 0. So
any decoding loop that calls logits processors carries it, rows are independent of each other, and forced tokens
count in the token budget. The state of the rows is tensors; nothing waits for the GPU.
"""

import math
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from vpo.tasks import Task
from vpo.tasks.forms.tags import Tags as TagForm
from vpo.util.errors import InputError

Tags: TypeAlias = tuple[tuple[str, str], ...]  # the opening and the closing of each answer
SEPARATOR = "\n"  # between an answer and the next opening, as `vpo.tasks.answers.write` has it


def tags_of(task: Task[Any] | type[Task[Any]], answers: int) -> Tags:
    """The tags of the answers of a task; raises where its answers are written without."""
    if answers == 1 and not task.wraps_single:
        raise InputError(f"prefill needs a tag that opens the answer, and single answers of task {task.name} have none")
    if answers == 1:
        return (("<answer>", "</answer>"),)
    if not isinstance(task.form, TagForm):
        raise InputError(f"prefill needs tags that open and close answers, and format {task.form.name} has none")
    return tuple((task.form.opening(index), task.form.closing(index)) for index in range(answers))


def check_thinking(*, prefill: bool, thinking: bool) -> None:
    """Refuse thoughts before an answer that the completion begins with."""
    if prefill and thinking:
        raise InputError("prefill begins a completion with its first answer, and thinking comes before that: give one")


def check_budget(forced: "ForcedTags", max_tokens: int) -> None:
    """Refuse a token budget of a completion that its tags alone would use up."""
    if max_tokens <= forced.most_tokens:
        raise InputError(
            f"with prefill the tags alone take {forced.most_tokens} tokens, and a completion has {max_tokens}: raise "
            "max_tokens"
        )


@dataclass(frozen=True)
class RowStart:
    """How the completion of one prefix begins.

    Attributes:
        cursor: into `ForcedTags.queue`, where the tokens to force are.
        answer: index of the answer that is open once they are written.
        state: of the search for closings.
    """

    cursor: int
    answer: int
    state: int


class ForcedTags:
    """The tags of m answers as the tokens of one tokenizer, and which tokens complete a closing.

    Attributes:
        tags: of the answers.
        queue: the tokens of all texts that may be forced, each followed by -1.
        starts: where the opening of each answer begins in `queue`: first without a separator before it, then with one.
    """

    def __init__(self, tokenizer: Any, tags: Tags) -> None:
        """Tokenize the tags; raises where their tokens do not read as the tags."""
        self.tokenizer, self.tags = tokenizer, tags
        self.queue: list[int] = []
        self.starts: list[tuple[int, int]] = []
        for opening, _ in tags:
            bare = self._enqueue(opening)
            self.starts.append((bare, self._enqueue(SEPARATOR + opening)))
        self.closings = _Matcher([closing for _, closing in tags])

    def _enqueue(self, text: str) -> int:
        tokens = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        if not tokens or (read := self.tokenizer.decode(tokens, skip_special_tokens=True)) != text:
            raise InputError(
                f"prefill cannot force {text!r}: this model's tokenizer "
                + (f"reads it as {read!r}" if tokens else "has no tokens for it")
            )
        start = len(self.queue)
        self.queue += [*tokens, -1]
        return start

    @property
    def most_tokens(self) -> int:
        """Tokens that are forced in a completion where all answers are opened."""
        used = [bare if index == 0 else separated for index, (bare, separated) in enumerate(self.starts)]
        return sum(self.queue.index(-1, start) - start for start in used)

    @cached_property
    def table(self) -> Any:
        """What follows each token in each state of the matcher, states × (vocabulary + 1): a state, or a closing.

        A closing is coded as `len(states) + 2 * index + ended`, where `ended` says that a line ends after it. One more
        token, past the vocabulary, stands for those that have no text: they change nothing.
        """
        import torch

        texts, states = self._token_texts(), range(self.closings.count)
        by_first: dict[str, list[int]] = {}
        anywhere: list[int] = []  # tokens inside which a closing may begin
        for token, text in enumerate(texts):
            if text:
                by_first.setdefault(text[0], []).append(token)
                if not self.closings.beginnings.isdisjoint(text):
                    anywhere.append(token)
        silent = [token for token, text in enumerate(texts) if not text]
        table = torch.zeros(len(states), len(texts) + 1, dtype=torch.int32)
        for state in states:
            continuing = [token for first in self.closings.continuations(state) for token in by_first.get(first, ())]
            row = {token: self._outcome(state, texts[token]) for token in {*anywhere, *continuing}}
            row |= dict.fromkeys((*silent, len(texts)), state)
            table[state, list(row)] = torch.tensor(list(row.values()), dtype=torch.int32)
        return table

    def _outcome(self, state: int, text: str) -> int:
        state, closed, rest = self.closings.read(state, text)
        return state if closed is None else self.closings.count + 2 * closed + rest.endswith(SEPARATOR)

    def _token_texts(self) -> list[str]:
        """What each token adds to a text. Some tokenizers drop the space of a token that stands alone."""
        before = self.queue[self.queue.index(-1) - 1]  # the last token of a tag
        length = len(self.tokenizer.decode([before], skip_special_tokens=True))
        pairs = [[before, token] for token in range(len(self.tokenizer))]
        return [text[length:] for text in self.tokenizer.batch_decode(pairs, skip_special_tokens=True)]

    def start(self, prefix: str) -> RowStart:
        """How a completion goes on after a prefix that the policy did not write."""
        answer, writing, end = 0, bool(prefix), 0
        for tag in re.finditer("|".join(re.escape(each) for pair in self.tags for each in pair if each), prefix):
            index, closes = next((n, tag[0] == pair[1]) for n, pair in enumerate(self.tags) if tag[0] in pair)
            if not closes:
                answer, writing = index, True
            elif writing and index >= answer:
                answer, writing = index + 1, False
            end = tag.end()
        if writing or answer == len(self.tags):
            state, _, _ = self.closings.read(0, prefix[end:])
            return RowStart(self.free, answer, state)
        ended = not prefix or prefix.endswith(SEPARATOR)
        return RowStart(self.starts[answer][not ended], answer, 0)

    @property
    def free(self) -> int:
        """Where nothing is forced in `queue`."""
        return len(self.queue) - 1

    def processor(self, prefixes: Sequence[str] | None = None) -> "ForcingProcessor":
        """A logits processor for one batch; `prefixes` has the prefix of each row, by default none."""
        return ForcingProcessor(self, prefixes)


class ForcingProcessor:
    """Forces tags in the completions of one batch. Its rows must stay in their order: it takes no beams."""

    def __init__(self, forced: ForcedTags, prefixes: Sequence[str] | None) -> None:
        """See `ForcedTags.processor`."""
        self.forced, self.prefixes = forced, prefixes
        self.masks: list[Any] = []  # of each step, (N,)
        # Of each row: into `queue`, the index of the answer that is written, of the search for closings. All (N,).
        self.cursor: Any = None
        self.answer: Any = None
        self.state: Any = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Leave of the scores, (N, vocabulary), the forced token alone in rows where one is forced."""
        import torch

        if not self.masks:
            self._begin(len(input_ids), scores.device)
        else:
            self._read(input_ids[:, -1])
        tokens = self.queue[self.cursor]
        mask = tokens >= 0
        self.cursor = self.cursor + mask.long()
        self.masks.append(mask)
        at = tokens.clamp(min=0)[:, None]
        kept = torch.where(mask[:, None], torch.zeros_like(scores[:, :1]), scores.gather(1, at))
        return scores.masked_fill(mask[:, None], -math.inf).scatter(1, at, kept)

    def _begin(self, rows: int, device: Any) -> None:
        import torch

        forced = self.forced
        starts = [forced.start(prefix) for prefix in self.prefixes or [""] * rows]
        if len(starts) != rows:
            raise ValueError(f"there are {len(starts)} prefixes and {rows} rows")
        self.queue = torch.tensor(forced.queue, device=device)
        self.starts = torch.tensor(forced.starts, device=device)
        self.cursor, self.answer, self.state = (
            torch.tensor([getattr(each, name) for each in starts], device=device)
            for name in ("cursor", "answer", "state")
        )
        self.table = forced.table.to(device)

    def _read(self, tokens: Any) -> None:
        """Follow the last token of each row, and begin to force a tag where it completed a closing."""
        import torch

        states, silent = self.table.shape[0], self.table.shape[1] - 1
        outcome = self.table[self.state, tokens.clamp(max=silent)].long()
        outcome = torch.where(self.masks[-1], 0, outcome)  # a forced tag closes nothing
        closed = torch.div(outcome - states, 2, rounding_mode="floor")
        # The closing of an earlier answer, inside this one, closes nothing.
        following = torch.where((outcome >= states) & (closed >= self.answer), closed + 1, self.answer)
        opens = (following > self.answer) & (following < len(self.starts))
        start = self.starts[following.clamp(max=len(self.starts) - 1), 1 - (outcome - states) % 2]
        self.cursor = torch.where(opens, start, self.cursor)
        self.state = torch.where(outcome < states, outcome, 0)
        self.answer = following

    def mask(self) -> Any:
        """Which tokens were forced, N × steps."""
        import torch

        return torch.stack(self.masks, 1)


class _Matcher:
    """Finds any of some texts in a text that is read piece by piece (Aho-Corasick). State 0 has read nothing of them.

    Attributes:
        beginnings: the first characters of the texts.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.next: list[dict[str, int]] = [{}]
        self.found: list[int | None] = [None]  # the index of the text that ends in a state
        for index, text in enumerate(texts):
            state = 0
            for character in text:
                if character not in self.next[state]:
                    self.next[state][character] = len(self.next)
                    self.next.append({})
                    self.found.append(None)
                state = self.next[state][character]
            if text:
                self.found[state] = index
        self.beginnings = frozenset(self.next[0])
        self.fallback = [0] * len(self.next)
        states = deque(self.next[0].values())
        while states:
            state = states.popleft()
            for character, following in self.next[state].items():
                self.fallback[following] = self._step(self.fallback[state], character)
                states.append(following)

    @property
    def count(self) -> int:
        return len(self.next)

    def continuations(self, state: int) -> set[str]:
        """The characters with which a text goes on from a state, other than from the beginning."""
        characters: set[str] = set()
        while state:
            characters.update(self.next[state])
            state = self.fallback[state]
        return characters

    def _step(self, state: int, character: str) -> int:
        while state and character not in self.next[state]:
            state = self.fallback[state]
        return self.next[state].get(character, 0)

    def read(self, state: int, text: str) -> tuple[int, int | None, str]:
        """Read a text: the state after it, the index of the last text found in it, and what comes after that."""
        closed, end = None, 0
        for position, character in enumerate(text, start=1):
            state = self._step(state, character)
            if self.found[state] is not None:
                closed, end, state = self.found[state], position, 0
        return state, closed, text[end:]
