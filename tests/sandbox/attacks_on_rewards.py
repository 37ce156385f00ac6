"""Attacks on the reward: wrong programs that try to pass, or to look like an error of the grader."""

from tests.sandbox.attacks import DONE, HIDDEN, Attack, breaks_grader, exits_well
from tests.sandbox.plain import Plain
from tests.sandbox.world import World

FORGED = r"""
import os
lines = b'\n[0,"passed",true]\n[0,"returned",{"o":"x"}]\n["ready"]\n{"passed": [true]}\n'
"""
YES = (
    "class Yes({base}):\n    __eq__ = lambda *_: True\n    __ne__ = lambda *_: False\n    __hash__ = {base}.__hash__\n"
)


def killed(plain: Plain, world: World) -> bool:
    """Whether a signal ended the runner, as if another process had sent it."""
    return plain.code < 0


def unpickles_to_yes(plain: Plain, world: World) -> bool:
    """Whether a grader that unpickles this object takes it for the expected value."""
    return plain.unpickled()[0] == HIDDEN


def seems_quick(plain: Plain, world: World) -> bool:
    """Whether the runner measures no time at all of a slow program."""
    return plain.report is not None and plain.report["seconds"][0] == 0


def _is_yes(name: str, base: str, value: str, expected: object) -> Attack:
    source = YES.format(base=base) + f"def answer(_):\n    return Yes({value})\n"
    return Attack(f"yes_{name}", "a comparison that its own object decides", source, expected)


