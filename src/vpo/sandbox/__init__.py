"""Runs untrusted Python programs against test cases, and compares their outputs outside the sandbox.

Three kinds of processes: the caller (a trainer), which sends programs and gets verdicts of fixed size; a judge for each
program, forked by a small server, which starts the sandbox, gives it one input at a time, and reads and compares what
comes out; and the sandboxed program, forked from an interpreter that has run nothing.

What it covers:

- A program never shares a process with its judge and never sees an expected output: it gets the input of a test when
  its turn comes and returns text, which the judge reads as data. Whatever a program patches, prints, forges or raises
  is at most a wrong output.
- What a program writes or returns never enters the caller's process. The judge refuses what is far larger than the
  expected output, and reads the rest within a budget of processor time and memory. A judge that an output ends has
  failed that test; the next test and other programs have another judge. The same holds for sources that are parsed.
- Under bubblewrap: no network, no process but its own, none of the host's files but the system's and Python's,
  read-only; a private /tmp of limited size that is deleted with it; no environment, no capabilities, no user's rights.
- A seccomp filter that allows what a single Python process with threads needs: no fork, no signal to anything, no
  socket but a pair connected to itself, no lock on a file, no ptrace, no mount, no keys, no BPF, no io_uring.
- Limits on memory, threads, open files, file sizes and output. Time limits, for each test and for the whole program,
  are processor time and time asleep, read by the judge from outside, so that busy neighbours cost nothing; the wall
  clock is a far larger second limit. A test that loops or crashes, or leaves a thread behind, ends its process; the
  next test runs in a new one, whose start is charged.
- Each program has its own sandbox, so that none reaches another's, and nothing of it is left behind.
- Failures of the sandbox itself are reported as such, not as failures of the program.

What it does not cover:

- Bugs of the kernel, which is shared. Against those, run the whole grader in a virtual machine.
- Side channels: how long other programs take, how loaded the machine is. Processor time itself is slower beside
  neighbours that fill the caches.
- Limits of a whole program by a cgroup, and a user for each program: both need root or a delegated cgroup. Memory is
  limited as address space of the one process that a program is, threads by counting them every 20 ms, after which a
  program that has too many is ended. Kernel memory counts towards neither: names of very many files in /tmp, pipes.
  A cgroup around the caller bounds all of it together.
- A machine that runs out of memory: a program that the kernel kills then has failed under bubblewrap; under Landlock it
  is tried again and then an infrastructure error. Workers times memory should fit the machine. The kernel is told to
  end judges and programs before the caller.
- Without bubblewrap, under Landlock: there is no private /tmp (nothing can be written at all), and a program sees names
  and sizes of files that it cannot open.
- A program that knows the test cases: whoever trains on tests must hold others out.
- Evaluators that need packages and subprocesses: those run behind another wall, `vpo.sandbox.wall`.
- Systems other than Linux, machines other than x86_64 and aarch64: there it refuses, unless ``unsafe=True``, which is
  a process with limits and no isolation.
"""

from vpo.sandbox.grading import Sandbox, find_isolation, shared, unavailable_reason
from vpo.sandbox.isolation import ISOLATIONS, SAFE
from vpo.sandbox.verdicts import Case, Limits, Output, Program, Status, Verdict

__all__ = [
    "ISOLATIONS",
    "SAFE",
    "Case",
    "Limits",
    "Output",
    "Program",
    "Sandbox",
    "Status",
    "Verdict",
    "find_isolation",
    "shared",
    "unavailable_reason",
]
