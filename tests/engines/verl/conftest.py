"""Settings of Ray and of verl's queue, which read them when they are imported."""

import os

# On a busy machine their processes take long to start and to answer.
for name in (
    *("RAY_raylet_start_wait_time_s", "RAY_worker_register_timeout_seconds"),
    *("TQ_STORAGE_HANDSHAKE_TIMEOUT", "TQ_DATA_UPDATE_RESPONSE_TIMEOUT"),
):
    os.environ.setdefault(name, "600")
# Ray's workers would run at the lowest priority, below whatever keeps the machine busy.
os.environ.setdefault("RAY_worker_niceness", "0")
