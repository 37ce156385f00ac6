"""Judges with small settings, answers for them, and an endpoint's replies."""

import json

from vpo.rewards.judge import Judge, JudgeConfig
from vpo.rewards.scorer import Sample

ASK = [{"role": "user", "content": "Say hello."}]
RUBRICS = {"brief": "Short answers are good.", "warm": "Friendly answers are good."}


def make_judge(address, name="judge", **settings):
    defaults = {"model": "m", "rubrics": RUBRICS, "limit": 5.0, "tries": 1, "backoff": 0.01, "concurrent": 4}
    return Judge(name, JudgeConfig(endpoint=address, **{**defaults, **settings}))


def samples(count, **more):
    return [Sample("p", ASK, f"hello {number}", **more) for number in range(count)]


def sets(*answers):
    return [
        Sample("p", ASK, each, {}, answers[:index] + answers[index + 1 :], index) for index, each in enumerate(answers)
    ]


def shown_in(request):
    """The answers that a request shows, by name."""
    content = request["messages"][1]["content"]
    return json.loads(content.split("<data>\n")[1].split("\n</data>")[0])["answers"]


def fine(request, number):
    """Score an answer by its length, at most 5; warm ones are 5."""
    warm = "Friendly" in request["messages"][0]["content"]
    return json.dumps({name: 5 if warm else min(len(text), 5) for name, text in shown_in(request).items()})
