"""Harmless programs: how they are called, the limits that they reach, and wrong arguments."""

import sys
from dataclasses import replace

import pytest

from tests.sandbox.harmless import LIMITS, reasons
from vpo.sandbox import Case, Program, Sandbox, Status, grading, shared, unavailable_reason
from vpo.sandbox.isolation import Bubblewrap
from vpo.util.errors import InputError


def test_function_class_and_standard_input(box):
    method = Program("class Solution:\n    def add(self, a, b):\n        return a + b\n", "Solution.add")
    reading = Program("import sys\nprint('and', sum(map(int, sys.stdin)))\n")
    main = Program("if __name__ == '__main__':\n    print(input()[::-1])\n")
    jobs = [
        (Program("def f(x):\n    return {x: (1, [2.5, None])}\n", "f"), [Case(("é\0",), {"é\0": (1, [2.5, None])})]),
        (method, [Case((1, 2), 3), Case(([1], [2]), [1, 2])]),
        (reading, [Case("1\n2\n", "and 3"), Case("5" * 3 + "\n" + "1\n" * 50_000, "and 50555  \n\n")]),
        (main, [Case("abc", "cba")]),
    ]
    assert [reasons(verdicts) for verdicts in box.grade_many(jobs)] == [["passed"] * len(cases) for _, cases in jobs]


def test_results_are_in_order(box):
    jobs = [(Program(f"import time\ntime.sleep({0.1 * (n % 2)})\ndef f(x): return {n}", "f"), [(0,)]) for n in range(6)]
    assert [outputs[0].value for outputs in box.outputs_many(jobs)] == list(range(6))
    assert box.grade_many([]) == []
    assert box.grade(jobs[0][0], []) == []


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("while True: pass", "timeout"),
        ("os._exit(3)", "exception"),
        ("os._exit(0)", "exception"),
        ("raise ValueError(x)", "exception"),
        ("sys.exit(0)", "exception"),
        ("import ctypes; ctypes.string_at(0)", "exception"),
        ("return bytearray(1 << 30)", "memory"),
        ("os.closerange(3, 64); import time; time.sleep(2)", "forbidden"),
        ("return 'x' * 2_000_000", "wrong answer"),
    ],
)
def test_a_test_that_fails_fails_alone(box, bad, reason):
    source = f"import os, sys\ndef f(x):\n    if x == 2:\n        {bad}\n    return x\n"
    verdicts = box.grade(Program(source, "f"), [Case((x,), x) for x in range(5)])
    assert reasons(verdicts) == ["passed", "passed", reason, "passed", "passed"]


def test_too_much_printed_before_an_exit_is_a_wrong_answer(box):
    verdicts = box.grade(Program("import os\nos.write(1, b'x' * 2_000_000)\nos._exit(0)"), [Case("", "5")] * 2)
    assert reasons(verdicts) == ["wrong answer"] * 2


def test_the_end_of_a_program_that_prints(box):
    def graded(source):
        return reasons(box.grade(Program(source), [Case("4\n", "5"), Case("4\n", "5")]))

    assert graded("import os\nos.write(1, b'5\\n')\nos._exit(0)") == ["passed"] * 2
    assert graded("import sys\nprint(5)\nsys.exit()") == ["passed"] * 2
    assert graded("import sys\nprint(5)\nsys.exit(1)") == ["exception"] * 2
    assert graded("import os\nos.write(1, b'5\\n')\nos._exit(1)") == ["exception"] * 2
    assert graded("syntax error") == ["exception"] * 2


def test_time_for_all_tests_is_limited(box):
    with Sandbox(
        limits=replace(LIMITS, test_seconds=0.3, seconds=0.5), isolation=box.isolation.name, unsafe=True
    ) as quick:
        verdicts = quick.grade(Program("while True: pass"), [Case("", "")] * 5)
    assert reasons(verdicts) == ["timeout", "timeout", "not run", "not run", "not run"]
    assert {verdict.status for verdict in verdicts[2:]} == {Status.NOT_RUN}


ASYNC = """
import asyncio
async def half(n):
    await asyncio.sleep(0.001)
    return n / 2
async def main(n):
    first, second = await asyncio.gather(half(n), asyncio.wait_for(half(n), 5))
    return first + second + await asyncio.to_thread(lambda: n)
def double(n):
    return asyncio.run(main(n))
"""


def test_asyncio_runs(box):
    assert reasons(box.grade(Program(ASYNC, "double"), [Case((n,), 2 * n) for n in range(3)])) == ["passed"] * 3
    script = ASYNC + "print(round(double(int(input()))))"
    assert reasons(box.grade(Program(script), [Case(f"{n}", f"{2 * n}") for n in range(3)])) == ["passed"] * 3


HOLDS = """
import atexit, gc
data = bytearray(300 << 20)
def keep():
    return data
atexit.register(keep)
gc.freeze()
assert input() != "2"
print(len(keep()))
"""


