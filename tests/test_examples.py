"""The examples run as a reader would run them, and show what they say."""

import json
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_bandit_shows_the_inversion(tmp_path):
    subprocess.run([sys.executable, EXAMPLES / "bandit.py", "--out", tmp_path], check=True, capture_output=True)
    pools = [str(tmp_path / "grpo.jsonl"), str(tmp_path / "vpo.jsonl")]
    done = subprocess.run(
        [sys.executable, "-m", "vpo", "measure", *pools, "--json"], check=True, capture_output=True, text=True
    )
    by_answers = {
        measure["at"]: measure["differences"][0]
        for measure in json.loads(done.stdout)["measures"]
        if (measure["section"], measure["by"]) == ("best@k", "answers")
    }
    assert by_answers[1]["high"] < 0  # GRPO ahead at one sample
    for k in (3, 5, 10, 30):
        assert by_answers[k]["low"] > 0  # VPO ahead from a few samples on
