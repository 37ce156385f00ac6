"""Every hostile program succeeds against a plain runner (the positive control), and fails in a sandbox."""

import os
import platform
import uuid

import pytest

from tests.sandbox.attacks import Attack, kernel_attacks
from tests.sandbox.attacks_on_others import OTHERS
from tests.sandbox.attacks_on_rewards import REWARDS
from tests.sandbox.plain import SECONDS, run_plain
from tests.sandbox.world import SECRET, World, processes_with
from vpo.sandbox import ISOLATIONS, Case, Limits, Program, Sandbox, Status, unavailable_reason
from vpo.sandbox.isolation import ENVIRONMENT

ATTACKS = [*REWARDS, *OTHERS, *kernel_attacks()]
# Runs in parallel with each attack, which must not change its verdicts.
GOOD = Program("import time\ndef double(number):\n    time.sleep(0.01)\n    return 2 * number\n", "double")
CASES = [Case((number,), 2 * number) for number in range(2)]

each_attack = pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv("VPO_SECRET", SECRET)
    world = World(tmp_path)
    yield world
    world.close()


@pytest.fixture(params=["bubblewrap", "landlock"])
def isolation(request):
    if problem := unavailable_reason(ISOLATIONS[request.param]):
        pytest.skip(f"{request.param} does not work here: {problem}")
    return request.param


def on_this_machine(attack: Attack) -> Attack:
    if attack.machine and attack.machine != platform.machine():
        pytest.skip(f"written for {attack.machine}")
    return attack


def test_the_number_of_attacks_is_as_documented():
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 120


@each_attack
def test_a_plain_runner_falls_for(attack, world):
    attack = on_this_machine(attack)
    if attack.privileged and os.geteuid() != 0:
        pytest.skip("only root may, without a sandbox")
    source = world.fill_in(attack.source, long=SECONDS + 0.3)
    plain = run_plain(source, attack.entry, [(attack.input, attack.expected)], str(world.folder))
    succeeded = attack.succeeded(plain, world)
    if attack.refused and not succeeded:
        pytest.skip("this machine refuses it to every process")
    assert succeeded, (plain.code, plain.output[-300:])


@each_attack
def test_a_sandbox_withstands(attack, isolation, world, monkeypatch):
    attack, token = on_this_machine(attack), f"VPO_TEST_{uuid.uuid4().hex}"
    monkeypatch.setitem(ENVIRONMENT, token, "1")  # marks its processes
    program = Program(world.fill_in(attack.source, long=3600.0), attack.entry)
    inputs, expected = attack.input, attack.expected
    if expected == "the inputs, sorted":
        expected = sorted(inputs[0])
    open_files = len(os.listdir("/proc/self/fd"))
    # Attacks on time have a short time limit of their own. The others must not time out on a loaded machine.
    limits = Limits(**{"test_seconds": 60.0, "seconds": 120.0, "memory_mb": 256, **attack.limits})
    with Sandbox(limits=limits, isolation=isolation) as box:
        hostile, good = box.grade_many([(program, [Case(inputs, expected)]), (GOOD, CASES)])
    assert hostile[0].status is Status.FAILED, hostile
    assert hostile[0].reason in attack.reasons, hostile
    hostile[0].detail.encode()
    assert all(verdict.passed for verdict in good), good
    assert not world.changed()
    assert not world.heard()
    assert world.unharmed()
    assert processes_with(token) == []
    assert len(os.listdir("/proc/self/fd")) == open_files
