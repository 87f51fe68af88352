"""How a conflict reads: two accesses that nothing orders, as a finding with its cure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxgen.errors import Finding
from ptxgen.isa.rules import RULES

from .report import hazard
from .shadow import Stamp

if TYPE_CHECKING:
    from .state import Path
    from .watch import WarpView, Watch

# By the agent of the earlier access, and whether it writes: the rule that two accesses break.
_BY_EARLIER = {
    ("copies", True): "copy-unwaited",
    ("copies", False): "source-overwritten",
    ("wgmma", False): "stage-overwritten",
    ("bulk reads", False): "source-overwritten",
    ("bulk writes", True): "bulk-unwaited",
    ("cp.async", True): "cp-async-unwaited",
}


def conflict(watch: Watch, view: WarpView, old: int, stamp: Stamp) -> None:
    """Two accesses may happen in either order: raise, or advise where that may be meant."""
    now = watch.now
    agent = watch.agents[stamp.agent]
    code = _BY_EARLIER.get((agent.kind, stamp.writes), "")
    if not code and not now.is_async:
        if now.same:
            what = "written" if stamp.writes else "read"
            advise(watch, "race-same-value", f"{now.verb} the value that {agent.name} has {what} "
                   "there, in either order", now.path, (now.line, stamp.line))  # fmt: skip
            return
        if stamp.strong and not now.writes:
            advise(watch, "race-atomic", f"{now.verb} bytes that {agent.name} changes with an "
                   "atomic, in either order", now.path, (now.line, stamp.line))  # fmt: skip
            return
        if view.strong and not stamp.writes:
            advise(watch, "race-atomic", f"{now.verb} bytes that {agent.name} has read with a "
                   "plain load, in either order", now.path, (now.line, stamp.line))  # fmt: skip
            return
    if not code:
        narrow = view.clock.narrow.get(stamp.agent, 0) >= stamp.epoch
        shared = now.bank.name == "shared memory"
        if narrow:
            code = "scope"
        elif now.is_async and now.writes and not stamp.writes:
            code = "stage-overwritten"
        else:
            code = "race-shared" if shared else "race-global"
    earlier = "written" if stamp.writes else "read"
    loading = code == "source-overwritten" and agent.kind == "copies"
    raise hazard(
        code,
        f"{now.verb} bytes that {agent.name} has {earlier}, and nothing orders the two",
        path=now.path,
        line=now.line,
        lines=(stamp.line,),
        bytes_=_bytes(watch, old),
        cure="wait on the mbarrier of the copy before changing what it reads" if loading else "",
    )


def unfenced(watch: Watch, view: WarpView, old: int, stamp: Stamp) -> None:
    """The two are in order, but for different proxies: an error after a write, else advice."""
    now = watch.now
    agent = watch.agents[stamp.agent]
    if not stamp.writes:
        text = f"{now.verb} bytes that {agent.name} has read through the generic proxy"
        advise(watch, "proxy-fence-read", text, now.path, (now.line, stamp.line))
        return
    shared = now.bank.name == "shared memory"
    space = "shared::cta" if shared else "global"
    raise hazard(
        "proxy-fence" if shared else "proxy-fence-global",
        f"{now.verb} bytes that {agent.name} wrote through the generic proxy, without a proxy "
        "fence in between",
        path=now.path,
        line=now.line,
        lines=(stamp.line,),
        bytes_=_bytes(watch, old),
        cure=f"fence.proxy.async.{space} in every writing thread, after PTX line {stamp.line} and "
        "before the barrier that the copy waits for",
    )


def fenced_late(watch: Watch, view: WarpView, old: int, stamp: Stamp) -> None:
    """A proxy fence there is, but not by the writer before it signalled."""
    now = watch.now
    agent = watch.agents[stamp.agent]
    text = f"{now.verb} bytes that {agent.name} wrote; the proxy fence is not the writer's"
    advise(watch, "proxy-fence-side", text, now.path, (now.line, stamp.line))


def advise(
    watch: Watch | None, code: str, message: str, path: Path, lines: tuple[int, ...]
) -> None:
    """Keep a disputed finding, once for each pair of lines."""
    if watch is None or (code, lines) in watch.advice:
        return
    rule = RULES[code]
    watch.advice[code, lines] = Finding(
        code=code, severity=rule.severity, message=message, lines=lines, where=path.where(),
        reason=rule.reason, cure=rule.cure, isa=rule.isa,
    )  # fmt: skip


def _bytes(watch: Watch, old: int) -> str:
    now = watch.now
    assert now.bank.shadow is not None
    first = now.bank.shadow.find(old, now.start, now.end)
    return f"{now.bank.name} offset {first:#x} (access to {now.start:#x}..{now.end - 1:#x})"