def test_each_test_has_all_of_the_memory(box):
    expected = str(300 << 20)
    with Sandbox(limits=replace(LIMITS, memory_mb=512), isolation=box.isolation.name, unsafe=True) as large:
        verdicts = large.grade(Program(HOLDS), [Case(f"{number}", expected) for number in range(6)])
    assert reasons(verdicts) == ["passed", "passed", "exception", "passed", "passed", "passed"]


OPEN_TO_WRITE = """
import fcntl, os, stat
def f(_):
    found = []
    for number in range(64):
        try:
            regular = stat.S_ISREG(os.fstat(number).st_mode)
        except OSError:
            continue
        if regular and fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE:
            found.append(number)
    return found
"""


def test_a_function_inherits_no_file_that_it_can_write_to(box):
    assert box.outputs_many([(Program(OPEN_TO_WRITE, "f"), [(1,)])])[0][0].value == []


def test_bad_arguments_are_named():
    with Sandbox(limits=LIMITS, unsafe=True) as box:
        with pytest.raises(InputError, match="input must be text"):
            box.grade(Program("print(1)"), [Case((1,), "1")])
        with pytest.raises(InputError, match="input must hold numbers"):
            box.grade(Program("def f(x): return x", "f"), [Case((object(),), 1)])
        with pytest.raises(InputError, match="compare must be one of"):
            box.grade(Program("def f(x): return x", "f"), [Case((1,), 1, compare="luck")])


def test_without_isolation_it_refuses_unless_unsafe(monkeypatch):
    monkeypatch.setattr(grading, "unavailable_reason", lambda isolation: "it is a Tuesday")
    with pytest.raises(InputError, match="bubblewrap: it is a Tuesday; landlock: it is a Tuesday"):
        Sandbox()
    with pytest.raises(InputError, match="landlock does not work here"):
        Sandbox(isolation="landlock")
    with Sandbox(unsafe=True) as box:
        assert box.isolation.name == "none"


def test_no_isolation_is_chosen_by_unsafe_alone():
    with pytest.raises(InputError, match="needs unsafe=True"):
        Sandbox(isolation="none")
    with pytest.raises(InputError, match="isolation must be one of bubblewrap, landlock, none, not 'chroot'"):
        Sandbox(isolation="chroot")
    with Sandbox(isolation="none", unsafe=True) as box:
        assert box.isolation.name == "none"


def test_unavailable_reason_is_what_the_failed_start_printed():
    class Broken(Bubblewrap):
        def missing(self):
            return ""

        def command(self, limits):
            return [sys.executable, "-c", "raise SystemExit('no user namespaces here')"]

    assert "no user namespaces here" in unavailable_reason(Broken())


def test_one_sandbox_for_the_same_limits():
    assert shared(LIMITS, unsafe=True) is shared(replace(LIMITS), unsafe=True)
    assert shared(unsafe=True) is not shared(LIMITS, unsafe=True)


# The ways in which programs of contests read and print.
DOUBLE = {
    "input": "print(2 * int(input()))",
    "open(0)": "print(2 * int(open(0).read()))",
    "open(0) by lines": "print(2 * int(open(0).readline()))",
    "open(1)": "open(1, 'w').write(str(2 * int(input())))",
    "closed": "import sys\nprint(2 * int(input()))\nsys.stdout.close()",
    "exit": "print(2 * int(input()))\nexit()",
    "quit": "print(2 * int(input()))\nquit(0)",
    "__stdout__": "import sys\nsys.__stdout__.write(str(2 * int(sys.__stdin__.readline())))",
    "replaced": "import io, sys\nout = sys.stdout\nsys.stdout = io.StringIO()\nprint(2 * int(input()))\n"
    "out.write(sys.stdout.getvalue())",
    "at exit": "import atexit, io, sys\nbuffer = io.StringIO()\nprint = lambda *words: buffer.write(str(*words))\n"
    "atexit.register(lambda: sys.__stdout__.write(buffer.getvalue()))\nprint(2 * int(input()))",
    "os.write": "import os\nos.write(1, str(2 * int(os.read(0, 100))).encode())",
    "buffer": "import sys\nsys.stdout.buffer.write(str(2 * int(sys.stdin.buffer.readline())).encode())",
    "main": "def main():\n    print(2 * int(input()))\nif __name__ == '__main__':\n    main()",
    "thread": "import threading\nthreading.Thread(target=lambda: print(2 * int(input()))).start()",
}


@pytest.mark.parametrize("form", DOUBLE)
def test_every_form_of_reading_and_printing(box, form):
    verdicts = box.grade(Program(DOUBLE[form]), [Case(f"{number}\n", str(2 * number)) for number in range(4)])
    assert [verdict.status for verdict in verdicts] == [Status.PASSED] * 4, verdicts
