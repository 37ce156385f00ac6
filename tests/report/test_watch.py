"""The live view of a run: what it reads of a folder that is being written, and what its page shows."""

import json
import os
import shutil
import time

import pytest

from tests.report.watched import ATTACK, append, curve, new_run, rollout, step, write
from vpo.cli.main import main
from vpo.report.embedding import script_json
from vpo.report.watch import LONGEST, RunWatch, page
from vpo.report.watch_curves import POINTS
from vpo.training.runs import Run


@pytest.fixture
def folder(tmp_path):
    return new_run(tmp_path)


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


@pytest.mark.parametrize(("method", "shown"), [("vpo", True), ("vpo_marginal", False), ("my_own", True)])
def test_a_reward_that_is_an_advantage_has_no_curve(folder, method, shown):
    (folder / "config.toml").write_text(f'task = "maze"\nmethod = "{method}"\n[trainer]\n')
    append(folder / "metrics.jsonl", step(1), step(2))
    titles = [each["title"] for each in RunWatch(folder).state()["panels"]]
    assert ("reward" in titles) == shown
    assert "set reward" in titles


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
