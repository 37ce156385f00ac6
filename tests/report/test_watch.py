"""The live view of a run: what it reads of a folder that is being written, and what its page shows."""

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from html.parser import HTMLParser

import pytest

from vpo.cli.main import main
from vpo.report import watch_logs
from vpo.report.embedding import script_json
from vpo.report.watch import LONGEST, RunWatch, page
from vpo.report.watch_curves import POINTS
from vpo.report.watch_logs import LogTail
from vpo.report.watch_server import WatchServer
from vpo.training.runs import Run
from vpo.util.errors import InputError

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
ATTACK = "</script><script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">"


def step(number, **more):
    row = {"step": number, "loss": 0.5, "reward": number / 10, "vpo/set_reward": 0.5, "vpo/parse_rate": 0.9}
    row |= {"vpo/read_rate": 1.0, "vpo/diversity": 0.25, "entropy": 1.5, "vpo/objective/gold": 0.75}
    return {**row, "step_time": 2.0, "completions/mean_length": 100.0, **more}


def rollout(number, answers=("left", None), **more):
    vectors = [[0.5, 1.0]] * len(answers)
    row = {"step": number, "problem": f"p{number}", "prompt": [{"role": "user", "content": f"which way, {number}?"}]}
    row |= {"completion": f"completion of step {number}", "answers": list(answers), "objectives": ["gold", "lava"]}
    return {**row, "vectors": vectors, "reward": 0.75, **more}


def write(path, text):
    with open(path, "a") as file:
        file.write(text)


def append(path, *rows, end="\n"):
    write(path, "\n".join(json.dumps(row) for row in rows) + end)


@pytest.fixture
def folder(tmp_path):
    """A run of ten steps of 2 × 4 rollouts that has not begun."""
    folder = tmp_path / "run"
    folder.mkdir()
    settings = 'task = "maze"\nmethod = "vpo"\nmodel = "tiny"\nsteps = 10\nprompts_per_step = 2\ngroup = 4\n'
    (folder / "config.toml").write_text(f"{settings}[trainer]\n")
    return folder


def curve(state, title):
    (panel,) = [each for each in state["panels"] if each["title"] == title]
    return {line["name"]: (line["x"], line["y"]) for line in panel["lines"]}


def test_a_line_is_read_once_it_is_complete(tmp_path):
    log = LogTail(tmp_path / "log.jsonl")
    assert (log.read()[0], list(log.read()[1])) == (False, [])
    append(log.path, {"step": 1}, {"step": 2, "text": "é"}, end="")
    assert [row["step"] for row in log.read()[1]] == [1]
    assert list(log.read()[1]) == []
    write(log.path, "\n")
    assert list(log.read()[1]) == [{"step": 2, "text": "é"}]
    assert log.damaged == 0


def test_only_what_was_appended_is_read(tmp_path):
    log = LogTail(tmp_path / "log.jsonl")
    append(log.path, {"step": 1}, {"step": 2})
    assert len(list(log.read()[1])) == 2
    with open(log.path, "r+b") as file:
        file.write(b"garbage...")  # over what was read
    append(log.path, {"step": 3})
    anew, rows = log.read()
    assert (anew, list(rows)) == (False, [{"step": 3}])


def test_a_log_that_was_replaced_is_read_anew_even_where_it_is_as_long(tmp_path):
    log = LogTail(tmp_path / "log.jsonl")
    append(log.path, {"step": 1}, {"step": 2})
    list(log.read()[1])
    for rows in ([{"step": 1}], [{"step": 5}, {"step": 6}], [{"step": 7}, {"step": 8}, {"step": 9}]):
        log.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        anew, read = log.read()
        assert (anew, list(read)) == (True, rows)
    log.path.unlink()
    assert log.read()[0]
    assert not log.read()[0]


def test_of_a_huge_log_only_the_end_is_read(tmp_path, monkeypatch):
    log = LogTail(tmp_path / "log.jsonl", most=100)
    append(log.path, *({"step": number} for number in range(10_000)))
    parsed = []
    monkeypatch.setattr(watch_logs, "_row", lambda line: parsed.append(line) or json.loads(line))
    rows = list(log.read()[1])
    assert [row["step"] for row in rows] == list(range(10_000 - len(rows), 10_000))
    assert 3 <= len(rows) <= 7
    assert len(parsed) == len(rows)
    assert log.damaged == 0
    append(log.path, {"step": 10_000})
    assert list(log.read()[1]) == [{"step": 10_000}]


