"""A model whose answers cannot be read is seen at once: in training, and at the end of an evaluation."""

import re

import pytest

pytest.importorskip("trl")

from tests.engines.tiny import save_tiny_model
from vpo.cli.main import main
from vpo.evaluation.pools import read_pool
from vpo.util.row_files import read_rows

TASK = ["--set", "size=7", "--problems", "2", "--max-tokens", "8"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A model with random weights, which writes no tags."""
    return save_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.mark.filterwarnings("ignore")  # those of other packages
def test_training_shows_a_completion_and_the_rates(tiny, tmp_path, capsys):
    steps = ["--steps", "1", "--prompts-per-step", "2", "--group", "2", "--method", "vpo"]
    with pytest.warns(UserWarning, match="none of the answers of the first batch could be read.* one of the completio"):
        assert main(["train", "maze", *TASK, "--model", str(tiny), *steps, "--out", str(tmp_path / "run")]) == 0
    line = next(line for line in capsys.readouterr().err.splitlines() if "step 1 of 1: " in line)
    assert re.fullmatch(
        r"maze vpo, step 1 of 1: [\d,]+ tokens/s, in form 0%, read 0%, set reward 0.00, diversity 0.00, completion .*",
        line,
    )


@pytest.mark.filterwarnings("ignore")  # those of other packages
def test_an_evaluation_ends_with_completions_and_keeps_them(tiny, tmp_path, capsys):
    sampling = ["--answers", "3", "--pool", "6", "--out", str(tmp_path / "eval")]
    assert main(["eval", str(tiny), "--task", "maze", *TASK, *sampling]) == 0
    errors = capsys.readouterr().err
    warning, *samples = errors[errors.index("vpo: warning: only 0% of the answers could be read") :].splitlines()
    assert warning.endswith("the pool keeps the completions, such as")
    assert len(samples) == 3
    rows = [row for _, row in read_rows(tmp_path / "eval" / "pool.parquet")]
    texts = [row["completion"] for row in rows]
    assert all(texts[::3])
    assert set(texts[1::3] + texts[2::3]) == {None}
    assert read_pool(tmp_path / "eval" / "pool.parquet").problems.keys() == {row["problem"] for row in rows}
