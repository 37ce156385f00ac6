"""Settings for all tests: seeded, and without time limits, which a loaded machine would miss."""

import atexit
import os
import shutil
import signal
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two threads stall each other under load

import numpy as np
import pytest
from hypothesis import settings

from vpo.util import progress

# The user's cache is neither read nor written, but for what takes long to make again.
_caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
os.environ.setdefault("HF_HOME", str(_caches / "huggingface"))
os.environ.setdefault("MPLCONFIGDIR", str(_caches / "matplotlib"))
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="vpo-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)

settings.register_profile("vpo", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("vpo")

# The background of a shell lets the tests, and what they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_feedback_on_slowness(monkeypatch):
    """Whatever a loaded machine takes seconds for prints no more than on an idle one."""
    monkeypatch.setattr(progress, "BAR_SECONDS", 1e6)
    monkeypatch.setattr(progress, "WAIT_SECONDS", 1e6)


@pytest.fixture
def rng():
    """A generator of the test's own, so that no test depends on the order they run in."""
    return np.random.default_rng(0)
