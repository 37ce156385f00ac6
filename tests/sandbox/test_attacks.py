"""Every hostile program gets what it wants of a plain runner, and nothing of a sandbox."""

import os
import platform
import uuid

import pytest

from tests.sandbox.attacks import Attack, kernel_attacks
from tests.sandbox.attacks_on_others import OTHERS
from tests.sandbox.attacks_on_rewards import REWARDS
from tests.sandbox.plain import run_plain
from tests.sandbox.world import SECRET, World, processes_with
from vpo.sandbox import Case, Limits, Outcome, Program, Sandbox, trouble
from vpo.sandbox.walls import ENVIRONMENT, WALLS

ATTACKS = [*REWARDS, *OTHERS, *kernel_attacks()]
# What another program does at the same time must be none of an attack's business.
GOOD = Program("import time\ndef double(number):\n    time.sleep(0.01)\n    return 2 * number\n", "double")
CASES = [Case((number,), 2 * number) for number in range(2)]

each_attack = pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv("VPO_SECRET", SECRET)
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["bubblewrap", "landlock"])
def wall(request):
    if problem := trouble(WALLS[request.param]):
        pytest.skip(f"{request.param} does not work here: {problem}")
    return request.param


def here(attack: Attack) -> Attack:
    if attack.machine and attack.machine != platform.machine():
        pytest.skip(f"written for {attack.machine}")
    return attack


def test_there_are_as_many_attacks_as_we_say():
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 120


@each_attack
def test_a_plain_runner_falls_for(attack, world):
    attack = here(attack)
    if attack.privileged and os.geteuid() != 0:
        pytest.skip("only root may, without walls")
    plain = run_plain(world.fill_in(attack.source), attack.entry, [(attack.given, attack.expected)], str(world.folder))
    shown = attack.shown(plain, world)
    if attack.refused and not shown:
        pytest.skip("this machine refuses it to everybody")
    assert shown, (plain.code, plain.output[-300:])


@each_attack
def test_a_sandbox_withstands(attack, wall, world, monkeypatch):
    attack, token = here(attack), f"VPO_TEST_{uuid.uuid4().hex}"
    monkeypatch.setitem(ENVIRONMENT, token, "1")  # by which what is left of it can be found
    program = Program(world.fill_in(attack.source), attack.entry)
    given, expected = attack.given, attack.expected
    if expected == "the inputs, sorted":
        expected = sorted(given[0])
    open_files = len(os.listdir("/proc/self/fd"))
    with Sandbox(
        limits=Limits(**{"test_seconds": 1.0, "seconds": 3.0, "memory_mb": 256, **attack.limits}), wall=wall
    ) as box:
        hostile, good = box.judge_many([(program, [Case(given, expected)]), (GOOD, CASES)])
    assert hostile[0].outcome is Outcome.FAILED, hostile
    assert hostile[0].reason in attack.reasons, hostile
    hostile[0].detail.encode()
    assert all(verdict.passed for verdict in good), good
    assert not world.changed()
    assert not world.heard()
    assert world.unharmed()
    assert processes_with(token) == []
    assert len(os.listdir("/proc/self/fd")) == open_files
