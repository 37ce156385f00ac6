"""Reading a log that grows, or is replaced."""

import json

from tests.report.watched import append, write
from vpo.report import watch_logs
from vpo.report.watch_logs import LogTail


def test_a_line_is_read_once_it_is_complete(tmp_path):
    log = LogTail(tmp_path / "log.jsonl")
    assert (log.read()[0], list(log.read()[1])) == (False, [])
    append(log.path, {"step": 1}, {"step": 2, "text": "é"}, end="")
    assert [row["step"] for row in log.read()[1]] == [1]
    assert list(log.read()[1]) == []
    write(log.path, "\n")
    assert list(log.read()[1]) == [{"step": 2, "text": "é"}]
    assert log.damaged == 0


def test_only_what_was_appended_is_read(tmp_path):
    log = LogTail(tmp_path / "log.jsonl")
    append(log.path, {"step": 1}, {"step": 2})
    assert len(list(log.read()[1])) == 2
    with open(log.path, "r+b") as file:
        file.write(b"garbage...")  # over what was read
    append(log.path, {"step": 3})
    anew, rows = log.read()
    assert (anew, list(rows)) == (False, [{"step": 3}])


def test_a_log_that_was_replaced_is_read_anew_even_where_it_is_as_long(tmp_path):
    log = LogTail(tmp_path / "log.jsonl")
    append(log.path, {"step": 1}, {"step": 2})
    list(log.read()[1])
    for rows in ([{"step": 1}], [{"step": 5}, {"step": 6}], [{"step": 7}, {"step": 8}, {"step": 9}]):
        log.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        anew, read = log.read()
        assert (anew, list(read)) == (True, rows)
    log.path.unlink()
    assert log.read()[0]
    assert not log.read()[0]


def test_of_a_huge_log_only_the_end_is_read(tmp_path, monkeypatch):
    log = LogTail(tmp_path / "log.jsonl", most=100)
    append(log.path, *({"step": number} for number in range(10_000)))
    parsed = []
    monkeypatch.setattr(watch_logs, "_row", lambda line: parsed.append(line) or json.loads(line))
    rows = list(log.read()[1])
    assert [row["step"] for row in rows] == list(range(10_000 - len(rows), 10_000))
    assert 3 <= len(rows) <= 7
    assert len(parsed) == len(rows)
    assert log.damaged == 0
    append(log.path, {"step": 10_000})
    assert list(log.read()[1]) == [{"step": 10_000}]
