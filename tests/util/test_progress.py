"""How far something is: a bar on a terminal, and a line now and then in a log."""

import io
from types import SimpleNamespace

from vpo.util import progress
from vpo.util.progress import ProgressLines, progress_bar


def test_a_log_gets_a_line_now_and_then(monkeypatch, capsys):
    clock = iter([0, 29, 31, 60, 62, 1e4])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert list(progress.progress("abcde", "reading")) == list("abcde")
    assert capsys.readouterr().err.splitlines() == [
        "reading: 2 of 5 in 31 s",
        "reading: 4 of 5 in 62 s",
        "reading: 5 of 5 in 10,000 s",
    ]


def test_a_log_gets_what_is_noted_and_no_number_that_is_not_known(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: 7))
    with progress_bar("training", 2000) as shown:
        shown.set_postfix_str("loss 0.125")
        shown.update()
    for _ in progress.progress(iter("a"), "scoring"):
        pass
    assert capsys.readouterr().err.splitlines() == ["training: 1 of 2,000 in 0 s, loss 0.125", "scoring: 1 in 0 s"]


def test_what_is_soon_done_says_nothing(capsys):
    assert list(progress.progress([], "nothing")) == []
    assert list(progress.progress([1, 2], "little")) == [1, 2]
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_progress_bar(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "BAR_SECONDS", 0)
    with progress_bar("reading", 3) as shown:
        assert not isinstance(shown, ProgressLines)
    assert list(progress.progress([1, 2, 3], "reading")) == [1, 2, 3]
    assert "reading:" in terminal.getvalue()
    assert "0/3" in terminal.getvalue()
