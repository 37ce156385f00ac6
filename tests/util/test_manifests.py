"""Manifests: whatever changes in a folder after it was written is named."""

import json
import os
import time

import pytest

from vpo.util.manifests import manifest_damage, write_manifest


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.bin").write_bytes(bytes(range(256)) * 100)
    (folder / "inner" / "b.txt").write_text("b")
    write_manifest(folder, "whole", {"of": 1})
    return folder


def damage(folder):
    return manifest_damage(folder, "whole", {"of": 1})


def test_every_byte_counts(folder):
    assert damage(folder) == []
    data = (folder / "a.bin").read_bytes()
    for index in (0, 1, len(data) // 2, len(data) - 1):
        (folder / "a.bin").write_bytes(data[:index] + bytes([data[index] ^ 128]) + data[index + 1 :])
        assert damage(folder) == ["a.bin has other contents"]
    (folder / "a.bin").write_bytes(data + b"x")
    assert damage(folder) == ["a.bin has 25,601 bytes of 25,600"]


def test_any_byte_of_a_manifest_that_changes_is_noticed(folder):
    """A change that is none to JSON, of white space, is none to the files either."""
    path = folder / "whole"
    data = path.read_bytes()
    for index in range(len(data)):
        path.write_bytes(data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :])
        assert damage(folder) in ([], ["whole is damaged"])
        assert damage(folder) or chr(data[index]).isspace()
    for text in ("null", "[]", "{}", '{"sha256": 1}', "\ufeff{}"):
        path.write_text(text)
        assert damage(folder) == ["whole is damaged"]


def test_what_is_no_file_or_was_added_is_named(folder, tmp_path):
    (folder / "inner" / "b.txt").unlink()
    os.mkfifo(folder / "inner" / "b.txt")
    (folder / "model.safetensors.index.json").write_text("{}")  # a loader would prefer it
    (folder / ".nfs0001").touch()
    assert damage(folder) == ["inner/b.txt is not a file", "model.safetensors.index.json was added"]
    (folder / "inner" / "b.txt").unlink()
    (folder / "inner" / "b.txt").symlink_to(tmp_path / "nowhere")
    assert damage(folder)[0] == "inner/b.txt is missing"
    assert manifest_damage(folder, "whole", {"of": 2}) == ["whole is that of of 1"]


def test_all_files_are_on_disk_before_the_manifest_says_so(folder, monkeypatch):
    (folder / "whole").unlink()
    synced = []
    inner = os.fsync

    def fsync(handle):
        path = os.readlink(f"/proc/self/fd/{handle}")
        synced.append((os.path.relpath(path, folder), (folder / "whole").exists()))
        inner(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    write_manifest(folder, "whole", {})
    before = {path for path, marked in synced if not marked}
    assert {"a.bin", "inner/b.txt", "inner", ".", ".."} <= before
    assert any(path.startswith(".whole.") for path in before)  # the manifest itself, before it is renamed
    assert synced[-1] == (".", True)


def test_a_manifest_is_fast_enough_for_large_models(tmp_path):
    (tmp_path / "weights").write_bytes(os.urandom(1 << 20) * 64)
    start = time.process_time()
    write_manifest(tmp_path, "whole", {})
    assert time.process_time() - start < 3  # 0.04 s at 1.5 GB/s
    assert json.loads((tmp_path / "whole").read_text())["files"]["weights"]["size"] == 64 << 20
