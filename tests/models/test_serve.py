"""A model behind a real server."""

import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("openai")

from vpo.cli.main import main
from vpo.search.config import SearchConfig
from vpo.search.run import search_into

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

MAZE = ["--task", "maze", "--set", "size=7"]


@pytest.fixture(scope="module")
def address():
    """The embedded policy, served by transformers in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "vpo", "serve", "embedded", *MAZE, "--port", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    limit = threading.Timer(120, process.kill)
    limit.start()
    try:
        said = next((line for line in process.stderr if "is served at" in line), None)
        assert said, "the server did not start"
        assert f"vpo search embedded --task maze --set size=7 --endpoint http://127.0.0.1:{port}/v1" in said
        yield f"http://127.0.0.1:{port}/v1"
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(30) == 130
        with socket.socket() as freed:
            freed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            freed.bind(("127.0.0.1", port))  # the server is gone too
    finally:
        limit.cancel()
        process.kill()
        process.wait()
        process.stderr.close()


def test_a_search_with_a_served_model_samples_and_solves(address, tmp_path):
    request = SearchConfig(
        model="embedded", endpoint=address, task="maze", task_settings={"size": 7}, problems=2, answers=3, iterations=4,
        strategy="best_of_n", targets=("completion=1",), temperature=1.0,
    )  # fmt: skip
    outcome = search_into(tmp_path / "a", request)
    assert not outcome.failures
    assert len(outcome.solved) >= 1
    assert outcome.spent["tokens"].sum() > 0
    texts = [
        line for line in (tmp_path / "a" / "candidates.jsonl").read_text().splitlines() if '"answer": null' not in line
    ]
    assert len(set(texts)) > 1


def test_a_port_in_use_is_named(address, capsys):
    port = address.rpartition(":")[2].removesuffix("/v1")
    assert main(["serve", "embedded", *MAZE, "--port", port]) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["embedded", *MAZE, "--generator", "llama.cpp"], "generator must be transformers or vllm, not 'llama.cpp'"),
        (["nowhere", "--task", "maze"], "nowhere: no such folder: serve a model that is on this disk"),
        (["embedded"], "task must be given for the embedded model"),
        (["embedded", *MAZE, "--port", "99999"], "cannot listen on 127.0.0.1:99999"),
    ],
)
def test_bad_input_is_one_line(given, message, capsys):
    assert main(["serve", *given]) == 2
    assert message in capsys.readouterr().err
