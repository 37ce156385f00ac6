"""A server of the page of a run that is being trained, for browsers on the same machine alone."""

import hashlib
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from vpo.report.embedding import script_json
from vpo.report.watch import RunWatch, page
from vpo.util.errors import InputError

LOOPBACK = "127.0.0.1"


class WatchServer(ThreadingHTTPServer):
    """Serves the page of a run at `/` and its state at `/state.json`."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int = 0) -> None:
        """Set the run, and the port; 0 for a free one."""
        self.watch, self.lock = RunWatch(folder), threading.Lock()
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise InputError(f"port {port} cannot be used ({error.strerror}): choose another --port") from None

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def state(self) -> dict[str, Any]:
        """The state of the run; requests come in threads of their own."""
        with self.lock:
            return self.watch.state()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that has left; print anything else."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: WatchServer
    timeout = 10.0  # seconds that a silent connection is kept

    def do_GET(self) -> None:
        """Answer with the page or the state."""
        parts = _parts(self.path)
        # A page of somebody else, whose name resolves to this machine, must not read the rollouts.
        if _parts(f"//{self.headers.get('Host', '')}").hostname not in (LOOPBACK, "localhost"):
            self._send(403, "text/plain", b"vpo watch is for this machine alone\n")
        elif parts.path == "/":
            self._send(200, "text/html", page(self.server.state(), live=True).encode())
        elif parts.path == "/state.json":
            body = script_json(self.server.state()).encode()
            version = hashlib.sha256(body).hexdigest()
            unchanged = parse_qs(parts.query).get("have") == [version]
            self._send(204, None, b"") if unchanged else self._send(200, "application/json", body, version)
        else:
            self._send(404, "text/plain", b"there is only / and /state.json\n")

    def _send(self, status: int, kind: str | None, body: bytes, version: str = "") -> None:
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
        if version:
            self.send_header("X-Version", version)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *values: Any) -> None:
        """Print nothing: a page asks every two seconds."""


def _parts(address: str) -> SplitResult:
    """The parts of an address; all empty for one that is malformed, such as "//["."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
