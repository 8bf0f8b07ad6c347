"""The image's shared libraries without the symbols that no process loads."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec._core as library
import pytest

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "packaging"))

import without_symbols  # noqa: E402 - from there


@pytest.mark.processes
def test_a_library_is_smaller_and_loads_and_other_files_stay(tmp_path: Path) -> None:
    package = tmp_path / "msgspec"
    shutil.copytree(Path(library.__file__).parent, package)
    whole = package / Path(library.__file__).name
    padded = whole.read_bytes() + bytes(1000)  # a wheel may have come without symbols
    whole.write_bytes(padded)
    others = {path: path.read_bytes() for path in package.rglob("*") if path.is_file() and path != whole}
    without_symbols.main([str(tmp_path)])
    assert whole.stat().st_size <= len(padded) - 1000
    assert {path: path.read_bytes() for path in others} == others
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import msgspec as m; print(m.__file__, m.json.decode(b'[1]'))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=False)
    assert done.stdout.decode().split() == [str(package / "__init__.py"), "[1]"], done.stderr
    once = whole.read_bytes()
    assert without_symbols.stripped(once) is once


@pytest.mark.parametrize("cut", [5, 20, 63, 64, 70])
def test_a_file_that_ends_too_soon_is_left_alone(cut: int) -> None:
    part = Path(library.__file__).read_bytes()[:cut]
    assert without_symbols.stripped(part) is part
