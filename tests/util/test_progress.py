"""How far something is: a bar on a terminal, and a line now and then in a log."""

import io
import time

import pytest

from vpo.util import progress
from vpo.util.progress import Pace, ProgressLines, progress_bar, waiting
from vpo.util.text import duration

SECONDS = {name: getattr(progress, name) for name in ("BAR_SECONDS", "WAIT_SECONDS")}  # which all tests change


class Clock:
    """A clock that tests set, and the timers that wait for it."""

    def __init__(self):
        self.now, self.timers = 0.0, []

    def monotonic(self):
        return self.now

    def later(self, seconds, then):
        timer = Timer(self.now + seconds, then)
        self.timers.append(timer)
        return timer

    def set(self, now):
        """Move on; timers fire in their order, at their time."""
        for timer in sorted(self.timers, key=lambda each: each.at):
            if timer.at <= now and not timer.over:
                self.now, timer.over = timer.at, True
                timer.then()
        self.now = now


class Timer:
    def __init__(self, at, then):
        self.at, self.then, self.over = at, then, False

    def cancel(self):
        self.over = True


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(progress, "later", clock.later)
    for name, value in SECONDS.items():
        monkeypatch.setattr(progress, name, value)
    return clock


def test_a_log_gets_a_line_after_two_seconds_then_every_half_a_minute_and_at_the_end(clock, capsys):
    for now in progress.progress([1, 20, 33, 50, 64, 65], "reading"):  # each takes until its time
        clock.set(now)
    assert capsys.readouterr().err.splitlines() == [
        "reading: 1 of 6 in 2 s, about 10 s left",
        "reading: 3 of 6 in 33 s, about 33 s left",  # 11 s each
        "reading: 5 of 6 in 64 s, about 13 s left",
        "reading: 6 of 6 in 65 s",
    ]


def test_a_first_item_that_takes_long_has_its_line(clock, capsys):
    with progress_bar("sampling", 2) as shown:
        clock.set(1.9)
        assert capsys.readouterr().err == ""
        clock.set(50)
        assert capsys.readouterr().err == "sampling: 0 of 2 in 2 s\n"
        shown.update()
        assert capsys.readouterr().err == "sampling: 1 of 2 in 50 s, about 50 s left\n"


def test_a_log_gets_what_is_noted_and_no_number_that_is_not_known(clock, capsys):
    with progress_bar("training", 2000) as shown:
        clock.set(3)
        shown.set_postfix_str("loss 0.125")
        clock.set(40)
        shown.update()
    for _ in progress.progress(iter("a"), "scoring"):
        clock.set(45)
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "training: 0 of 2,000 in 2 s"
    assert lines == ["training: 1 of 2,000 in 40 s, about 22 h 13 min left, loss 0.125", "scoring: 0 in 2 s"]


def test_what_the_block_counts_is_not_known_before(clock, capsys):
    with progress_bar("searching", None) as shown:
        clock.set(3)
        shown.total = 5
        clock.set(40)
        shown.update()
    assert [line[:20] for line in capsys.readouterr().err.splitlines()] == [
        "searching: 0 in 2 s",
        "searching: 1 of 5 in",
    ]


def test_what_is_soon_done_says_nothing_not_even_later(clock, capsys):
    assert list(progress.progress([], "nothing")) == []
    assert list(progress.progress([1, 2], "little")) == [1, 2]
    with waiting("loading little"), progress_bar("training", 2):
        clock.set(0.5)
    with pytest.raises(ZeroDivisionError), waiting("loading what fails"):
        raise ZeroDivisionError
    abandoned = iter(progress.progress([1, 2], "abandoned"))
    next(abandoned)
    abandoned.close()
    clock.set(100)
    assert capsys.readouterr().err == ""


def test_what_is_under_way_for_a_second_is_said_once(clock, capsys):
    with waiting("loading model"):
        clock.set(0.9)
        assert capsys.readouterr().err == ""
        clock.set(60)
    assert capsys.readouterr().err == "vpo: loading model …\n"


def test_only_one_of_several_processes_says_it(monkeypatch, capsys):
    for name, value in (("LOCAL_RANK", "1"), ("RANK", "1"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    progress.say("loading")
    assert capsys.readouterr().err == ""


def test_a_real_timer_speaks_while_the_main_thread_works(monkeypatch, capsys):
    monkeypatch.setattr(progress, "WAIT_SECONDS", 0.01)
    with waiting("loading model"):
        end, said = time.monotonic() + 30, ""
        while not said.endswith("\n") and time.monotonic() < end:  # `print` may write the line in two parts
            said += capsys.readouterr().err
    assert said == "vpo: loading model …\n"


def test_the_lines_of_a_run_are_of_its_first_steps_every_half_a_minute_and_of_its_last(clock):
    pace = Pace(done=100, first=3)  # resumed after step 100
    shown = []
    for step in range(101, 121):
        clock.set(clock.now + 11)
        if pace.due(step, 120):
            shown.append((step, pace.left(step, 120)))
    assert [step for step, _ in shown] == [101, 102, 103, 106, 109, 112, 115, 118, 120]
    assert shown[0][1] == ", about 3 min left"  # 19 × 11 s
    assert shown[-2][1] == ", about 22 s left"
    assert shown[-1][1] == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0.2, "0 s"), (99, "99 s"), (99.6, "2 min"), (5000, "83 min"), (5999, "1 h 40 min")),
        *((3600 * 3 + 1200, "3 h 20 min"), (3600 * 53, "2 d 5 h")),
    ],
)
def test_a_duration_has_the_units_that_matter(seconds, text):
    assert duration(seconds) == text


def test_a_terminal_has_a_progress_bar_before_the_first_item_is_done(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "BAR_SECONDS", 0.01)
    with progress_bar("reading", 3) as shown:
        assert not isinstance(shown, ProgressLines)
        end = time.monotonic() + 30
        while "0/3" not in terminal.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert "reading:" in terminal.getvalue()
    assert "0/3" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")  # cleared at the end
    assert list(progress.progress([1, 2, 3], "reading")) == [1, 2, 3]
