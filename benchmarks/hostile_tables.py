"""The parts of which `hostile.py` makes random programs."""

SIZES = (0, 1, 2, 10, 100, 1000, 10_000, 100_000, 1_000_000, 5_000_000, 15_900_000)
DEPTHS = (1, 5, 50, 190, 199, 200, 201, 900, 5000, 100_000)
BITS = (8, 64, 4000, 4097, 15_000, 60_000, 1_000_000, 60_000_000)
CHARACTERS = r"""
x \n \r \0 \x20 \x1b[2J é \u2028 \ud800 \udfff\ud800 \U0001f600 ٣ [ \" \\
"""

# Base types with methods that lie. Each is one line, so that pieces can be put together.
CLASSES = """
class Yes(object):
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = lambda *_: True
    __ne__ = lambda *_: False
    __hash__ = lambda self: 0
    __bool__ = lambda self: True
class YesInt(int): __eq__ = lambda *_: True; __hash__ = object.__hash__; __int__ = lambda self: 1; __index__ = __int__
class YesStr(str): __eq__ = lambda *_: True; __hash__ = str.__hash__; __str__ = lambda self: 1
class YesFloat(float): __eq__ = lambda *_: True; __hash__ = float.__hash__; __float__ = lambda self: "x"
class YesList(list): __eq__ = lambda *_: True; __iter__ = lambda self: iter([self]); __len__ = lambda self: 10**9
class YesTuple(tuple): __eq__ = lambda *_: True; __hash__ = lambda self: 0; __iter__ = lambda self: iter(())
class YesDict(dict): __eq__ = lambda *_: True; items = lambda self: [(1, 2, 3)]; keys = items
class YesSet(set): __eq__ = lambda *_: True; __iter__ = lambda self: iter([[]])
class YesFrozen(frozenset): __hash__ = object.__hash__
class YesBytes(bytes): __eq__ = lambda *_: True; __hash__ = bytes.__hash__; hex = lambda self: 5; __bytes__ = hex
class Complex(complex): real = property(lambda self: "x"); imag = property(lambda self: 1 / 0)
class Liar:
    __class__ = property(lambda self: int)
    __reduce__ = lambda self: (eval, ("1",))
    __float__ = __int__ = __index__ = lambda self: 1
    __array__ = lambda self, *_: [1]
    __getattr__ = lambda self, name: self
    __call__ = lambda self, *_: self
    __iter__ = lambda self: iter([self])
    __len__ = lambda self: -1
    __repr__ = __str__ = lambda self: "x" * 10**8
class Raising:
    __repr__ = __str__ = __eq__ = __hash__ = __iter__ = __len__ = lambda *_: 1 / 0
class Meta(type):
    __name__ = property(lambda self: 1 / 0)
    __instancecheck__ = lambda *_: True
    __hash__ = lambda self: 1 / 0
class Odd(metaclass=Meta): pass
class Failing(Exception): __str__ = __repr__ = lambda self: 5
def alike(last, first=0):
    numbers = [*range(30 * first, 30 * first + 30), 10**6 + last]
    return YesFrozen([YesInt((2**61 - 1) * number) for number in numbers])
"""
# Expressions of values that are a burden or a lie, one a line; words in capitals are filled in.
VALUES = r"""
'CHAR' * SIZE
b'\xff' * SIZE
1 << BITS
-(1 << BITS)
float('nan')
float('-inf')
1e308 * 10j
None
...
NotImplemented
object()
Yes()
Liar()
Raising()
Odd()
Odd
Failing()
YesInt(5)
YesStr('x')
YesFloat(1)
YesBytes(b'x')
Complex(1)
YesList([INNER])
YesTuple([INNER])
YesDict({1: INNER})
YesSet([1, 2])
YesFrozen([1])
[INNER] * SIZE
(INNER,) * SIZE
{n: INNER for n in range(min(SIZE, 1_000_000))}
list(range(SIZE))
set(range(SIZE))
[[]] * SIZE
[{}] * SIZE
[''] * SIZE
{YesInt((2**61 - 1) * n) for n in range(min(SIZE, 100_000))}
{alike(n) for n in range(min(SIZE, 500))}
{YesFrozen([alike(n, m) for m in range(9)]) for n in range(min(SIZE, 300))}
{YesTuple([YesInt((2**61 - 1) * n)]): INNER for n in range(min(SIZE, 10_000))}
(lambda v: [v := [v] for _ in range(DEPTH)][-1])([])
(lambda v: [v := {1: v} for _ in range(DEPTH)][-1])([])
[(lambda v: [v := [v] for _ in range(DEPTH)][-1])([])] * SIZE
(lambda v: [v := (v, v) for _ in range(min(DEPTH, 60))][-1])(1)
(lambda v: v.append(v) or v)([])
(lambda v: v.update(a=v) or v)({})
(n for n in iter(int, 1))
range(10**9)
iter([1])
memoryview(b'x')
bytearray(9)
__import__('array').array('d', [1.0])
__import__('sys')
__import__('sys')._getframe()
__import__('decimal').Decimal('1e999999')
__import__('fractions').Fraction(1, 3)
__import__('datetime').date.max
__import__('collections').deque([1])
__import__('collections').Counter('abc')
__import__('types').SimpleNamespace(a=1)
type('x' * 10**7, (), {})()
type('\ud800', (), {})()
lambda: 1
{'CHAR': INNER, 'd': 1}
{'i': '0x' + 'f' * 99}
{'o': 'x'}
{'s': [[]]}
{float('nan'): 1, 1: 2}
"""
# Statements that print.
PRINTING = r"""
print('CHAR' * SIZE)
print(INNER)
print('1 2\n' * min(SIZE, 4_000_000))
print('1' * SIZE)
print('1e' + '9' * SIZE)
print(*range(min(SIZE, 1_000_000)))
print(end='')
print('CHAR', flush=True); import os; os._exit(0)
print('CHAR', flush=True); import os; os._exit(255)
print(5); raise SystemExit(3)
import sys; sys.stdout.write('CHAR' * SIZE); sys.stdout.flush(); sys.stdout.detach()
import sys; sys.stdout.reconfigure(encoding='utf-16'); print('CHAR' * SIZE)
import os; os.write(1, ('CHAR' * SIZE).encode('utf-8', 'surrogatepass'))
import os; os.write(1, os.urandom(min(SIZE, 1_000_000)))
import os; os.writev(1, [b'5\n'] * min(SIZE, 1000))
import os; os.lseek(1, SIZE, 0); print(5)
import os; os.set_blocking(1, False); print(5)
import os; os.pwrite(1, b'5' * min(SIZE, 9999), SIZE)
"""
# Repeated, they make sources that are a burden to parse, or are none.
PARTS = r"""
a. ( [ { - not\x20 ~ lambda: x= a; 1:1, \\ ' \"\"\" f'{ {a} \n \x20 \t\n\x20 if\x201:\n\x20 \0 \ufeff \ud800 ﷺ 1
0x f 1_ 1e @a\n * a\x20if\x20b\x20else\x20 await\x20 #coding:utf-7\n #coding:bomb\n \x0c import\x20a\n x='\\z'\n
1\x20is\x201\n try: \U0001f600 match\x20x:\n\x20case\x20 global\x20a\n return\n yield\x20 async\x20def\x20f():\x20
x[:] a,= **a, %
"""
# What a program does before it answers.
TRICKS = (
    "import builtins; builtins.len = builtins.isinstance = builtins.type = lambda *_: True",
    "import builtins; builtins.hex = builtins.str = lambda *_: '0x1'",
    "import builtins; builtins.__import__ = None",
    "import builtins; builtins.__dict__.clear()",
    "import json, marshal, pickle; json.dumps = marshal.loads = marshal.dumps = pickle.dumps = lambda *_: 1",
    "import sys; sys.modules.clear()",
    "import sys; [vars(m).clear() for n, m in list(sys.modules.items()) if n in ('runner', 'values', '_json', 'os')]",
    "import sys; [setattr(sys.modules[n], a, lambda *_: 1) for n in ('runner', 'values') for a in ('pack', 'send', "
    "'describe', '_encode', 'forget') if n in sys.modules]",
    "import sys; sys.setrecursionlimit(10**6)",
    "import sys; sys.setrecursionlimit(30)",
    "import sys; sys.settrace(lambda *_: 1 / 0)",
    "import sys; sys.setprofile(lambda *_: 1 / 0)",
    "import sys; sys.stdout = sys.stderr = sys.stdin = None",
    "import sys; sys.stdout.close(); sys.stdin.close()",
    "import sys; sys.set_int_max_str_digits(0)",
    "import sys; sys.flags = sys.path = sys.meta_path = None",
    "import gc; gc.disable(); gc.freeze(); gc.set_threshold(1)",
    "import os; os.closerange(0, 64)",
    "import os; os.closerange(3, 64)",
    "import os; os.close(1)",
    "import os; os.dup2(0, 1)",
    "import os; [os.dup2(0, n) for n in range(3, 60)]",
    "import os; os.lseek(1, 1 << 40, 0)",
    "import os; os.write(1, b'5' * 70_000); os.ftruncate(1, 0)",
    "import os; os.pwrite(1, b'9' * 100, 1 << 20)",
    "import os; os.ftruncate(1, 1 << 26)",
    "import os; os.read(0, 10**6); os.write(0, b'x')",
    "import os; os.fork()",
    "import os; os.execv('/bin/true', ['true'])",
    "import os; os.kill(os.getppid(), 9)",
    "import os; os.kill(os.getpid(), 19)",
    "import os; os.abort()",
    "import os; os._exit(0)",
    "import os; os._exit(137)",
    "import os; os.chdir('/'); os.umask(0o777)",
    "import os; [open(f'/tmp/{n}', 'w') for n in range(50)]",
    "import os; [os.pipe() for _ in range(40)]",
    "import socket; [socket.socketpair() for _ in range(40)]",
    "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))",
    "import resource; resource.setrlimit(resource.RLIMIT_CPU, (0, 0))",
    "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
    "import signal; [signal.signal(n, signal.SIG_IGN) for n in range(1, 65) if n not in (9, 19, 32, 33)]",
    "import signal; signal.setitimer(signal.ITIMER_REAL, 0.01)",
    "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
    "import threading; threading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True).start()",
    "import threading, time; threading.Thread(target=lambda: time.sleep(60)).start()",
    "import threading; [threading.Thread(target=threading.Event().wait, daemon=True).start() for _ in range(30)]",
    "import atexit; atexit.register(lambda: 1 / 0); atexit.register(lambda: atexit.register(print))",
    "import faulthandler, ctypes; ctypes.string_at(0)",
    "import ctypes; ctypes.memset(id(0) - 64, 255, 4096)",
    "import warnings; warnings.simplefilter('error'); warnings.warn('x')",
    "raise SystemExit(0)",
    "raise KeyboardInterrupt",
    "raise MemoryError('x' * 10**6)",
    "raise PermissionError('\\ud800' * 10**6)",
    "raise Failing",
    "raise BaseExceptionGroup('x', [Failing()] * 1000)",
    "x = [0] * 10**9",
    "x = 'x' * 10**8",
    "while True: pass",
    "def again(): again()\nagain()",
)
# What is written to every open file but the standard ones. Numbers of tests and lengths are guessed.
FRAMES = (
    "b'[0,\"returned\",%d]\\n' % size",
    'b\'[0,"returned",{"s":[[]]}]\\n\'',
    "b'[0,\"returned\",' + b'[' * size + b']' * size + b']\\n'",
    "b'[0,\"returned\",' + b'1' * size + b']\\n'",
    'b\'[0,"returned",NaN]\\n[1,"returned",5]\\n\' * 9',
    "b'[0,\"returned\",{\"i\":\"' + b'f' * size + b'\"}]\\n'",
    "b'[0,\"returned\",{\"d\":[' + b'[[],[]],' * (size // 8) + b'[1,1]]}]\\n'",
    "b'[0,\"exception\",\"' + b'\\\\ud800' * (size // 6) + b'\"]\\n'",
    'b\'[0,"infrastructure error","x"]\\n\'',
    'b\'["ready"]\\n["exited"]\\n\' * 9',
    "b'r\\0\\0\\0\\xff' + bytes(size)",
    "b'\\n' * size",
    "bytes(size)",
    "b'\\xff' * size",
    "b'\\x80\\x04.' * 99",
    "os.urandom(min(size, 65536))",
)
WRITE = """
import os
def flood(size):
    for number in range(3, 64):
        rest = {frame}
        try:
            os.set_blocking(number, False)
            while rest: rest = rest[os.write(number, rest):]
        except OSError: pass
flood({size})
"""
