"""Settings for all tests: seeded, and without time limits, which a loaded machine would miss."""

import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two threads stall each other under load

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("vpo", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("vpo")

# The background of a shell lets the tests, and what they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng():
    """A generator of the test's own, so that no test depends on the order they run in."""
    return np.random.default_rng(0)
