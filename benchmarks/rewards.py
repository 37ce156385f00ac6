"""Speed-up of scoring answers in one call, and the throughput of the judge; ratios of one run.

1,024 answers go through a classifier with three heads and two measures of text. The classifier is tiny, so this times
the overhead of calls: a large one on a CPU takes as long for a text in a batch as alone. The endpoint takes 100 ms per
answer, and gets requests from the judge and from bare connections.

python benchmarks/rewards.py [--json]
"""

import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from random import Random

from timing import seconds, show
from vpo.rewards import Classifier, Json, Judge, JudgeConfig, Length, Readability, Sample, VectorReward
from vpo.util.errors import InputError

ANSWERS = 1024
WORDS = ["one", "of", "seven", "little", "words", "repeated", "often"]
HEADS = ["helpful", "honest", "harmless"]
LATENCY = 0.1  # seconds
ROUNDS = 25  # requests per slot
CONTENT = {"choices": [{"message": {"content": '{"answer_1": 3}'}}], "usage": {"total_tokens": 300}}
BODY = json.dumps(CONTENT).encode()
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)


def save_classifier(folder: str) -> None:
    """Save a random encoder of two layers with three heads, and a tokenizer of whole words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    vocabulary = {word: index for index, word in enumerate(["<pad>", "<unk>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", model_max_length=256
    ).save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(vocabulary), max_position_embeddings=256, num_labels=3, **shape)
    BertForSequenceClassification(config).save_pretrained(folder)


def answers_to_score() -> list[Sample]:
    draw = Random(0)
    answers = [" ".join(draw.choices(WORDS, k=draw.randint(5, 40))) for _ in range(ANSWERS)]
    return [Sample("p", [{"role": "user", "content": "Write."}], answer) for answer in answers]


def measures() -> list[object]:
    """Length and readability; JSON instead of the latter where textstat is not installed."""
    try:
        return [Length("short", most=30), Readability("plain")]
    except InputError as error:
        print(f"json is timed, not readability: {error}", file=sys.stderr)
        return [Length("short", most=30), Json("json")]


def batched() -> list[tuple[str, float, str]]:
    with tempfile.TemporaryDirectory() as folder:
        save_classifier(folder)
        classifier = Classifier("quality", model=folder, heads=HEADS, calibration={"range": [-4, 4]})
        reward = VectorReward(classifier, *measures())
        answers = answers_to_score()
        together = seconds(lambda: reward.score(answers), repeats=7)
        apart = seconds(lambda: [reward.score([answer]) for answer in answers], repeats=2)
    return [
        (f"answers of 5 to 40 words a second, {ANSWERS:,} together", ANSWERS / together, ""),
        ("times those one by one", apart / together, "at least 5"),
    ]


class Server:
    """Answers every request after LATENCY, and measures how many are in flight."""

    def __init__(self) -> None:
        """Start with none in flight."""
        self.in_flight = self.most = 0
        self.first = self.last = self.seconds = 0.0

    def change(self, by: int) -> None:
        """Count one more in flight, or one less, and the sum of their times."""
        now = time.perf_counter()
        self.seconds += self.in_flight * (now - self.last)
        self.first, self.last = self.first or now, now
        self.in_flight += by
        self.most = max(self.most, self.in_flight)

    def report(self) -> tuple[int, float]:
        """The most that were in flight and their mean, since the last report."""
        most_and_mean = self.most, self.seconds / (self.last - self.first)
        self.most, self.first, self.seconds = 0, 0.0, 0.0
        return most_and_mean

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection until the client leaves."""
        with suppress(asyncio.IncompleteReadError, OSError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
                self.change(1)
                await asyncio.sleep(LATENCY)
                self.change(-1)
                writer.write(REPLY)
                await writer.drain()
        writer.close()

    async def run(self, pipe: Connection) -> None:
        """Serve until the pipe is closed; each message on it is answered with a report."""
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0, backlog=256)
        pipe.send(server.sockets[0].getsockname()[1])
        with suppress(EOFError):
            while await asyncio.to_thread(pipe.recv):
                pipe.send(self.report())


def serve(pipe: Connection) -> None:
    asyncio.run(Server().run(pipe))


def busy(port: int, concurrent: int, cache: str | None) -> tuple[float, float]:
    """Share of the ideal throughput, and milliseconds of processor time per request."""
    address = f"http://127.0.0.1:{port}/v1"
    judge = Judge(
        "judge", JudgeConfig(endpoint=address, model="m", rubrics={"one": "r"}, concurrent=concurrent, cache=cache)
    )
    samples = [
        Sample("p", [{"role": "user", "content": "q"}], f"answer {number}") for number in range(ROUNDS * concurrent)
    ]
    began, worked = time.perf_counter(), time.process_time()
    judge.score(samples)
    took, worked = time.perf_counter() - began, time.process_time() - worked
    assert not judge.failures
    return ROUNDS * LATENCY / took, 1000 * worked / len(samples)


async def bare(port: int, concurrent: int) -> float:
    """Share of the ideal throughput of connections that only send and receive."""
    request = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2000\r\n\r\n" + b" " * 2000

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(ROUNDS):
            writer.write(request)
            await reader.readexactly(len(REPLY))
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(concurrent)))
    return ROUNDS * LATENCY / (time.perf_counter() - began)


def endpoint() -> Iterator[tuple[str, float, str]]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    port = ours.recv()
    for concurrent in (4, 16, 32):
        with tempfile.TemporaryDirectory() as folder:
            share, milliseconds = busy(port, concurrent, folder)
        ours.send("report")
        most, mean = ours.recv()
        assert most <= concurrent
        reached = asyncio.run(bare(port, concurrent))
        ours.send("report")
        ours.recv()
        yield f"{LATENCY * 1000:g} ms per answer, {concurrent} in flight: share of the ideal throughput", share, ""
        yield "    the same of connections that only send and receive", reached, ""
        yield f"    mean in flight at the endpoint, of {concurrent}; the most was {most}", mean, ""
        yield "    ms of processor time per request", milliseconds, ""
    ours.close()
    process.join(5)


def figures() -> Iterator[tuple[str, float, str]]:
    yield from batched()
    yield from endpoint()


if __name__ == "__main__":
    show(__doc__, figures)
