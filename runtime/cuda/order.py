"""Order and lifetime on streams: who waits for whom, and what stays alive until work has passed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from runtime.cuda.driver import api, check


def is_capturing(stream: int) -> bool:
    """Whether work on the stream is being recorded into a graph."""
    driver = api()
    answer = driver.cuStreamIsCapturing(driver.CUstream(stream))
    status = check(answer, f"asking whether stream {stream:#x} is being captured")
    none: bool = status == driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
    return not none


@contextmanager
def relaxed_capture() -> Iterator[None]:
    """Lets this thread make calls that a capture elsewhere in the process would forbid.

    Creating and asking events is such a call; none of ours touches a stream that is captured.
    """
    driver = api()
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = check(driver.cuThreadExchangeStreamCaptureMode(mode), "relaxing the capture mode")
    try:
        yield
    finally:
        check(driver.cuThreadExchangeStreamCaptureMode(before), "restoring the capture mode")


class Order:
    """Events of one context: waits between streams, and owners kept until a stream has passed."""

    def __init__(self) -> None:
        self._free: list[Any] = []
        self._held: dict[int, deque[tuple[Any, object]]] = {}
        self._lock = threading.Lock()

    def wait_for(self, producer: int, stream: int) -> None:
        """Later work on `stream` waits for what `producer` has now. Nothing inside a capture."""
        if is_capturing(stream):
            return  # order inside a graph is the capture's own
        driver = api()
        with self._lock, relaxed_capture():
            event = self._record(producer)
            try:
                doing = f"ordering stream {stream:#x} behind {producer:#x}"
                check(driver.cuStreamWaitEvent(driver.CUstream(stream), event, 0), doing)
            finally:
                self._free.append(event)  # a wait keeps what was recorded, so it can be reused

    def hold(self, stream: int, owners: object) -> None:
        """Keep `owners` alive until the work that is now on `stream` has run.

        Inside a capture nothing is held: what a graph uses must outlive the graph.
        """
        if is_capturing(stream):
            return
        with self._lock, relaxed_capture():
            self._release_passed()
            event = self._record(stream)
            self._held.setdefault(stream, deque()).append((event, owners))

    def release(self) -> int:
        """Let go of what has been passed. How many launches still keep something alive."""
        with self._lock, relaxed_capture():
            self._release_passed()
            return sum(map(len, self._held.values()))

    def _record(self, stream: int) -> Any:
        driver = api()
        if self._free:
            event = self._free.pop()
        else:
            flags = driver.CUevent_flags.CU_EVENT_DISABLE_TIMING
            event = check(driver.cuEventCreate(int(flags)), "creating an event")
        check(driver.cuEventRecord(event, driver.CUstream(stream)), "recording an event")
        return event

    def _release_passed(self) -> None:
        driver = api()
        not_ready = driver.CUresult.CUDA_ERROR_NOT_READY
        for stream, waiting in list(self._held.items()):
            while waiting and driver.cuEventQuery(waiting[0][0])[0] != not_ready:
                self._free.append(waiting.popleft()[0])
            if not waiting:
                del self._held[stream]
