"""A small OpenAI-compatible endpoint on loopback that answers as a test wants it to."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def endpoint(answer):
    """Serve chat completions; `answer(request, number)` gives a text, or (status, body[, headers]) as sent."""
    seen = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                seen.append(request)
                number = len(seen) - 1
            found = answer(request, number)
            if isinstance(found, str):
                message = {"role": "assistant", "content": found}
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
                body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
                found = 200, json.dumps({**body, "usage": usage}).encode()
            status, body, *headers = found
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                for name, value in headers[0].items() if headers else ():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # the client did not wait for it

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        server.server_close()
