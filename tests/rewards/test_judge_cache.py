"""Scores of a judge are cached: across runs, threads, processes and kills."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("openai")

from tests.launch import ROOT
from tests.rewards.judged import fine, make_judge, samples, sets
from tests.search.endpoint import endpoint
from vpo.rewards.judge.cache import JudgeCache

pytestmark = pytest.mark.filterwarnings("ignore:reward")  # each reason is said once


def test_the_second_run_makes_no_request(tmp_path):
    with endpoint(fine) as (address, seen):
        first = make_judge(address, cache=tmp_path / "cache", together=True).score(sets("a", "bcd"))
        again = make_judge(address, cache=tmp_path / "cache", together=True)
        assert again.score(sets("bcd", "a")) == first[::-1]
        assert again.cached == 2
        assert again.client.budget.requests == 0
        assert len(seen) == 2
        for changed in ({"rubrics": {"brief": "Shorter is better."}}, {"model": "n"}, {"scale": (0, 5)}):
            before = len(seen)
            make_judge(address, cache=tmp_path / "cache", together=True, **changed).score(sets("a", "bcd"))
            assert len(seen) > before
    down = make_judge("http://127.0.0.1:9/v1", cache=tmp_path / "cache", together=True)
    assert down.score(sets("a", "bcd")) == first


def test_failures_are_not_cached(tmp_path):
    with endpoint(lambda request, number: fine(request, number) if number else "garbage") as (address, _):
        judge = make_judge(address, rubrics={"one": "r"}, cache=tmp_path)
        assert judge.score(samples(1)) == [(None,)]
        assert judge.score(samples(1)) == [(1.0,)]


SCRIPT = """
import sys
from tests.rewards.judged import samples, make_judge
scores = make_judge(sys.argv[1], cache=sys.argv[2], concurrent=2).score(samples(int(sys.argv[3])))
assert scores == [(1.0, 1.0)] * len(scores), scores
"""


def start(*arguments):
    # In our root, since another package of the name `tests` may be installed.
    return subprocess.Popen([sys.executable, "-c", SCRIPT, *map(str, arguments)], cwd=ROOT)


def test_threads_and_processes_share_a_cache(tmp_path):
    with endpoint(fine) as (address, seen):
        others = [start(address, tmp_path, 20) for _ in range(2)]
        mine = make_judge(address, cache=tmp_path)
        threads = [threading.Thread(target=mine.score, args=(samples(20),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert [other.wait(30) for other in others] == [0, 0]
        before = len(seen)
        assert make_judge(address, cache=tmp_path).score(samples(20)) == [(1.0, 1.0)] * 20
    assert len(seen) == before


def test_a_kill_leaves_a_cache_that_can_be_read(tmp_path):
    enough = threading.Event()

    def answer(request, number):
        if number == 20:
            enough.set()
        time.sleep(0.005)
        return fine(request, number)

    with endpoint(answer) as (address, seen):
        other = start(address, tmp_path, 5000)
        assert enough.wait(30)
        os.kill(other.pid, signal.SIGKILL)
        other.wait(30)
        time.sleep(0.1)
        before = len(seen)
        again = make_judge(address, cache=tmp_path)
        assert again.score(samples(30)) == [(1.0, 1.0)] * 30
    assert again.cached >= 15
    assert len(seen) - before == 60 - again.cached


HALF = """
import sys, time
from vpo.rewards.judge.cache import JudgeCache
with JudgeCache(sys.argv[1]).open() as cache:
    cache.put({"whole": [1.0]})
    cache.connection.executemany("INSERT INTO scores VALUES (?, ?)", [(f"half {n}", "[1.0]") for n in range(10_000)])
    print("now", flush=True)
    time.sleep(60)
"""


def test_a_kill_in_the_middle_of_a_write_undoes_that_write_and_leaves_no_lock(tmp_path):
    other = subprocess.Popen([sys.executable, "-c", HALF, str(tmp_path)], stdout=subprocess.PIPE)
    with other:
        assert other.stdout.readline() == b"now\n"
        other.kill()
    began = time.monotonic()
    with JudgeCache(tmp_path).open() as cache:
        assert cache.get(["whole", "half 0", "half 9999"]) == {"whole": [1.0]}
        cache.put({"half 0": [0.5]})
        assert cache.get(["half 0"]) == {"half 0": [0.5]}
    assert time.monotonic() - began < 5


def test_damaged_rows_are_requested_again(tmp_path):
    with endpoint(fine) as (address, _):
        judge = make_judge(address, rubrics={"one": "r"}, cache=tmp_path)
        judge.score(samples(4))
        with judge.cache.open() as cache:
            keys = [key for (key,) in cache.connection.execute("SELECT key FROM scores")]
            cache.put(dict(zip(keys, [[2.0], [0.5, 0.5], ["a"], [0.5]], strict=True)))
            cache.connection.execute("UPDATE scores SET numbers = 'no JSON' WHERE key = ?", keys[3:])
            cache.connection.commit()
        assert judge.score(samples(4)) == [(1.0,)] * 4


def test_a_judge_continues_without_a_broken_cache(tmp_path):
    with endpoint(fine) as (address, _):
        judge = make_judge(address, cache=tmp_path)
        for file in tmp_path.iterdir():
            file.write_bytes(b"no database " * 500)
        with pytest.warns(UserWarning, match="continues without its cache"):
            assert judge.score(samples(2)) == [(1.0, 1.0)] * 2
        with pytest.raises(ValueError, match=re.escape(f"cache {tmp_path} cannot be used")):
            make_judge(address, cache=tmp_path)
