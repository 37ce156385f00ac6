"""A small OpenAI-compatible endpoint on loopback that answers as a test says."""

import json
import socket
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
            reply = answer(request, number)
            if isinstance(reply, str):
                message = {"role": "assistant", "content": reply}
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
                body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
                reply = 200, json.dumps({**body, "usage": usage}).encode()
            status, body, *headers = reply
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

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128  # with more concurrent calls some would wait for a second

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def dripping():
    """A server that sends a byte now and then, for ever."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run():
            try:
                connected, _ = server.accept()
                with connected:
                    connected.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                    while not stop.wait(0.2):
                        connected.sendall(b" ")
            except OSError:
                pass

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        finally:
            stop.set()
            thread.join(5)
