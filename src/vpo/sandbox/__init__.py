"""Runs untrusted Python programs against test cases, and compares their outputs outside the sandbox.

What it covers:

- A program never shares a process with the grader and never sees an expected output: it gets inputs and returns text,
  which the grader reads as data. Whatever a program patches, prints, forges or raises is at most a wrong output.
- Under bubblewrap: no network, no process but its own, none of the host's files but the system's and Python's,
  read-only; a private /tmp of limited size that is deleted with it; no environment, no capabilities, no user's rights.
- A seccomp filter that allows what a single Python process with threads needs: no fork, no signal to anything, no
  socket but a pair connected to itself, no lock on a file, no ptrace, no mount, no keys, no BPF, no io_uring.
- Limits on memory, processor time, open files, file sizes and output; wall clocks for each test and for the whole
  program, kept by the grader. A test that loops or crashes fails alone; the next test runs in a new process.
- Each program has its own sandbox, so that none reaches another's, and nothing of it is left behind.
- Failures of the sandbox itself are reported as such, not as failures of the program.

What it does not cover:

- A process table that nobody reaps: a program that exits inside bubblewrap leaves a zombie to the machine's first
  process. In a container that must be one that reaps (``docker run --init``).
- Bugs of the kernel, which is shared. Against those, run the whole grader in a virtual machine.
- Side channels: how long other programs take, how loaded the machine is. Programs on one machine compete for its
  cores, so a time limit is no fair measure of speed.
- Kernel memory that counts towards no limit of a process: names of very many files in /tmp; threads, where the grader
  runs as root, for whom the kernel allows as many as the address space holds. A cgroup around the grader bounds both.
- A machine that runs out of memory: a program that the kernel kills then has failed under bubblewrap; under Landlock it
  is tried again and then an infrastructure error. Workers times memory should fit the machine.
- Without bubblewrap, under Landlock: there is no private /tmp (nothing can be written at all), and a program sees names
  and sizes of files that it cannot open.
- A program that knows the test cases: whoever trains on tests must hold others out.
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
