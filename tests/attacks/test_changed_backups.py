"""A backup that somebody has changed: `trawl restore` says so, and neither memory, disk nor time is spent on what it claims."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import resource
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from cli.access.backups import _check_room
from redis_components.backup import archive
from redis_components.backup.snapshot import BackupError

MIB = 1 << 20


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE, **more: object) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for field, value in more.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def zeros(into: io.BufferedIOBase, mebibytes: int) -> None:
    into.writelines(bytes(MIB) for _ in range(mebibytes))


def long_name(file: gzip.GzipFile) -> None:
    file.write(header("././@LongLink", 4096 * MIB, tarfile.GNUTYPE_LONGNAME))
    zeros(file, 600)


def long_extension(file: gzip.GzipFile) -> None:
    file.write(header("x", 4096 * MIB, tarfile.XHDTYPE))
    zeros(file, 600)


def link(file: gzip.GzipFile) -> None:
    file.write(header("redis/0000001", 0, tarfile.SYMTYPE, linkname="/etc/passwd"))


def sparse(file: gzip.GzipFile) -> None:
    about = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n30 GNU.sparse.name=database.pg\n"
    about += b"40 GNU.sparse.realsize=9000000000000000\n"
    file.write(header("x", len(about), tarfile.XHDTYPE) + about.ljust(512, b"\0"))
    file.write(header("database.pg", 512) + b"1\n8999999999999999\n1\n".ljust(512, b"\0"))


def cut_off(file: gzip.GzipFile) -> None:
    file.write(header("redis/0000001", 1 << 40) + bytes(1000))


@pytest.mark.parametrize("write", [long_name, long_extension, link, sparse, cut_off], ids=lambda one: one.__name__)
def test_what_tar_can_claim_is_refused_before_it_is_read(tmp_path: Path, write: Callable[[gzip.GzipFile], None]) -> None:
    backup = tmp_path / "changed.backup"
    with gzip.open(backup, "wb", compresslevel=1) as file:
        write(file)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BackupError, match=r"changed\.backup"):
        archive.verified(backup)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024, "KiB"


@pytest.mark.parametrize(
    "part",
    [
        b"\xdd\x0f\xff\xff\xff" + bytes(MIB),
        msgspec.msgpack.encode([[b"", "", 0, []]] * (archive.MOST_RECORDS + 1)),
        msgspec.msgpack.encode([[b"", "", 0, [b""] * (archive.MOST_VALUES + 1)]]),
        msgspec.msgpack.encode([[b"", "", 0, {"a": 1}]]),
        b"\x91" * 100_000,
        b"\x81\x01\x02",
        b"",
    ],
)
def test_a_part_has_no_more_elements_than_one_that_is_written(part: bytes) -> None:
    with pytest.raises(BackupError):
        archive.records(io.BytesIO(part), len(part))


def test_a_database_that_would_fill_the_disk_is_refused(tmp_path: Path) -> None:
    _check_room(tmp_path, 0, Path("a.backup"))
    with pytest.raises(BackupError, match="TMPDIR"):
        _check_room(tmp_path, 1 << 60, Path("a.backup"))


def test_what_is_written_is_read_also_large_and_many(tmp_path: Path) -> None:
    backup = tmp_path / "a.backup"
    values = [b"v" * 2000, 1.5] * 500
    with archive.Writer(backup) as writer:
        writer.add(archive.MANIFEST, json.dumps({"format": archive.FORMAT}).encode())
        parts = archive.Parts(writer)
        for number in range(40_000):
            parts.add(b"k%d" % number, "string", -1, [])
        parts.add(b"hash", "hash", 5, values)
        parts.flush()
    assert archive.verified(backup) == {"format": archive.FORMAT}
    with archive.members(backup) as found:
        read = [one for name, size, content in found if name.startswith("redis/") for one in archive.records(content, size)]
    assert len(read) == 40_001
    assert read[-1] == (b"hash", "hash", 5, values)
    assert hashlib.sha256(backup.read_bytes()).hexdigest()
