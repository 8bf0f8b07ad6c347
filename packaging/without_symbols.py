"""Removes what no process loads from the shared libraries below folders: `python packaging/without_symbols.py FOLDER ...`.

Symbols for debuggers, and the table of sections, lie behind the last segment of a file; the loader reads segments alone. So no
`strip` is needed, which few base images have.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

ELF64 = b"\x7fELF\x02\x01"  # 64 bits, little-endian
HEADER_BYTES = 64


def stripped(file: bytes) -> bytes:
    """Return an ELF file without what follows its segments; any other file as it is."""
    if not file.startswith(ELF64) or len(file) < HEADER_BYTES:
        return file
    (table,) = struct.unpack_from("<Q", file, 32)
    size, count = struct.unpack_from("<HH", file, 54)
    end = table + size * count
    if not count or end > len(file):
        return file
    for at in range(table, end, size):
        offset, _, _, length = struct.unpack_from("<QQQQ", file, at + 8)
        end = max(end, offset + length)
    if end >= len(file):
        return file
    header = bytearray(file[:end])
    struct.pack_into("<Q", header, 40, 0)  # there is no table of sections
    struct.pack_into("<HH", header, 60, 0, 0)
    return bytes(header)


def main(folders: list[str]) -> None:
    saved = 0
    for path in (one for folder in folders for one in Path(folder).rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as opened:
            if opened.read(len(ELF64)) != ELF64:
                continue
        before = path.read_bytes()
        if (after := stripped(before)) is not before:
            path.write_bytes(after)
            saved += len(before) - len(after)
    sys.stdout.write(f"{saved / 1e6:.1f} MB of symbols removed\n")


if __name__ == "__main__":
    main(sys.argv[1:])