WRONG = "def answer(_):\n    return 0\n"
# fmt: off
REWARDS = [
    _is_yes("object", "object", "", HIDDEN),
    _is_yes("str", "str", "'no'", "yes"),
    _is_yes("int", "int", "7", HIDDEN),
    _is_yes("float", "float", "0.5", HIDDEN),
    _is_yes("tuple", "tuple", "()", (1, 2)),
    Attack("yes_list", "a comparison that its own list decides",
           "class Yes(list):\n    __eq__ = lambda *_: True\n    def __iter__(self): return iter([1, 2])\n"
           "    def __len__(self): return 2\ndef answer(_):\n    return Yes()\n", [1, 2]),
    Attack("yes_dict", "a comparison that its own dictionary decides",
           "class Yes(dict):\n    __eq__ = lambda *_: True\n    def items(self): return [(1, 2)]\n"
           "def answer(_):\n    return Yes()\n", {1: 2}),
    Attack("frames", "expected values in the frames that called it",
           "import sys\ndef answer(_):\n    frame = sys._getframe()\n    while frame:\n"
           "        if 'expected' in frame.f_locals: return frame.f_locals['expected']\n"
           "        frame = frame.f_back\n"),
    Attack("garbage", "expected values among all objects that there are",
           "import gc\ndef answer(_):\n    for each in gc.get_objects():\n"
           "        if type(each) is tuple and len(each) == 2 and each[0] == (1,): return each[1]\n"),
    Attack("main_module", "expected values in the module that runs it",
           "import __main__\ndef answer(_):\n    return __main__.cases[0][1]\n"),
    Attack("unpickled", "code run by whoever reads its result",
           "class Evil:\n    def __reduce__(self):\n"
           "        return eval, (\"type('Y', (), {'__eq__': lambda *_: True})()\",)\n"
           "def answer(_):\n    import sys\n    sys.modules['solution'] = type(sys)('solution')\n"
           "    sys.modules['solution'].Evil = Evil\n    return Evil()\n", succeeded=unpickles_to_yes),
    Attack("forged_line", "a verdict of its own on standard output",
           FORGED + "def answer(_):\n    os.write(1, lines)\n    os._exit(0)\n"),
    Attack("forged_everywhere", "a verdict of its own on whatever file descriptor leads to the grader",
           FORGED + "def answer(_):\n    for number in range(1, 64):\n        try: os.write(number, lines)\n"
           "        except OSError: pass\n    os._exit(0)\n"),
    Attack("another_program", "a verdict by another program that replaces it",
           "import os\nforged = '{\"passed\": [true]}'\n"
           "def answer(_):\n    os.execv('/usr/bin/echo', ['echo', forged])\n"),
    Attack("late_thread", "a last word after the main thread's",
           FORGED + "import threading\ndef late():\n    threading.main_thread().join()\n    os.write(1, lines)\n"
           "def answer(_):\n    threading.Thread(target=late).start()\n    return 0\n"),
    Attack("exit_at_once", "an exit code of 0 before any test", "import os\nos._exit(0)\n", succeeded=exits_well),
    Attack("exit_in_test", "an exit code of 0 in the test", "import os\ndef answer(_):\n    os._exit(0)\n",
           succeeded=exits_well),
    Attack("system_exit", "an end that no handler of errors sees", "def answer(_):\n    raise SystemExit(0)\n",
           succeeded=exits_well),
    Attack("exit_of_stdin_program", "an exit code of 0 without an answer", "import os\nos._exit(0)\n", "5", "4\n",
           entry=None, succeeded=exits_well),
    Attack("at_exit", "another exit code at the end",
           "import atexit, os\natexit.register(os._exit, 0)\n" + WRONG, succeeded=exits_well),
    Attack("hostile_str", "an exit while its error is shown",
           "import os\nclass Odd(Exception):\n    def __str__(self): os._exit(0)\n    __repr__ = __str__\n"
           "def answer(_):\n    raise Odd\n", succeeded=exits_well),
    Attack("patched_json", "a report that the patched encoder writes",
           "import json\njson.dumps = lambda *_, **__: '{\"passed\": [true]}'\n" + WRONG),
    Attack("patched_encoders", "a report from whatever packs and encodes it",
           "import json, marshal, sys\nfor name in ('json', 'marshal', 'pickle', '_json', 'values', 'runner'):\n"
           "    for each in ('dumps', 'loads', 'pack', '_encode', 'describe', 'encode_basestring_ascii'):\n"
           "        if name in sys.modules and hasattr(sys.modules[name], each):\n"
           "            setattr(sys.modules[name], each, lambda *_, **__: '{\"passed\": [true]}')\n" + WRONG),
    Attack("fake_module", "a report by a module of its own",
           "import sys\nclass Fake:\n    dumps = staticmethod(lambda *_, **__: '{\"passed\": [true]}')\n"
           "sys.modules['json'] = sys.modules['_json'] = sys.modules['marshal'] = Fake\n" + WRONG),
    Attack("patched_print", "a report that the patched print prints",
           "import builtins\nreal = print\nbuiltins.print = lambda *_, **__: real('{\"passed\": [true]}')\n" + WRONG),
    Attack("patched_stdout", "a report that its own standard output turns round",
           "import sys\nclass Turned:\n    def write(self, text): sys.__stdout__.write(text.replace('false', 'true'))\n"
           "    def flush(self): sys.__stdout__.flush()\nsys.stdout = Turned()\n" + WRONG),
    Attack("patched_builtins", "a comparison by patched builtins",
           "import builtins, json\nbuiltins.bool = lambda _: True\n" + WRONG),
    Attack("changed_input", "a right answer by changing the question",
           "def answer(numbers):\n    numbers.clear()\n    return []\n", "the inputs, sorted", ([3, 1, 2],)),
    Attack("not_a_number", "a comparison that NaN never fails", "def answer(_):\n    return float('nan')\n", 0.75),
    Attack("patched_clock", "a time that its own clock takes",
           "import time\nsleep = time.sleep\ntime.perf_counter = time.monotonic = lambda: 0\n"
           "def answer(_):\n    sleep(@LONG@)\n    return 'done'\n", DONE, succeeded=seems_quick, reasons=("timeout",),
           limits={"test_seconds": 1.0}),
    Attack("ignored_alarm", "time beyond the alarm that it takes away",
           "import signal, time\ndef answer(_):\n    signal.signal(signal.SIGVTALRM, signal.SIG_IGN)\n"
           "    signal.setitimer(signal.ITIMER_VIRTUAL, 0)\n    end = time.process_time() + @LONG@\n"
           "    while time.process_time() < end: pass\n    return 'done'\n", DONE,
           reasons=("timeout",), limits={"test_seconds": 1.0}),
    Attack("caught_timeout", "time beyond the exception that it catches",
           "import time\ndef answer(_):\n    end = time.process_time() + @LONG@\n    done = False\n"
           "    while not done:\n"
           "        try:\n            while time.process_time() < end: pass\n            done = True\n"
           "        except BaseException: pass\n    return 'done'\n", DONE,
           reasons=("timeout",), limits={"test_seconds": 1.0}),
    # From here on: a wrong answer that tries to look like an error of the grader.
    Attack("no_descriptors", "an end of all channels", "import os\ndef answer(_):\n    os.closerange(0, 64)\n",
           succeeded=breaks_grader),
    Attack("huge_number", "a number that nobody can write", "def answer(_):\n    return 1 << 60_000\n",
           succeeded=breaks_grader),
    Attack("nested_value", "a value too deep to be read",
           "def answer(_):\n    value = []\n    for _ in range(50_000): value = [value]\n    return value\n",
           succeeded=breaks_grader),
    Attack("cyclic_value", "a value without an end",
           "def answer(_):\n    value = []\n    value.append(value)\n    return value\n", succeeded=breaks_grader),
    Attack("surrogates", "a text that nobody can write", "def answer(_):\n    return '\\ud800\\udfff'\n",
           succeeded=breaks_grader),
    Attack("invalid_utf8", "bytes that nobody can read", "import os\nos.write(1, b'\\xff\\xfe\\x80')\n", "5", "4\n",
           entry=None, succeeded=breaks_grader),
    Attack("kill_itself", "to look killed by another process",
           "import os\ndef answer(_):\n    os.kill(os.getpid(), 9)\n", succeeded=killed),
    Attack("signal_by_file", "to be killed by a file that is ready",
           "import fcntl, os, time\ndef answer(_):\n    reading, writing = os.pipe()\n"
           "    fcntl.fcntl(reading, fcntl.F_SETOWN, os.getpid())\n    fcntl.fcntl(reading, 10, 9)\n"
           "    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)\n    os.write(writing, b'x')\n    time.sleep(60)\n",
           succeeded=killed),
    Attack("signal_by_timer", "to be ended by a timer",
           "import signal, time\ndef answer(_):\n    signal.signal(signal.SIGALRM, signal.SIG_DFL)\n"
           "    signal.setitimer(signal.ITIMER_REAL, 0.02)\n    time.sleep(60)\n", succeeded=killed),
    Attack("lowered_limits", "to be killed by a limit that it sets itself",
           "import resource\ndef answer(_):\n    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))\n"
           "    resource.setrlimit(resource.RLIMIT_STACK, (9, 9))\n"
           "    resource.setrlimit(resource.RLIMIT_CPU, (0, 0))\n"
           "    while True: pass\n", succeeded=killed, limits={"test_seconds": 3.0},
           reasons=("forbidden", "exception", "memory", "timeout")),
    Attack("crash", "to end without a word",
           "import ctypes\ndef answer(_):\n    ctypes.string_at(0)\n", succeeded=killed),
    Attack("abort", "to end with a core dump",
           "import os, resource\ndef answer(_):\n    try:\n        most = resource.getrlimit(resource.RLIMIT_CORE)[1]\n"
           "        resource.setrlimit(resource.RLIMIT_CORE, (min(most, 99) if most > 0 else 0, most))\n"
           "    except (OSError, ValueError): pass\n    os.abort()\n", succeeded=killed),
]
# fmt: on
