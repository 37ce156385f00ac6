"""Reading and comparing short texts, as several tasks do."""

import re
import string
from collections import Counter
from collections.abc import Hashable, Iterable

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def between(text: str, opening: str, closing: str) -> str | None:
    """Return what stands between the first opening tag and the closing tag after it, None without both."""
    _, opened, rest = text.partition(opening)
    content, closed, _ = rest.partition(closing)
    return content.strip() if opened and closed else None


def normalise(text: str) -> str:
    """Return a text without case, punctuation, articles and extra white space, as SQuAD compares it."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def f1(found: Iterable[Hashable], gold: Iterable[Hashable]) -> float:
    """Return the F1 of two multisets. Two empty ones agree."""
    found_counts, gold_counts = Counter(found), Counter(gold)
    sizes = found_counts.total(), gold_counts.total()
    if 0 in sizes:
        return float(sizes == (0, 0))
    return 2 * (found_counts & gold_counts).total() / sum(sizes)


def word_f1(found: str, gold: str) -> float:
    """Return the F1 of the words of two texts, both normalised: SQuAD's."""
    return f1(normalise(found).split(), normalise(gold).split())
