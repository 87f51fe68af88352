"""A content-addressed store of byte strings: on disk where possible, in memory always.

    <root>/<first two digits of the key>/<key>.entry

An entry is one file: a header line with the length and SHA-256 of what follows, then the payload.
Writers fill a temporary file beside it, flush it to the disk and rename it over the entry, so that
a reader sees all of it or nothing, whoever is killed and however many processes write the same key.
Readers check length and hash; a truncated or damaged entry is a miss, and the next `put` replaces
it. A folder that cannot be written (read-only, full, not a folder) costs one warning and nothing
else: this process then keeps its entries in memory.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from ptxgen import env

_MAGIC = b"ptxgen-cache-1"
_TMP_SUFFIX = ".tmp"
_STALE_TMP_S = 3600.0  # a temporary file older than this belongs to a process that died
MEMORY_ENTRIES = 1024


class CacheWarning(UserWarning):
    """The cache on disk cannot be used; this process goes on with its memory."""


def content_key(parts: Iterable[tuple[str, str | bytes]]) -> str:
    """SHA-256 over named parts. Lengths are hashed too, so no two part lists run together."""
    digest = hashlib.sha256()
    for name, value in parts:
        for data in (name.encode(), value.encode() if isinstance(value, str) else value):
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
    return digest.hexdigest()


class Store:
    """Payloads by key. Safe for threads, and for any number of processes on one folder.

    `root` None keeps everything in memory. Memory holds the latest `MEMORY_ENTRIES` payloads.
    """

    def __init__(self, root: Path | None, *, memory_entries: int = MEMORY_ENTRIES) -> None:
        self.root = root
        self._memory: OrderedDict[str, bytes] = OrderedDict()
        self._memory_entries = memory_entries
        self._lock = threading.Lock()
        self._warned = False
        self._swept = False

    def path(self, key: str) -> Path | None:
        """Where a key lives on disk; None for a store in memory."""
        return None if self.root is None else self.root / key[:2] / f"{key}.entry"

    def get(self, key: str) -> bytes | None:
        """The payload, or None when there is no whole entry."""
        with self._lock:
            if key in self._memory:
                self._memory.move_to_end(key)
                return self._memory[key]
        path = self.path(key)
        if path is None:
            return None
        try:
            payload = _unpack(path.read_bytes())
        except OSError:  # absent, or unreadable: the caller makes it anew, and `put` says so
            return None
        if payload is not None:
            self._remember(key, payload)
        return payload

    def put(self, key: str, payload: bytes) -> bool:
        """Keep a payload. True when it is on disk; False when only this process has it."""
        self._remember(key, payload)
        path = self.path(key)
        if path is None:
            return False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._sweep(path.parent)
            _write_atomically(path, _pack(payload))
        except OSError as error:
            self._warn(error)
            return False
        return True

    def _remember(self, key: str, payload: bytes) -> None:
        with self._lock:
            self._memory[key] = payload
            self._memory.move_to_end(key)
            while len(self._memory) > self._memory_entries:
                self._memory.popitem(last=False)

    def _sweep(self, folder: Path) -> None:
        """Remove what killed processes left behind: once a process, and never a live file."""
        with self._lock:
            if self._swept:
                return
            self._swept = True
        limit = time.time() - _STALE_TMP_S
        for path in folder.parent.glob(f"*/*{_TMP_SUFFIX}"):
            try:
                if path.stat().st_mtime < limit:
                    path.unlink()
            except OSError:  # another process removed it first
                continue

    def _warn(self, error: OSError) -> None:
        with self._lock:
            if self._warned:
                return
            self._warned = True
        warnings.warn(
            f"the cache folder {self.root} cannot be written ({error.strerror or error}): results "
            f"are kept in memory, and made again by the next process. Cure: free space there, or "
            f"set {env.CACHE_DIR.name} to a folder that can be written.",
            CacheWarning,
            stacklevel=4,
        )


_stores: dict[Path, Store] = {}
_stores_lock = threading.Lock()


def shared_store(kind: str) -> Store:
    """The store `kind` under PTXGEN_CACHE_DIR: one object a folder, so its memory is shared."""
    root = env.CACHE_DIR.get() / kind
    with _stores_lock:
        return _stores.setdefault(root, Store(root))


def _pack(payload: bytes) -> bytes:
    digest = hashlib.sha256(payload).hexdigest().encode()
    return b"%s %d %s\n%s" % (_MAGIC, len(payload), digest, payload)


def _unpack(data: bytes) -> bytes | None:
    """The payload of an entry, or None when its length or hash is not what its header says."""
    header, _, payload = data.partition(b"\n")
    fields = header.split(b" ")
    if len(fields) != 3 or fields[0] != _MAGIC or fields[1] != b"%d" % len(payload):
        return None
    if fields[2] != hashlib.sha256(payload).hexdigest().encode():
        return None
    return payload


def _write_atomically(path: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem[:16], suffix=_TMP_SUFFIX)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        try:
            os.unlink(name)
        except OSError:
            pass  # the first error is the one to report
        raise
