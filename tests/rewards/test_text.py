import time

import pytest

from tests.rewards.small import sample
from vpo.rewards import Json, Length, Pattern, Readability

EASY = "The cat sat on the mat. It was warm. The dog ran up to it."
HARD = (
    "Notwithstanding considerable methodological heterogeneity, contemporaneous investigations unequivocally "
    "demonstrate multidimensional interdependencies characterising institutional transformation processes."
)


def scores(scorer, *answers):
    return [score for (score,) in scorer.score([sample(answer) for answer in answers])]


def test_length_in_words():
    length = Length("short", least=2, most=4)
    actual = scores(length, "", "a", "a b", "a b c d", "a b c d e", "a b c d e f g h", "a " * 20)
    assert actual == [0, 0.5, 1, 1, 0.75, 0, 0]  # 2 − 5/4 above, 0 at 8 and beyond


def test_length_in_characters():
    assert scores(Length("short", most=4, unit="characters"), "", "abcd", "abcdef") == [1, 1, 0.5]


@pytest.mark.parametrize("bounds", [{"most": 0}, {"most": 3, "least": 4}, {"most": 3, "unit": "pages"}])
def test_invalid_bounds_are_refused(bounds):
    with pytest.raises(ValueError, match="must be"):
        Length("short", **bounds)


def test_readability_by_textstat():
    textstat = pytest.importorskip("textstat")
    readable = Readability("plain", measure="automated_readability_index", calibration={"range": [20, 0]})
    text = "The committee discussed several important changes. Everybody agreed."
    expected = 1 - textstat.automated_readability_index(text) / 20
    assert 0 < expected < 1
    assert scores(readable, text) == [pytest.approx(expected)]
    assert scores(readable, EASY, HARD, "", "?!") == [1, 0, 0, 0]
    assert readable.counted() == {"plain": (2.0, 5)}  # EASY and HARD; what has no words measures 0


def test_measures_that_need_a_dictionary_say_so(monkeypatch):
    pytest.importorskip("textstat")
    import nltk

    def find(name):
        raise LookupError

    monkeypatch.setattr(nltk.data, "find", find)
    with pytest.raises(ValueError, match=r"python -m nltk\.downloader cmudict"):
        Readability("plain", measure="flesch_reading_ease")
    with pytest.raises(ValueError, match="measure 'lex' is not known: did you mean 'lix'"):
        Readability("plain", measure="lex")


def test_a_pattern_matches_the_whole_answer():
    pattern = Pattern("steps", pattern=r"1\. .+\n2\. .+")
    assert scores(pattern, "1. a\n2. b", " 1. a\n2. b\n", "So: 1. a\n2. b", "1. a") == [1, 1, 0, 0]
    with pytest.raises(ValueError, match="is not a regular expression"):
        Pattern("steps", pattern="(")


def test_a_pattern_that_takes_for_ever_abstains(monkeypatch):
    monkeypatch.setattr("vpo.rewards.text.PATTERN_TIMEOUT", 0.05)
    began = time.monotonic()
    assert scores(Pattern("slow", pattern=r"(a|aa)+$b"), "a" * 100) == [None]
    assert time.monotonic() - began < 5


def test_json_and_its_keys():
    assert scores(Json("json"), "[1]", "```json\n{}\n```", "[1", "[" * 10_000, "", "NaN") == [1, 1, 0, 0, 0, 0]
    keyed = Json("json", keys=["name", "age"])
    assert scores(keyed, '{"name": 1, "age": 2}', '{"name": 1}', "{}", '["name", "age"]') == [1, 0.5, 0, 0]
