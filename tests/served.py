"""`vpo serve` in a process of its own, on a free port of this machine."""

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager


@contextmanager
def served(*arguments, limit, ends_in, **environment):
    """Serve a model. Yields its address and the line that names it; then the server is stopped, and must be gone.

    The server is killed after `limit` seconds, whatever it does.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "vpo", "serve", *arguments, "--port", str(port)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    timer = threading.Timer(limit, process.kill)
    timer.start()
    try:
        said = next((line for line in process.stderr if "is served at" in line), None)
        assert said, "the server did not start"
        yield f"http://127.0.0.1:{port}/v1", said
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(ends_in) == 130
        with socket.socket() as freed:
            freed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            freed.bind(("127.0.0.1", port))  # the server is gone too
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        process.stderr.close()
