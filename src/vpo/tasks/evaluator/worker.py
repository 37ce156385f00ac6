"""The process that evaluates one program; see `evaluation`. It runs by its path, and imports nothing of vpo.

It reads a request, JSON with evaluator, program and suffix, from standard input. It says two lines of JSON: that it has
loaded the evaluator, or why it cannot; then the metrics and artifacts of the program, or why there are none.
"""

import importlib.util
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from typing import Any

LONGEST = 4000  # characters of an artifact
MOST = 30  # artifacts


def main() -> None:
    """Evaluate."""
    parent = os.getppid()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    request = json.loads(sys.stdin.buffer.read())
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)  # what an evaluator prints is no result
    most = request["address_space"]
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def say(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    try:
        evaluate = _load(request["evaluator"])
    except BaseException as error:  # whatever the file raises
        say({"failure": _told(error)})
        return
    say({})
    with tempfile.NamedTemporaryFile("w", suffix=request["suffix"], encoding="utf-8", delete=False) as file:
        file.write(request["program"])
    try:
        result = _result(evaluate(file.name))
    except BaseException as error:  # SystemExit too
        result = {"failure": f"evaluate raised {_told(error)}", "artifacts": {"traceback": _tail(error)}}
    say(result)
    os._exit(0)  # threads of the program may still run


def _load(path: str) -> Any:
    """The function `evaluate` of a file, which may import what lies beside it."""
    sys.path[0] = os.path.dirname(path)  # it was the folder of this file
    spec = importlib.util.spec_from_file_location("evaluation_module", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["evaluation_module"] = module
    spec.loader.exec_module(module)
    if not hasattr(module, "evaluate"):
        raise AttributeError("it must define a function evaluate(path)")
    return module.evaluate


def _result(returned: Any) -> dict[str, Any]:
    """What `evaluate` returned, a dict or an EvaluationResult of OpenEvolve, as JSON has it."""
    metrics, artifacts = getattr(returned, "metrics", returned), getattr(returned, "artifacts", None) or {}
    if isinstance(metrics, dict) and isinstance(metrics.get("artifacts"), dict):
        artifacts = {**artifacts, **metrics["artifacts"]}
        metrics = {name: value for name, value in metrics.items() if name != "artifacts"}
        metrics = metrics["metrics"] if isinstance(metrics.get("metrics"), dict) else metrics
    if not isinstance(metrics, dict):
        return {"failure": f"evaluate returned {type(returned).__name__}, not a dict of metrics"}
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    for name, value in metrics.items():
        try:
            if isinstance(value, str | bytes | dict | list | tuple) or value is None:
                raise TypeError
            numbers[str(name)[:LONGEST]] = float(value)
        except (TypeError, ValueError, OverflowError):
            texts[str(name)] = _text(value)
    texts.update((str(name), _text(value)) for name, value in artifacts.items())
    shown = {name[:100]: text for name, text in list(texts.items())[:MOST]}
    return {"metrics": dict(list(numbers.items())[:1000]), "artifacts": shown}


def _text(value: Any) -> str:
    """An artifact as a text of limited length."""
    if isinstance(value, bytes):
        value = value[:LONGEST].decode("utf-8", "replace")
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception as error:
        text = _told(error)
    text = text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    return text.encode("utf-8", "replace").decode()


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300].encode("utf-8", "replace").decode()


def _tail(error: BaseException) -> str:
    return _text("".join(traceback.format_exception(error)))


def _end_with(parent: int) -> None:
    """Kill this process and its group once its parent has ended: without a wall nothing else does."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
