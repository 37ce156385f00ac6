"""Scores of a judge are cached: across runs, threads, processes and kills."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("openai")

from tests.endpoint import endpoint
from tests.launch import ROOT
from tests.rewards.judged import fine, make_judge, samples, sets, shown_in
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


WHIM = """
import sys
from tests.rewards.judged import samples, make_judge
print(make_judge(sys.argv[1], cache=sys.argv[2], concurrent=4).score(samples(30)))
"""


def test_processes_request_each_score_once_and_use_the_same_scores(tmp_path):
    def whim(request, number):  # another score for the same answer each time, as of a model that is not deterministic
        time.sleep(0.01)
        return json.dumps(dict.fromkeys(shown_in(request), 1 + number % 5))

    with endpoint(whim) as (address, seen):
        command = [sys.executable, "-c", WHIM, address, str(tmp_path)]
        runs = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        printed = {run.communicate(timeout=60)[0] for run in runs}
    assert len(printed) == 1
    assert len(seen) == 60  # 30 answers, two rubrics


def test_of_two_scores_the_first_that_is_saved_holds(tmp_path):
    cache = JudgeCache(tmp_path)
    with cache.open() as one, cache.open() as two:
        assert one.put({"k": [0.25]}) == {"k": [0.25]}
        assert two.put({"k": [0.75], "l": [1.0]}) == {"k": [0.25], "l": [1.0]}
        assert one.get(["k"]) == {"k": [0.25]}


def test_a_claim_is_kept_while_it_is_renewed_and_ends_with_its_call(tmp_path, monkeypatch):
    monkeypatch.setattr("vpo.rewards.judge.cache.CLAIM_SECONDS", 0.3)
    monkeypatch.setattr("vpo.rewards.judge.cache.RENEW_SECONDS", 0.0)
    cache = JudgeCache(tmp_path)
    with cache.open() as two:
        with cache.open() as one:
            one.put({"scored": [1.0]})
            assert one.claim(["a", "b", "scored"]) == ["a", "b"]
            one.release(["b"])
            assert two.claim(["a", "b"]) == ["b"]
            for _ in range(4):
                time.sleep(0.1)
                one.renew()
            assert two.claim(["a"]) == []
        assert two.claim(["a"]) == ["a"]
        time.sleep(0.4)
        with cache.open() as three:
            assert three.claim(["a"]) == ["a"]  # as if the process of two had hung


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
    with endpoint(fine) as (address, seen):
        judge = make_judge(address, rubrics={"one": "r"}, cache=tmp_path)
        judge.score(samples(5))
        with judge.cache.open() as cache:
            keys = [key for (key,) in cache.connection.execute("SELECT key FROM scores")]
            damaged = ["[2.0]", "[0.5, 0.5]", '["a"]', "no JSON", "[NaN]"]
            for key, numbers in zip(keys, damaged, strict=True):
                cache.connection.execute("UPDATE scores SET numbers = ? WHERE key = ?", (numbers, key))
            cache.connection.commit()
        before = len(seen)
        assert judge.score(samples(5)) == [(1.0,)] * 5
        assert len(seen) - before == 5
        assert judge.score(samples(5)) == [(1.0,)] * 5
        assert len(seen) - before == 5


def test_a_judge_continues_without_a_broken_cache(tmp_path):
    with endpoint(fine) as (address, _):
        judge = make_judge(address, cache=tmp_path)
        for file in tmp_path.iterdir():
            file.write_bytes(b"no database " * 500)
        with pytest.warns(UserWarning, match="continues without its cache"):
            assert judge.score(samples(2)) == [(1.0, 1.0)] * 2
        with pytest.raises(ValueError, match=re.escape(f"cache {tmp_path} cannot be used")):
            make_judge(address, cache=tmp_path)
