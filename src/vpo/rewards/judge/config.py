"""Settings of a judge; the keys of its table in a rewards file."""

import math
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from vpo.util.errors import InputError


@dataclass(frozen=True, kw_only=True)
class JudgeConfig:
    """Which model judges by which rubrics, and within which limits.

    Attributes:
        endpoint: base URL, such as http://localhost:8000/v1; the API key is OPENAI_API_KEY of the environment.
        model: its name there.
        rubrics: persona → the text by which it scores.
        scale: the worst and the best score of a reply; they become 0 and 1.
        together: judge the answers of a set in one request, side by side, rather than one request per answer.
        concurrent: the most requests in flight.
        limit: seconds per request, and the longest wait before a retry.
        call_limit: seconds per call of `Judge.score`; answers that are not scored by then abstain.
        tries: attempts per request, where its failure may be temporary.
        backoff: seconds before the second attempt, at most; doubled before each further one.
        pause: seconds without requests after 2 × concurrent consecutive failures.
        reply_tokens: max_tokens of a reply.
        max_requests: the most requests in all, retries included; None for no limit.
        max_tokens: the most tokens in all, of prompts and replies; None for no limit.
        cache: folder on a local disk that keeps scores; None for none.
    """

    endpoint: str
    model: str
    rubrics: dict[str, str]
    scale: list[float] | tuple[float, float] = (1, 5)
    together: bool = False
    concurrent: int = 16
    limit: float = 60.0
    call_limit: float = 540.0
    tries: int = 4
    backoff: float = 1.0
    pause: float = 30.0
    reply_tokens: int = 512
    max_requests: int | None = None
    max_tokens: int | None = None
    cache: str | Path | None = None

    def __post_init__(self) -> None:
        """Refuse what no judge can have."""
        if not _is_url(self.endpoint):
            raise InputError(f"endpoint must be an address such as http://localhost:8000/v1, not {self.endpoint!r}")
        if not self.rubrics:
            raise InputError("rubrics must hold a text for at least one persona")
        for persona, text in self.rubrics.items():
            if not persona or not isinstance(text, str) or not text.strip():
                raise InputError(f"rubrics: persona {persona!r} needs a name and a text, not {text!r}")
        if not _is_scale(self.scale):
            raise InputError(f"scale must be the worst and the best number, such as [1, 5], not {self.scale!r}")
        for name in ("concurrent", "tries", "reply_tokens", "max_requests", "max_tokens"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise InputError(f"{name} must be 1 or more, not {count}")
        for name in ("limit", "call_limit", "pause"):
            seconds = getattr(self, name)
            if not 0 < seconds < math.inf:
                raise InputError(f"{name} must be greater than 0 and finite, not {seconds}")
        if not 0 <= self.backoff < math.inf:
            raise InputError(f"backoff must be 0 or more and finite, not {self.backoff}")


def _is_url(endpoint: str) -> bool:
    try:
        parts = urlsplit(endpoint)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half a bracket, or a port beyond 65535
        return False


def _is_scale(scale: object) -> bool:
    if not isinstance(scale, list | tuple) or not all(isinstance(each, int | float) for each in scale):
        return False
    return len(scale) == 2 and -math.inf < scale[0] < scale[1] < math.inf
