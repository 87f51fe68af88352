"""PTXGEN_DUMP: leave every PTX, cubin, log and listing in a folder, for a look from outside.

Files of one cubin share a stem, `<first entry>-<12 digits of the cubin's SHA-256>`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping

from ptxgen import env


class DumpWarning(UserWarning):
    """The folder of PTXGEN_DUMP cannot be written; everything else goes on."""


def dump(entry: str, cubin_sha256: str, texts: Mapping[str, str | bytes]) -> None:
    """Write one file a suffix, e.g. {".ptx": text}. Does nothing where PTXGEN_DUMP is not set."""
    folder = env.DUMP.get()
    if folder is None:
        return
    stem = f"{re.sub(r'[^A-Za-z0-9_.$-]', '_', entry)[:100] or 'module'}-{cubin_sha256[:12]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, content in texts.items():
            data = content.encode() if isinstance(content, str) else content
            (folder / f"{stem}{suffix}").write_bytes(data)
    except OSError as error:
        warnings.warn(
            f"{env.DUMP.name}={folder} cannot be written ({error.strerror or error}). "
            f"Cure: name a folder that can be written, or unset it.",
            DumpWarning,
            stacklevel=3,
        )
