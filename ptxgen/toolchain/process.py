"""Run one external tool to its end, or stop it and everything that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ptxgen.errors import ToolchainError
from ptxgen.toolchain.discover import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a tool ended. A negative `exit_code` is the signal that ended it."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def signal_name(self) -> str:
        """The signal's name if the tool crashed, else ""."""
        return signal.Signals(-self.exit_code).name if self.exit_code < 0 else ""


def run_tool(
    tool: Tool,
    arguments: Sequence[str],
    *,
    folder: str,
    timeout_s: float,
    error: type[ToolchainError] = ToolchainError,
    timeout_cure: str = "pass a larger timeout_s",
) -> Finished:
    """Run `tool` in `folder`. Raises `error` when it cannot be started or does not end in time."""
    # Its own process group: a tool may be a wrapper script, whose child must end with it.
    try:
        process = subprocess.Popen(
            [str(tool.path), *arguments],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, encoding="utf-8", errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as problem:
        raise error(f"{tool} cannot be started: {problem}") from problem
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _stop(process)
        raise error(
            f"{tool} did not end within {timeout_s:g} s and was stopped. Cure: {timeout_cure}."
        ) from None
    except BaseException:  # an interrupt, say: leave nothing running behind it
        _stop(process)
        raise
    return Finished(exit_code=process.returncode, stdout=stdout, stderr=stderr)


@contextmanager
def scratch_folder(error: type[ToolchainError] = ToolchainError) -> Iterator[str]:
    """A temporary folder for one run, removed behind it. A disk that is full becomes `error`."""
    try:
        with tempfile.TemporaryDirectory(prefix="ptxgen-") as folder:
            yield folder
    except OSError as problem:
        raise error(
            f"temporary files cannot be written: {problem}. "
            f"Cure: free space there, or set TMPDIR to a folder that can be written."
        ) from problem


def _stop(process: subprocess.Popen[str]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended by itself in the meantime
    process.communicate()
