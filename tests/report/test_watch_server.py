"""The server of the live view, and its page in a browser."""

import json
import queue
import shutil
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from html.parser import HTMLParser

import pytest

from tests.report.watched import ATTACK, append, new_run, rollout, step, write
from vpo.report.watch_server import WatchServer
from vpo.util.errors import InputError

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture
def folder(tmp_path):
    return new_run(tmp_path)


@pytest.fixture
def serve():
    """Start servers, and end them with the test."""
    servers = []

    def start(server):
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        servers.append((server, thread))
        return server

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


def get(address, **headers):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=60) as answer:
        return answer.status, answer.headers, answer.read().decode()


def test_the_server_answers_this_machine_alone(folder, serve, capsys):
    server = serve(WatchServer(folder))
    assert server.server_address[0] == "127.0.0.1"
    assert "<title>run</title>" in get(server.address)[2]
    status, headers, body = get(f"{server.address}state.json")
    assert (status, json.loads(body)["step"]) == (200, 0)
    assert get(f"{server.address}state.json?have={headers['X-Version']}")[0] == 204
    append(folder / "metrics.jsonl", step(1))
    assert json.loads(get(f"{server.address}state.json?have={headers['X-Version']}")[2])["step"] == 1
    for path, host, code in (
        *(("", host, 403) for host in ("evil.example", "[", "", "localhost.evil.example")),
        ("../config.toml", "localhost", 404),
    ):
        with pytest.raises(urllib.error.HTTPError) as error:
            get(server.address + path, Host=host)
        assert error.value.code == code
        error.value.close()
    with pytest.raises(InputError, match=r"port \d+ cannot be used \(Address already in use\): choose another --port"):
        WatchServer(folder, server.server_port)
    assert capsys.readouterr().err == ""


def test_the_command_serves_until_ctrl_c(folder):
    append(folder / "metrics.jsonl", step(1))
    command = [sys.executable, "-m", "vpo", "watch", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        address = next(word for word in line.split() if word.startswith("http"))
        assert json.loads(get(f"{address}state.json")[2])["step"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == "\n"


class WrittenBetweenRequests(WatchServer):
    """Lets a thread write the next part of the run before each request is answered but the first, for the page."""

    def __init__(self, folder, parts):
        super().__init__(folder)
        self.parts, self.pages, self.go, self.done = list(parts), 0, queue.Queue(), queue.Queue()
        threading.Thread(target=self.write, daemon=True).start()

    def write(self):
        for part in self.parts:
            self.go.get()
            part()
            self.done.put(True)

    def state(self):
        self.pages += 1
        if 1 < self.pages <= len(self.parts) + 1:
            self.go.put(True)
            self.done.get(timeout=600)
        return super().state()


class PageText(HTMLParser):
    """The text of each element with an id, a data-name or the class rollout, and the tags of the page."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.tags = [], {}, []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append((tag, values))
        name = values.get("id") or values.get("data-name") or values.get("data-step")
        if tag not in ("meta", "img", "br"):
            self.open.append((tag, name))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, text):
        for _, name in self.open:
            if name:
                self.texts[name] = self.texts.get(name, "") + text


@pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")
def test_an_open_page_shows_the_new_step_and_the_new_rollout_without_a_reload(folder, serve, tmp_path):
    metrics, rollouts = folder / "metrics.jsonl", folder / "rollouts.jsonl"
    append(metrics, step(1))
    append(rollouts, rollout(1))
    half, rest = json.dumps(step(3))[:40], json.dumps(step(3))[40:] + "\n"
    parts = [
        lambda: append(metrics, step(2)),
        lambda: (write(metrics, half), append(rollouts, rollout(3, answers=(ATTACK, "right")))),
        lambda: write(metrics, rest),
    ]
    server = serve(WrittenBetweenRequests(folder, parts))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--no-first-run"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=20000", "--dump-dom", server.address]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    parsed = PageText()
    parsed.feed(done.stdout)
    assert server.pages > len(parts) + 1
    assert '"step": 1,' in parsed.texts["data"]  # the page is the one that was loaded at step 1
    assert parsed.texts["step"] == "step3 of 10"
    assert "3/10 · run" in done.stdout
    assert "lost" not in parsed.texts
    assert parsed.texts["rollouts-of"].startswith("Step 3: 1 completion of problem p3.")
    assert "which way, 3?" in parsed.texts["prompt"]
    assert ATTACK in parsed.texts["3"]
    assert "hacked" not in parsed.texts.get("title", "")
    assert not [values for tag, values in parsed.tags if tag == "img"]
    drawn = [values for tag, values in parsed.tags if tag == "svg"]
    assert drawn[0]["aria-label"] == "reward"
    assert {each["data-step"] for each in drawn} == {"3"}
