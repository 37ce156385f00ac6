"""Nothing that a program returns or prints holds the judge's own process, grows it, or raises in it."""

import json
import subprocess
import sys
import time

import pytest
from benchmarks.heartbeat import Heartbeat

from tests.sandbox.burdens import BURDENS
from vpo.sandbox import ISOLATIONS, Case, Limits, Program, Sandbox, Status, unavailable_reason

STANDSTILL = 0.05  # seconds
GROWTH = 64.0  # megabytes
CARRIED = 1 / 4  # share of these that a reader without a judge has at least: a faster machine stands still for less
# Patient clocks, on a machine that may be busy; and an output as large as the task code allows.
LIMITS = Limits(test_seconds=20.0, seconds=60.0, output_bytes=16_000_000)
GOOD = Program("def double(number):\n    return 2 * number\n", "double")
CASES = [Case((number,), 2 * number) for number in range(2)]

each_burden = pytest.mark.parametrize("burden", BURDENS, ids=[burden.name for burden in BURDENS])


@pytest.fixture(params=["bubblewrap", "landlock"], scope="module")
def box(request):
    if problem := unavailable_reason(ISOLATIONS[request.param]):
        pytest.skip(f"{request.param} does not work here: {problem}")
    with Sandbox(limits=LIMITS, isolation=request.param, workers=2) as box:
        box.grade(GOOD, CASES)  # what is started once is started
        yield box


@each_burden
def test_the_judges_process_does_not_carry(burden, box):
    hostile = (Program(burden.source, burden.entry), [Case(burden.input, "5")] * burden.tests)
    with Heartbeat() as heartbeat:
        verdicts, good = box.grade_many([hostile, (GOOD, CASES)])
    assert {verdict.status for verdict in verdicts} <= {Status.FAILED, Status.NOT_RUN}, verdicts
    assert all(verdict.passed for verdict in good), good
    assert heartbeat.standstill < STANDSTILL
    assert heartbeat.growth < GROWTH


@each_burden
def test_an_honest_program_of_the_same_shape_passes(burden, box):
    verdicts = box.grade(Program(burden.honest, burden.entry), [Case(burden.input, burden.expected)] * burden.tests)
    assert all(verdict.passed for verdict in verdicts), verdicts


@each_burden
def test_a_judge_that_reads_in_its_own_process_carries(burden):
    if burden.forged:
        pytest.skip("only a judge with this channel reads it")
    request = json.dumps([burden.source, burden.entry, burden.tests])
    command = [sys.executable, "-m", "tests.sandbox.reader"]
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=True, timeout=300)
    standstill, growth = json.loads(done.stdout)
    assert standstill > CARRIED * STANDSTILL or growth > CARRIED * GROWTH, done.stdout


def test_the_heartbeat_notices_a_held_lock_and_a_short_growth():
    with Heartbeat() as heartbeat:
        time.sleep(0.05)
    assert heartbeat.standstill < STANDSTILL
    assert heartbeat.growth < GROWTH
    with Heartbeat() as heartbeat:
        pow(3, 5_000_000)  # one call, which holds the lock
    assert heartbeat.standstill > STANDSTILL
    with Heartbeat() as heartbeat:
        bytes(b"x" * 100_000_000)
    assert heartbeat.growth > 90.0
