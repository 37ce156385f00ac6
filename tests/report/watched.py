"""The folder of a run, and lines of its logs, for tests of the live view."""

import json

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


def new_run(tmp_path):
    """A run of ten steps of 2 × 4 rollouts that has not begun."""
    folder = tmp_path / "run"
    folder.mkdir()
    settings = 'task = "maze"\nmethod = "vpo"\nmodel = "tiny"\nsteps = 10\nprompts_per_step = 2\ngroup = 4\n'
    (folder / "config.toml").write_text(f"{settings}[trainer]\n")
    return folder


def curve(state, title):
    (panel,) = [each for each in state["panels"] if each["title"] == title]
    return {line["name"]: (line["x"], line["y"]) for line in panel["lines"]}
