"""`ptxgen layout`: drawings as text, JSON and files."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ptxgen.app.cli import app
from ptxgen.layout.tensor_map import TensorMapSpec, encode

pytestmark = pytest.mark.unit

runner = CliRunner()


def run(*arguments: str, code: int = 0, stdin: str | None = None) -> str:
    result = runner.invoke(app, ["layout", *arguments], input=stdin)
    assert result.exit_code == code, result.output
    return result.output


def test_swizzle() -> None:
    assert "0x080  1:8-15  1:0-7" in run("swizzle", "128", "--dtype", "bf16")
    data = json.loads(run("swizzle", "64", "--json"))
    assert (data["atom_bytes"], data["column_conflict"], len(data["chunks"])) == (512, 1, 32)
    assert "must be 0, 32, 64 or 128" in run("swizzle", "16", code=1)
    assert "unknown dtype" in run("swizzle", "128", "--dtype", "e2m1", code=1)


def test_fragment() -> None:
    assert "32 registers a thread" in run("fragment", "wgmma_d", "--n", "64")
    data = json.loads(run("fragment", "ldmatrix", "--json"))
    assert len(data["grids"]) == 4
    assert data["grids"][0]["rows"][0] == ["0:0", "1:0", "2:0", "3:0"]
    assert len(json.loads(run("fragment", "--warp", "-1", "--json"))["grids"][0]["rows"]) == 64
    assert "must be one of wgmma_d" in run("fragment", "tmem", code=1)


def test_descriptor() -> None:
    assert "128B" in run("desc", "0x4000004000010000")
    data = json.loads(run("desc", "0x4000_0040_0001_0002", "--json"))
    assert (data["start"], data["sbo"], data["swizzle"]) == (32, 1024, 128)
    assert data["remarks"][0].startswith("start is 32 B into")
    assert "must be a number" in run("desc", "xyz", code=1)
    assert "must be 0 .. 2^64 - 1" in run("desc", hex(1 << 64), code=1)


def test_tensor_map(tmp_path: Path) -> None:
    spec = TensorMapSpec(
        dtype="bf16", address=4096, shape=(300, 520), strides=(1040, 2), box=(128, 64), swizzle=128
    )
    data = encode(spec)
    text, raw = tmp_path / "map.txt", tmp_path / "map.bin"
    text.write_text(data.hex())
    raw.write_bytes(data)
    for source in (data.hex(), f"@{text}", f"@{raw}"):
        assert json.loads(run("tensormap", source, "--json"))["shape"] == [300, 520]
    assert "box bytes" in run("tensormap", "-", stdin=data.hex())
    assert "256 hex digits" in run("tensormap", "00", code=1)
    assert "No such file" in run("tensormap", "@missing", code=1)
    run("tensormap", code=2)
    run("tensormap", "00", "--against", "x", code=2)


def test_banks() -> None:
    assert "32-way" in run("banks", "tid*32")
    assert "32-way" not in run("banks", "tid*33", "--width", "4")
    data = json.loads(run("banks", "ty*K+tx", "--let", "K=64", "--block", "16x4", "--json"))
    assert [w["sectors"] for w in data["warps"]] == [4, 4]
    assert data["warps"][1]["lanes"][0]["index"] == 128
    swizzled = json.loads(run("banks", "lane*8", "--width", "16", "--swizzle", "128", "--json"))
    assert swizzled["warps"][0]["conflict_ways"] == 1
    assert "known names" in run("banks", "row*4", code=1)
    assert "must be NAME=INTEGER" in run("banks", "tid", "--let", "K", code=1)
    assert "must be X, XxY or XxYxZ" in run("banks", "tid", "--block", "8,8", code=1)


def test_files(tmp_path: Path) -> None:
    svg, html, txt = (tmp_path / f"a.{suffix}" for suffix in ("svg", "html", "txt"))
    run("swizzle", "-o", str(svg))
    assert svg.read_text().startswith("<svg")
    run("banks", "tid", "-o", str(html))
    assert html.read_text().count("<svg") == 3
    run("desc", "0", "-o", str(txt))
    assert "layout" in txt.read_text()
    assert "must end in one of .html, .txt" in run("banks", "tid", "-o", "a.svg", code=1)
