"""`--prefill` from training to evaluation and search: it is remembered with the model, and can be turned off."""

import json

import pytest

pytest.importorskip("trl")

from dataclasses import replace

from tests.engines.tiny import save_tiny_model
from tests.training.trained import SMALL
from vpo.cli.main import main
from vpo.evaluation import evaluate as evaluation
from vpo.evaluation.pools import read_pool
from vpo.models.policy import load
from vpo.models.prompt_format import format_of
from vpo.search.config import SearchConfig
from vpo.search.log import GENERATIONS
from vpo.search.run import search_into
from vpo.training.config import as_toml, config_of, read_settings
from vpo.training.prepare import resolve
from vpo.training.train import train
from vpo.util.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages
EVAL = ["--problems", "2", "--pool", "6", "--json"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(replace(SMALL, steps=2, prefill=True), tmp_path_factory.mktemp("prefill") / "run").run


def rollouts(run):
    return [json.loads(line) for line in run.rollouts.read_text().splitlines()]


def test_rollouts_and_rewards_have_the_forced_tags(run):
    texts = [each["completion"] for each in rollouts(run)]
    assert texts
    assert all(text.startswith("<answer_1>") for text in texts)
    assert all(len(each["answers"]) == 3 for each in rollouts(run))


def test_it_is_remembered_with_the_run_and_with_the_model(run, tmp_path):
    assert run.config().prefill is True
    assert format_of(run.model).prefill is True
    card = (run.model / "README.md").read_text()
    assert "Completions were begun with `<answer_1>`" in card
    assert 'enable_thinking=False)\nprompt += "<answer_1>"\ninputs' in card
    (tmp_path / "again.toml").write_text(as_toml(run.config()))
    assert config_of(read_settings(tmp_path / "again.toml")) == run.config()


def test_without_it_a_run_notes_that_and_its_model_card_is_as_before(tmp_path):
    run = train(replace(SMALL, steps=1), tmp_path / "run").run
    assert run.config().prefill is False
    assert format_of(run.model).prefill is False
    assert "begun" not in (run.model / "README.md").read_text()


@pytest.mark.parametrize(("flags", "expected"), [([], True), (["--no-prefill"], False), (["--prefill"], True)])
def test_an_evaluation_samples_as_the_model_was_trained(run, tmp_path, capsys, monkeypatch, flags, expected):
    forced = []
    complete = evaluation.complete_batches

    def watched(*arguments, **further):
        forced.append(further["forced"] is not None)
        return complete(*arguments, **further)

    monkeypatch.setattr(evaluation, "complete_batches", watched)
    assert main(["eval", str(run.folder), *EVAL, *flags, "--out", str(tmp_path / "out")]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["prefill"] is expected
    assert forced == [expected]


def test_an_interrupted_evaluation_is_not_continued_without_it(tmp_path, capsys, monkeypatch):
    command = ["eval", "embedded", "--task", "maze", "--set", "size=7", *EVAL, "--out", str(tmp_path / "out")]

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(evaluation, "score_completions", stop)
        assert main([*command, "--prefill"]) == 130
    capsys.readouterr()
    assert main(command) == 2
    assert "prefill" in capsys.readouterr().err
    assert main([*command, "--prefill"]) == 0


def test_token_counts_of_a_pool_have_the_forced_tokens(tmp_path):
    arguments = ["--task", "maze", "--set", "size=7", "--answers", "3", "--temperature", "0"]
    pools = []
    for name, flags in (("free", []), ("forced", ["--prefill"])):
        out = tmp_path / name
        assert main(["eval", "embedded", *arguments, *EVAL, *flags, "--out", str(out)]) == 0
        pools.append(read_pool(out / "pool.parquet"))
    # This policy writes the tags by itself: greedy text is the same, and so are its tokens.
    free, forced = ([each.tokens_N.tolist() for each in pool.problems.values()] for pool in pools)
    assert free == forced


def test_a_search_goes_on_from_prefixes_with_forced_tags(run, tmp_path):
    config = SearchConfig(model=str(run.folder), problems=2, iterations=3, answers=3, seed=1)
    search_into(tmp_path / "search", config)
    rows = [json.loads(line) for line in (tmp_path / "search" / GENERATIONS).read_text().splitlines()]
    assert {"fresh", "extend"} <= {row["operator"] for row in rows}
    assert all(row["text"].startswith("<answer_1>") for row in rows)
    assert all("<answer_1><answer_1>" not in row["text"] for row in rows)
    note = json.loads((tmp_path / "search" / "search.json").read_text())
    assert note["prefill"] is True
    with pytest.raises(InputError, match="it differs in prefill"):
        search_into(tmp_path / "search", replace(config, prefill=False))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--endpoint", "http://127.0.0.1:9/v1"], "prefill does not work with an endpoint, which begins completions"),
        (["--generator", "vllm"], "prefill does not work with generator vllm and 3 answers"),
        (["--thinking"], "prefill begins a completion with its first answer, and thinking comes before that: give one"),
    ],
)
def test_generators_that_cannot_force_tags_are_refused(run, tmp_path, capsys, flags, message):
    command = ["search", str(run.folder), "--problems", "1", "--iterations", "1", "--strategy", "best_of_n", *flags]
    for given in ([], ["--prefill"]):  # as the model was trained, and by the option
        assert main([*command, *given, "--out", str(tmp_path / "out")]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1


def test_a_tokenizer_that_does_not_keep_the_tags_is_one_error(tmp_path, capsys):
    model = save_tiny_model(tmp_path / "tiny")
    command = ["eval", model, "--task", "maze", "--set", "size=7", *EVAL, "--prefill", "--out", str(tmp_path / "out")]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "prefill cannot force '<answer>': this model's tokenizer reads it as '< a n s w e r >'" in error
    assert error.count("\n") == 1
    assert load(model)


def test_verl_is_refused_by_name():
    with pytest.raises(InputError, match="prefill does not work with engine verl: change that, or give --no-prefill"):
        resolve(replace(SMALL, engine="verl", prefill=True))


def test_a_server_says_that_it_forces_no_tags(run, capsys, monkeypatch):
    from vpo.models import serve

    monkeypatch.setattr(serve, "serve", lambda *arguments: arguments[-1]() or 0)  # it is ready at once
    assert main(["serve", str(run.folder)]) == 0
    said = capsys.readouterr().err
    assert "was trained with --prefill, and a server does not force tags" in said
    assert "--no-prefill --endpoint http://127.0.0.1:8000/v1" in said
