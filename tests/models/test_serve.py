"""A model behind a real server."""

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("openai")

from tests.served import served
from vpo.cli.main import main
from vpo.search.config import SearchConfig
from vpo.search.run import search_into

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

MAZE = ["--task", "maze", "--set", "size=7"]


@pytest.fixture(scope="module")
def address():
    """The embedded policy, served by transformers in a process of its own."""
    with served("embedded", *MAZE, limit=120, ends_in=30) as (address, said):
        assert f"vpo search embedded --task maze --set size=7 --endpoint {address}" in said
        yield address


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
