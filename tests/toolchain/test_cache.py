"""The store: nothing half-written is ever read; a bad folder costs a warning, never a failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from ptxgen.toolchain import cache
from ptxgen.toolchain.cache import CacheWarning, Store, content_key

pytestmark = pytest.mark.unit

KEY = content_key([("ptx", "text")])
PAYLOAD = bytes(range(256)) * 40


def entry(root: Path, key: str = KEY) -> Path:
    path = Store(root).path(key)
    assert path is not None
    return path


def test_round_trip_across_processes(tmp_path: Path) -> None:
    assert Store(tmp_path).get(KEY) is None
    assert Store(tmp_path).put(KEY, PAYLOAD)
    assert Store(tmp_path).get(KEY) == PAYLOAD  # a new store: from disk
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [f"{KEY}.entry"]


def test_empty_payload(tmp_path: Path) -> None:
    Store(tmp_path).put(KEY, b"")
    assert Store(tmp_path).get(KEY) == b""


def test_key_depends_on_every_part_and_on_its_borders() -> None:
    keys = {
        content_key([("ptx", "ab"), ("flag", "c")]),
        content_key([("ptx", "a"), ("flag", "bc")]),
        content_key([("ptx", "ab"), ("arch", "c")]),
        content_key([("ptx", "ab"), ("flag", "c"), ("flag", "")]),
        content_key([("ptx", "ab")]),
    }
    assert len(keys) == 5


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:10],
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],  # one bit
        lambda data: b"some other file\n" + data,
    ],
    ids=["empty", "header", "half", "short", "long", "bit", "foreign"],
)
def test_damaged_entry_is_a_miss_and_is_rewritten(tmp_path: Path, damage: object) -> None:
    Store(tmp_path).put(KEY, PAYLOAD)
    path = entry(tmp_path)
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    fresh = Store(tmp_path)
    assert fresh.get(KEY) is None
    assert fresh.put(KEY, PAYLOAD)
    assert Store(tmp_path).get(KEY) == PAYLOAD


def test_folder_that_is_a_file_warns_once_and_works(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    store = Store(blocked / "cache")
    with pytest.warns(CacheWarning, match="PTXGEN_CACHE_DIR"):
        assert not store.put(KEY, PAYLOAD)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not store.put("another", b"1")
    assert store.get(KEY) == PAYLOAD
    assert store.get("another") == b"1"


def test_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # chmod does not stop the superuser, so the refusal is put where the system would make it.
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache.tempfile, "mkstemp", refuse)
    store = Store(tmp_path)
    with pytest.warns(CacheWarning, match="Permission denied"):
        assert not store.put(KEY, PAYLOAD)
    assert store.get(KEY) == PAYLOAD


FULL_DISK = """
import resource, signal, sys, warnings
from pathlib import Path
from ptxgen.toolchain.cache import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))   # writes beyond this fail half-way
store = Store(Path(sys.argv[1]))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert not store.put("ab" * 32, bytes(100_000))
assert len(caught) == 1, caught
assert store.get("ab" * 32) == bytes(100_000)
"""


def test_disk_that_fills_up_leaves_nothing(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], check=True, timeout=60)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


COLD_START = """
import sys
from pathlib import Path
from ptxgen.toolchain.cache import Store
root, count = Path(sys.argv[1]), 40
print("ready", flush=True)
sys.stdin.readline()
for n in range(count):
    key, payload = f"{n:064x}", bytes([n]) * 30_000
    store = Store(root)
    found = store.get(key)
    assert found is None or found == payload
    assert store.put(key, payload)
    assert Store(root).get(key) == payload
"""


def test_sixteen_processes_on_one_cold_folder(tmp_path: Path) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", COLD_START, str(tmp_path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(16)
    ]  # fmt: skip
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    ended = [worker.communicate("go\n", timeout=100) for worker in workers]
    assert [(w.returncode, err) for w, (_, err) in zip(workers, ended, strict=True)] == [
        (0, "")
    ] * 16
    assert len([p for p in tmp_path.rglob("*") if p.is_file()]) == 40


KILLED = """
import os, sys, time
from pathlib import Path
from ptxgen.toolchain import cache
def stall(descriptor):
    print("half", flush=True)
    time.sleep(60)
cache.os.fsync = stall
cache.Store(Path(sys.argv[1])).put(sys.argv[2], bytes(100_000))
"""


def test_killed_writer_leaves_no_entry_and_is_swept(tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), KEY], stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "half\n"
    worker.send_signal(signal.SIGKILL)
    worker.communicate(timeout=30)
    (leftover,) = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert leftover.suffix == ".tmp"

    store = Store(tmp_path)
    assert store.get(KEY) is None
    assert store.put(KEY, PAYLOAD)
    assert leftover.exists()  # young: it could belong to a writer that lives

    old = time.time() - 2 * 3600
    os.utime(leftover, (old, old))
    assert Store(tmp_path).put(KEY, PAYLOAD)
    assert not leftover.exists()


def test_threads_share_one_store(tmp_path: Path) -> None:
    store = Store(tmp_path, memory_entries=2)  # small, so that entries leave memory meanwhile
    wrong: list[int] = []

    def work(n: int) -> None:
        for i in range(30):
            key = f"{(n + i) % 7:064x}"
            store.put(key, key.encode())
            if store.get(key) != key.encode():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_memory_is_bounded(tmp_path: Path) -> None:
    store = Store(None, memory_entries=3)
    for n in range(5):
        assert not store.put(str(n), b"x")
    assert [store.get(str(n)) for n in range(5)] == [None, None, b"x", b"x", b"x"]


def test_shared_store_follows_the_knob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXGEN_CACHE_DIR", str(tmp_path))
    assert cache.shared_store("cubin").root == tmp_path / "cubin"
    assert cache.shared_store("cubin") is cache.shared_store("cubin")
