"""Words in sentences."""

import pytest

from vpo.util.text import counted, listed, plural


@pytest.mark.parametrize(
    ("words", "text"),
    [([], ""), (["a"], "a"), (("a", "b"), "a and b"), (["a", "b", "c"], "a, b and c"), ("abcd", "a, b, c and d")],
)
def test_words_are_listed(words, text):
    assert listed(words) == text


def test_one_is_no_plural():
    assert [counted(count, "sample") for count in (0, 1, 2, 1200)] == [
        "0 samples",
        "1 sample",
        "2 samples",
        "1,200 samples",
    ]
    assert (plural(1, "answer"), plural(2, "answer")) == ("answer", "answers")