def test_evaluations_on_held_out_problems_are_shown_with_the_best(folder):
    settings = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(f'keep_best = "best@8"\n{settings}')
    append(folder / "metrics.jsonl", step(1), step(2))
    watch = RunWatch(folder)
    assert watch.state()["best"] is None
    rows = [{"step": 0, "best@1": 0.25, "best@8": 0.5, "set": 0.375, "set_reward": 0.5, "first": 0.25}]
    rows += [{"step": 2, "best@1": 0.5, "best@8": 0.75, "parse_rate": 1.0, "read_rate": 1.0, "seconds": 9}]
    append(folder / "evaluations.jsonl", *rows, {"step": 4, "best@8": 0.75})
    state = watch.state()
    assert state["best"] == {"measure": "best@8", "value": 0.75, "step": 2}
    assert curve(state, "held-out best@k") == {
        "best@1": ([0, 2], [0.25, 0.5]),
        "best@8": ([0, 2, 4], [0.5, 0.75, 0.75]),
    }
    assert curve(state, "held-out, one completion")["set"] == ([0], [0.375])
    assert curve(state, "held-out answers in form, and read") == {"in form": ([2], [1]), "read": ([2], [1])}
    assert "held-out best@k" in page(state, live=False)


def test_damaged_lines_are_skipped_and_counted(folder):
    (folder / "metrics.jsonl").write_bytes(
        b'{"step": 1, "loss": 1}\n{"step"\n[1]\n\n{"loss": 2}\n\xff\xfe\n{"step": 2, "loss": NaN, "reward": "x"}\n'
    )
    append(folder / "metrics.jsonl", {"step": 4 * 10**15, "loss": 1})
    write(folder / "metrics.jsonl", f'{{"step": 1{"0" * 400}}}\n{{"step": 3, "loss": 1{"0" * 400}, "entropy": true}}\n')
    (folder / "run.json").write_text('{"command": "vpo train maze"}')
    state = RunWatch(folder).state()
    assert state["step"] == 3
    assert curve(state, "loss") == {"loss": ([1], [1])}
    assert state["notes"] == ["metrics.jsonl: 7 damaged lines are skipped"]


def test_a_run_from_its_start_to_its_end(folder):
    watch = RunWatch(folder)
    with Run(folder).lock():
        state = watch.state()
        assert (state["status"], state["step"], state["steps"]) == ("starting", 0, 10)
        assert (state["panels"], state["rollouts"], state["seconds_left"]) == ([], [], None)
        append(folder / "rollouts.jsonl", rollout(1))
        assert watch.state()["status"] == "starting"
        append(folder / "metrics.jsonl", step(1), step(2, step_time=4.0))
        state = watch.state()
        assert (state["status"], state["step"]) == ("training", 2)
        assert state["seconds_left"] == 8 * 3.0
        assert state["tokens_per_second"] == pytest.approx(2 * 8 * 100 / 6)
        assert curve(state, "reward") == {"reward": ([1, 2], [0.1, 0.2])}
        assert set(curve(state, "answers in form, and read")) == {"in form", "read"}
        assert set(curve(state, "objectives")) == {"gold"}
    killed = watch.state()
    assert killed["status"] == "stopped"
    assert killed["status_text"].endswith(f"continue with: vpo train --resume {folder}")
    assert killed["seconds_left"] is None
    (folder / "model").mkdir()
    assert watch.state()["status"] == "finished"
    shutil.rmtree(folder)
    gone = watch.state()
    assert (gone["status"], gone["step"], gone["rollouts"]) == ("gone", 0, [])


def test_a_run_that_nobody_here_has_locked_counts_as_trained_while_its_log_grows(folder):
    append(folder / "metrics.jsonl", step(1))
    assert RunWatch(folder).state()["status"] == "training"  # perhaps on another machine
    long_ago = time.time() - 3600
    os.utime(folder / "metrics.jsonl", (long_ago, long_ago))
    assert RunWatch(folder).state()["status"] == "stopped"


def test_a_resumed_run_shows_its_steps_once(folder):
    run = Run(folder)
    watch = RunWatch(folder)
    append(run.metrics, *(step(number) for number in (1, 2, 3, 4)))
    append(run.rollouts, rollout(1), rollout(3))
    assert watch.state()["step"] == 4
    (folder / "run.json").write_text(json.dumps({"command": "vpo train maze", "resumed": [{"began": "later"}]}))
    run.rewind(2)  # as a resume does
    state = watch.state()
    assert (state["step"], state["resumed"], state["command"]) == (2, 1, "vpo train maze")
    assert state["rollouts"][0]["step"] == 1
    append(run.metrics, step(3, reward=0.9))
    append(run.metrics, step(2, reward=0.8))  # by an engine that does not truncate its log
    assert curve(watch.state(), "reward")["reward"] == ([1, 2], [0.1, 0.8])


