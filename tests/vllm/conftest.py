"""Settings that vLLM reads from the environment when it is imported; where it is not installed, nothing is set."""

import os
from importlib.util import find_spec

if find_spec("vllm") is not None:
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")  # other tests may run on the same cores
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
