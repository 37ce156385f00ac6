"""Answers of toolrl."""

import json


def call(name, **parameters):
    return json.dumps({"name": name, "parameters": parameters})


def calls(*lines, think="I need tools."):
    return "\n".join([f"<think>{think}</think>", "<tool_call>", *lines, "</tool_call>"])
