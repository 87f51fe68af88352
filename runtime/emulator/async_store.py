"""st.async and red.async at run time: one transfer a lane, completed like a bulk copy."""

from __future__ import annotations

from collections.abc import Sequence

from .atomics import combine
from .faults import fault
from .memory import Fault
from .queue import Transfer
from .state import CTA, Path
from .tma import announce, destinations, lanes, signal
from .values import Array, type_bits


def async_store(
    p: Path,
    operation: str,
    type_: str,
    address: Array,
    values: Sequence[Array],
    mbar: Array,
    mask: Array | None,
    line: int,
) -> None:
    """Write, or combine, the values of every active lane, and complete_tx their bytes."""
    for lane in lanes(p, mask):
        where = destinations(p, int(address[lane]), int(mbar[lane]), None, line)[0]
        words = [int(row[lane]) for row in values]
        p.C.queue.submit(_transfer(p, operation, type_, words, where, line))


def _transfer(
    p: Path, operation: str, type_: str, words: list[int], where: tuple[CTA, int, int], line: int
) -> Transfer:
    cta, offset, barrier = where
    width = type_bits(type_) // 8
    size = width * len(words)
    verb = "red.async changes" if operation else "st.async writes"
    (phase,) = announce(p, [where], size, line, verb, combines=bool(operation))

    def complete() -> None:
        new = words
        cta.window.mark_landed(offset, offset + size)
        try:
            if operation:
                old = cta.window.load_one(offset, width, len(words))
                new = [combine(operation, type_, a, b) for a, b in zip(old, words, strict=True)]
            cta.window.store_one(offset, width, new)
        except Fault as error:
            raise fault(p, error, line, None, "asynchronous store") from None
        signal(p, barrier, size, line, phase)

    return Transfer(lambda: None, complete, line)
