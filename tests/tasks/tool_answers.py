"""Problems and answers of toolrl."""

import json

from tests.tasks.rows import toolrl_row
from vpo.tasks.toolrl.data import from_rlla


def call(name, **parameters):
    return json.dumps({"name": name, "parameters": parameters})


def calls(*lines, think="I need tools."):
    return "\n".join([f"<think>{think}</think>", "<tool_call>", *lines, "</tool_call>"])


def problem_of(*lines):
    """A problem whose gold answer makes these calls; without any, one that answers in words."""
    gold = calls(*lines) if lines else "<think>t</think><response>Hello.</response>"
    return from_rlla(toolrl_row(gold), "p", "here")


WEATHER = problem_of(call("weather", city="New York City", days=3))
TALK = problem_of()
BODY = WEATHER.gold.partition("</think>")[2]
