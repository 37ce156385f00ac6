"""Names on the Hugging Face hub: what is wrong is one line within seconds, and what is right is loaded."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from vpo.models.locate import SHIPPED

NAME = "someone/maze"


class Hub(BaseHTTPRequestHandler):
    """Answers for a model with a fixed status, or with the files of the shipped policy of 7 × 7 mazes."""

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, *, body):
        file = SHIPPED / "maze-7" / Path(self.path.partition("?")[0]).name
        status, data = self.server.status, b""
        if status == 200:
            status, data = (200, file.read_bytes()) if "/resolve/" in self.path and file.is_file() else (404, b"")
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", "0123456789abcdef0123456789abcdef01234567")
        if code := self.server.error or ("EntryNotFound" if self.server.status != status else ""):
            self.send_header("X-Error-Code", code)
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.status, server.error = 200, ""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def evaluate(folder, endpoint, name=NAME, **environment):
    """`vpo eval` in a process, with a cache of its own; what it prints as errors, and the time it took.

    Loading the packages takes most of it, so the time starts when torch is loaded.
    """
    environment = {**os.environ, "HF_HOME": str(folder / "cache"), "HF_ENDPOINT": endpoint, **environment}
    environment.pop("HF_HUB_OFFLINE", None) if "HF_HUB_OFFLINE" not in environment else None
    command = ["eval", name, "--task", "maze", "--set", "size=7", "--problems", "1", "--pool", "1", "--max-tokens", "4"]
    script = "import sys, time, torch, transformers, vpo.cli.main as cli; start = time.monotonic(); code = cli.main"
    script += "(sys.argv[1:]); print(time.monotonic() - start); sys.exit(code)"
    done = subprocess.run(
        [sys.executable, "-c", script, *command, "--overwrite", "--out", str(folder / "out")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
    )
    long = re.compile(r" …\n$| in \d+ s\b")  # what takes long, and how far it is
    errors = [line for line in done.stderr.splitlines(keepends=True) if not long.search(line)]
    return done.returncode, "".join(errors), float(done.stdout.split()[-1])


def address(server):
    return f"http://127.0.0.1:{server.server_address[1]}"


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (404, "RepoNotFound", "has no model of this name, or it is private: check the name, or `hf auth login`"),
        (401, "RepoNotFound", "has no model of this name, or it is private"),
        (404, "", "has no model of this name, or it is private"),
        (401, "", "has no model of this name, or it is private"),
        (403, "GatedRepo", f"/{NAME}, and then `hf auth login`"),
        (404, "EntryNotFound", "it has no config.json"),
        (503, "", "answers with status 503"),
    ],
)
def test_a_model_that_the_hub_does_not_give_is_one_line(monkeypatch, hub, tmp_path, status, code, reason):
    from huggingface_hub import constants
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: F401 - takes seconds, which are not the hub's

    from vpo.models.policy import load

    hub.status, hub.error = status, code
    monkeypatch.setattr(constants, "ENDPOINT", address(hub))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", address(hub) + "/{repo_id}/resolve/{revision}/{filename}"
    )
    start = time.monotonic()
    with pytest.raises(ValueError, match="no such folder, and the model cannot be loaded from the hub: ") as raised:
        load(NAME)
    assert time.monotonic() - start < 10
    assert str(raised.value).startswith(f"{NAME}: no such folder, and the model cannot be loaded from the hub: ")
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_unreachable_hub_is_one_line_within_seconds(tmp_path):
    code, error, seconds = evaluate(tmp_path, "http://127.0.0.1:9")
    assert code == 2
    assert error.startswith(f"vpo: error: {NAME}: no such folder, and the model cannot be loaded from the hub: http://")
    assert "127.0.0.1:9 cannot be reached (" in error
    assert error.count("\n") == 1
    assert seconds < 10
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_model_is_loaded_from_the_hub_and_without_it_from_the_cache(hub, tmp_path):
    code, error, _ = evaluate(tmp_path, address(hub))
    assert (code, error) == (0, "")
    first = (tmp_path / "out" / "pool.parquet").read_bytes()
    for endpoint, offline in (("http://127.0.0.1:9", {}), (address(hub), {"HF_HUB_OFFLINE": "1"})):
        shutil.rmtree(tmp_path / "out")
        code, error, seconds = evaluate(tmp_path, endpoint, **offline)
        assert (code, error) == (0, "")
        assert seconds < 30
        assert (tmp_path / "out" / "pool.parquet").read_bytes() == first
    code, error, _ = evaluate(tmp_path, address(hub), "someone/else", HF_HUB_OFFLINE="1")
    assert code == 2
    assert "HF_HUB_OFFLINE is set, and this machine has no copy of it" in error
