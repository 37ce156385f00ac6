"""Messages between a caller and its judge: a letter, a length, and the content."""

import socket
import struct

HEADER = struct.Struct("!cI")
JOB, RESULTS, OUTPUT, READING, SOURCE, FORM = b"j", b"r", b"o", b"m", b"s", b"f"
CHUNK = 1 << 18


class ClosedError(Exception):
    """The other side closed the connection, or sent what it never sends."""


def send(connection: socket.socket, kind: bytes, content: bytes = b"") -> None:
    """Send one message."""
    try:
        connection.sendall(HEADER.pack(kind, len(content)))
        connection.sendall(content)
    except OSError as error:
        raise ClosedError(str(error)) from None


def receive(connection: socket.socket, most: int | None = None) -> tuple[bytes, bytes]:
    """Wait for one message: its letter and its content.

    Args:
        connection: to the other side.
        most: the most bytes of a message that is read; unlimited where the other side is trusted.
    """
    kind, length = HEADER.unpack(_exactly(connection, HEADER.size))
    if most is not None and length > most:
        raise ClosedError(f"a message of {length:,} bytes")
    return kind, _exactly(connection, length)


def _exactly(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        try:
            data = connection.recv(min(CHUNK, length - len(parts)))
        except OSError as error:
            raise ClosedError(str(error)) from None
        if not data:
            raise ClosedError("the connection was closed")
        parts += data
    return bytes(parts)
