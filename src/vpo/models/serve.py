"""A trained model behind an OpenAI-compatible endpoint: `transformers serve` or vLLM, told what they need to know."""

import ctypes
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from vpo.models.locate import Located
from vpo.util.errors import InputError

GENERATORS = {"transformers": "fastapi", "vllm": "vllm"}  # and a package that tells whether they can run
STARTING = 600.0  # seconds for a server to load a model
ENDING = 10.0
PR_SET_PDEATHSIG = 1  # of prctl


def serve(located: Located, name: str, generator: str, host: str, port: int, ready: Callable[[], None]) -> int:
    """Serve a model until somebody stops it, and return the exit code of the server.

    Args:
        located: the model.
        name: by which it is asked for.
        generator: what answers, "transformers" or "vllm".
        host: to listen on.
        port: to listen on.
        ready: called once the server answers.
    """
    if generator not in GENERATORS:
        raise InputError(f"generator must be {' or '.join(GENERATORS)}, not {generator!r}")
    if importlib.util.find_spec(GENERATORS[generator]) is None:
        wanted = "'vpo[serve]'" if generator == "transformers" else "vllm"
        raise InputError(f"generator {generator} needs packages that are not here: pip install {wanted}")
    _check_port(host, port)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / name
        _sampling_copy(Path(located.path), folder)
        process = subprocess.Popen(
            _command(generator, name, host, port), cwd=place, env=_environment(), preexec_fn=_end_with_parent
        )
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _stop)
        try:
            if _answers(process, host, port):
                ready()
            return process.wait()
        except KeyboardInterrupt:
            return 130
        finally:
            process.terminate()
            try:
                process.wait(ENDING)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _stop(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    """Let the system end the server should this process be killed, where it can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _check_port(host: str, port: int) -> None:
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot listen on {host}:{port} ({error}): choose another with --port") from None


def _sampling_copy(model: Path, folder: Path) -> None:
    """Link the files of a model into a folder, with settings under which a server samples.

    A server takes whether to sample from the model, and not from who asks; most models do not say.
    """
    if not model.is_dir():
        raise InputError(f"{model}: there is no such folder (of a model): serve one that is on this disk")
    folder.mkdir()
    for file in model.absolute().iterdir():
        if file.name != "generation_config.json":
            (folder / file.name).symlink_to(file)
    path = model / "generation_config.json"
    settings = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    (folder / path.name).write_text(json.dumps({**settings, "do_sample": True}), encoding="utf-8")


def _command(generator: str, name: str, host: str, port: int) -> list[str]:
    where = ["--host", host, "--port", str(port)]
    if generator == "vllm":
        return [_program("vllm"), "serve", f"./{name}", "--served-model-name", name, *where]
    import torch

    # bf16 products crash some CPUs.
    there = [] if torch.cuda.is_available() else ["--device", "cpu", "--dtype", "float32"]
    return [_program("transformers"), "serve", name, *there, *where]


def _program(name: str) -> str:
    """Return the path of a program of this Python's environment, or else of the user's."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        raise InputError(f"there is no program {name!r} here")
    return found


def _environment() -> dict[str, str]:
    return {**os.environ, "HF_HUB_OFFLINE": "1"}


def _answers(process: "subprocess.Popen[bytes]", host: str, port: int) -> bool:
    """Wait until a server answers; return whether it does."""
    deadline = time.monotonic() + STARTING
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://{host}:{port}/health", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    return False
