"""Limits for harmless programs, and verdicts in short."""

from vpo.sandbox import Limits

LIMITS = Limits(test_seconds=1.0, seconds=4.0, memory_mb=256)


def reasons(verdicts):
    return [verdict.reason or verdict.status.value for verdict in verdicts]
