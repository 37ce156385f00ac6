"""A trained model behind an OpenAI-compatible endpoint: `transformers serve` or vLLM in a process of its own."""

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

from vpo.models.locate import LocatedModel
from vpo.models.model_files import check_model_files, check_whole
from vpo.models.policy import load_tokenizer
from vpo.util.errors import InputError
from vpo.util.packages import check_installed
from vpo.util.progress import waiting
from vpo.util.stored import read_object
from vpo.util.supervised import start

GENERATORS = {"transformers": ("fastapi", "serve"), "vllm": ("vllm", None)}  # the package that each needs, its extra
START_TIMEOUT = 600.0  # seconds for a server to load a model
STOP_TIMEOUT = 10.0  # seconds for it to end


def serve(located: LocatedModel, name: str, generator: str, host: str, port: int, ready: Callable[[], None]) -> int:
    """Serve a model until the server ends or is stopped; the result is its exit code, 130 where it was stopped.

    Args:
        located: the model.
        name: that requests give for the model.
        generator: what samples, "transformers" or "vllm".
        host: to listen on.
        port: to listen on.
        ready: called once the server responds.
    """
    if generator not in GENERATORS:
        raise InputError(f"generator must be {' or '.join(GENERATORS)}, not {generator!r}")
    package, extra = GENERATORS[generator]
    check_installed(package, f"generator {generator}", extra=extra)
    _check_port(host, port)
    check_whole(located.path, "vpo serve")
    with tempfile.TemporaryDirectory() as parent:
        _link_with_sampling(Path(located.path), Path(parent) / name)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        process = None
        try:
            process = start(_command(generator, name, host, port), cwd=Path(parent), env=_environment())
            with waiting(f"{generator} is loading {name}"):
                up = _is_up(process, host, port)
            if up:
                ready()
            return process.wait()
        except KeyboardInterrupt:
            return 130
        finally:
            if process is not None:
                _stop(process)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _check_port(host: str, port: int) -> None:
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot listen on {host}:{port} ({error}): choose another with --port") from None


def _link_with_sampling(model: Path, folder: Path) -> None:
    """Make a folder of links to the files of a model, with a generation config that says `do_sample`.

    A server takes that from the model, not from a request, and most models do not have it.
    """
    if not model.is_dir():
        raise InputError(f"{model}: no such folder: serve a model that is on this disk")
    check_model_files(model)
    load_tokenizer(str(model))
    folder.mkdir()
    for file in model.absolute().iterdir():
        if file.name != "generation_config.json":
            (folder / file.name).symlink_to(file)
    path = model / "generation_config.json"
    settings = read_object(path) if path.is_file() else {}
    (folder / path.name).write_text(json.dumps({**settings, "do_sample": True}), encoding="utf-8")


def _command(generator: str, name: str, host: str, port: int) -> list[str]:
    address = ["--host", host, "--port", str(port)]
    import torch

    on_gpu = torch.cuda.is_available()  # bf16 products crash some CPUs
    if generator == "vllm":
        device = [] if on_gpu else ["--dtype", "float32", "--enforce-eager", "--no-enable-chunked-prefill"]
        return [_program("vllm"), "serve", f"./{name}", "--served-model-name", name, *device, *address]
    device = [] if on_gpu else ["--device", "cpu", "--dtype", "float32"]
    return [_program("transformers"), "serve", name, *device, *address]


def _program(name: str) -> str:
    """The path of a program: of this Python's environment, or else on PATH."""
    beside = Path(sys.executable).with_name(name)
    path = str(beside) if beside.is_file() else shutil.which(name)
    if path is None:
        raise InputError(f"no program {name!r} on PATH")
    return path


def _environment() -> dict[str, str]:
    return {**os.environ, "HF_HUB_OFFLINE": "1"}


def _is_up(process: "subprocess.Popen[bytes]", host: str, port: int) -> bool:
    """Wait until a server responds; False where it ends first, or not in time."""
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://{host}:{port}/health", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    return False