def test_logs_of_verl_are_shown(folder):
    verl = {"critic/score/mean": 0.5, "actor/pg_loss": 0.1, "actor/entropy": 2.0, "vpo/set_reward": 0.6}
    append(folder / "metrics.jsonl", {"step": 1, "data": {**verl, "timing_s/step": 3.0, "response_length/mean": 10.0}})
    (folder / "config.toml").unlink()  # a log alone
    state = RunWatch(folder).state()
    titles = [each["title"] for each in state["panels"]]
    assert titles == ["reward", "set reward", "loss", "entropy"]
    assert (state["seconds_per_step"], state["steps"], state["seconds_left"]) == (3.0, None, None)


def test_a_long_run_has_curves_of_few_points(folder):
    append(folder / "metrics.jsonl", *(step(number) for number in range(1, 5001)))
    state = RunWatch(folder).state()
    x, y = curve(state, "reward")["reward"]
    assert len(x) == POINTS
    assert y[0] == pytest.approx(x[0] / 10, rel=1e-3)
    assert len(json.dumps(state)) < 200_000


def test_the_newest_rollouts_are_shown_whatever_is_in_them(folder):
    odd = rollout(3, answers=(ATTACK, None, "\ud800"), vectors=None, reward=None, prompt="a text", objectives=None)
    odd["completion"] = "x" * (LONGEST + 5)
    append(folder / "rollouts.jsonl", rollout(1), rollout(1), rollout(3, vectors=[[float("nan"), 1]]), odd)
    first, second = RunWatch(folder).state()["rollouts"]
    assert (first["step"], first["vectors"]) == (3, [[None, 1.0]])
    assert (second["vectors"], second["reward"], second["objectives"]) == ([], None, [])
    assert second["answers"] == [ATTACK, None, "\ud800"]
    assert second["completion"].endswith("x … and 5 more characters")
    assert second["prompt"] == [{"role": "", "content": "a text"}]


def test_a_page_holds_no_tag_that_a_model_wrote_and_needs_nothing_else(folder):
    append(folder / "rollouts.jsonl", rollout(1, answers=(ATTACK,), completion=ATTACK))
    text = page(RunWatch(folder).state(), live=False)
    assert "</script><script>document" not in text
    assert "<img" not in text
    assert "script-src 'sha256-" in text


@pytest.mark.parametrize("value", ['"many"', "nan", "inf", "-3", "[1]", "true", f"1{'0' * 400}"])
def test_settings_and_notes_of_any_kind_are_no_error(folder, value):
    text = f"steps = {value}\nprompts_per_step = {value}\ngroup = {value}\n[trainer]\n"
    (folder / "config.toml").write_text(text)
    (folder / "run.json").write_text('{"began": NaN, "ended": Infinity, "command": [1], "resumed": 3}')
    append(
        folder / "metrics.jsonl", step(1), step(2, step_time=1e308, loss=1e308), step(3, step_time=1e308, loss=1e308)
    )
    state = RunWatch(folder).state()
    assert (state["step"], state["steps"], state["seconds_left"], state["tokens_per_second"]) == (3, None, None, None)
    assert (state["seconds_per_step"], state["resumed"]) == (2.0, 0)
    assert json.loads(script_json(state), parse_constant=pytest.fail) == state


def test_the_command_writes_a_page_and_prints_the_state(folder, capsys):
    append(folder / "metrics.jsonl", step(1))
    assert main(["watch", str(folder), "--once"]) == 0
    assert capsys.readouterr().out == f"{folder / 'watch.html'}: step 1 of {folder}, training\n"
    assert '"live": false' in (folder / "watch.html").read_text()
    assert main(["watch", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["step"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "no such run: nowhere"),
        (["."], ". is not the folder of a run: it has neither config.toml nor metrics.jsonl"),
        (["RUN", "--port", "70000"], "port must lie in 0..65535, not 70000"),
        (["RUN", "--out", "x.html"], "out is for --once"),
        (["RUN", "--once", "--out", "none/x.html"], "none/x.html: no such folder: none"),
    ],
)
def test_wrong_input_is_one_line(folder, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["watch", *(str(folder) if each == "RUN" else each for each in arguments)]) == 2
    assert message in capsys.readouterr().err


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
