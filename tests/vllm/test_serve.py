"""`vpo serve --generator vllm`, and an evaluation and a search with what it serves."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

from vpo.cli.main import main

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]  # those of other packages

MAZE = ["embedded", "--task", "maze", "--set", "size=7"]
LIMIT = 540  # seconds, ten times as long as the server takes to start on an idle machine


@pytest.fixture(scope="module")
def address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "vpo", "serve", *MAZE, "--generator", "vllm", "--port", str(port)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    limit = threading.Timer(LIMIT, process.kill)
    limit.start()
    try:
        said = next((line for line in process.stderr if "is served at" in line), None)
        assert said, "the server did not start"
        yield f"http://127.0.0.1:{port}/v1"
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(60) == 130
        with socket.socket() as freed:
            freed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            freed.bind(("127.0.0.1", port))  # the server is gone too
    finally:
        limit.cancel()
        process.kill()
        process.wait()
        process.stderr.close()


def test_a_search_with_the_server_solves(address, tmp_path, capsys):
    command = ["search", *MAZE, "--answers", "3", "--problems", "3", "--endpoint", address, "--no-baseline"]
    command += ["--strategy", "best_of_n", "--target", "completion=1", "--temperature", "1", "--iterations", "4"]
    assert main([*command, "--processes", "0", "--out", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    (log,) = (tmp_path / "out").glob("*/generations.jsonl")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(row["tokens"] > 0 for row in rows)
    (log,) = (tmp_path / "out").glob("*/candidates.jsonl")
    answers = [json.loads(line) for line in log.read_text().splitlines()]
    assert len({each["answer"] for each in answers}) > 3
    assert max(each["value"] or 0 for each in answers) == 1


def test_a_seed_reproduces_the_pool_of_the_server(address, tmp_path):
    command = ["eval", *MAZE, "--answers", "3", "--problems", "4", "--pool", "6", "--endpoint", address]
    pools = []
    for name, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        assert main([*command, "--seed", seed, "--out", str(tmp_path / name)]) == 0
        pools.append((tmp_path / name / "pool.parquet").read_bytes())
    assert pools[0] == pools[1] != pools[2]
