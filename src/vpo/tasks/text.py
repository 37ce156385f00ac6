"""Comparison of short texts, as several tasks need it."""

import re
import string
from collections import Counter
from collections.abc import Hashable, Iterable

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def between(text: str, opening: str, closing: str) -> str | None:
    """The text up to the first closing tag that follows an opening one, from the last of these; None without both."""
    _, opened, rest = text.partition(opening)
    content, closed, _ = rest.partition(closing)
    return content.rpartition(opening)[2].strip() if opened and closed else None


def without_punctuation(text: str) -> str:
    """A text without case, punctuation and extra white space."""
    return " ".join(text.lower().translate(_NO_PUNCTUATION).split())


def normalise(text: str) -> str:
    """A text without case, punctuation, articles and extra white space, as SQuAD compares it."""
    return " ".join(_ARTICLES.sub(" ", without_punctuation(text)).split())


def f1(predicted: Iterable[Hashable], gold: Iterable[Hashable]) -> float:
    """The F1 of two multisets; 1 for two empty ones."""
    predicted_counts, gold_counts = Counter(predicted), Counter(gold)
    sizes = predicted_counts.total(), gold_counts.total()
    if 0 in sizes:
        return float(sizes == (0, 0))
    return 2 * (predicted_counts & gold_counts).total() / sum(sizes)


def word_f1(predicted: str, gold: str) -> float:
    """SQuAD's F1 of the words of two texts, both normalised."""
    return f1(normalise(predicted).split(), normalise(gold).split())
