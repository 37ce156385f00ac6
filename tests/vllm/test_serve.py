"""`vpo serve --generator vllm`, and an evaluation and a search with what it serves."""

import json

import pytest

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

from tests.served import served
from vpo.cli.main import main

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]  # those of other packages

MAZE = ["embedded", "--task", "maze", "--set", "size=7"]
LIMIT = 540  # seconds, ten times as long as the server takes to start on an idle machine


@pytest.fixture(scope="module")
def address():
    with served(*MAZE, "--generator", "vllm", limit=LIMIT, ends_in=60, VLLM_LOGGING_LEVEL="ERROR") as (address, _):
        yield address


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
