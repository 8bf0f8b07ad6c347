"""A changed backup: `trawl backup restore` reports it, and neither memory, disk nor time is spent on what it claims."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import resource
import secrets
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import redis

from cli.commands.backup import _check_room
from fleet_operations.backup import archive
from fleet_operations.backup.archive import Staging
from fleet_operations.backup.snapshot import BackupError

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
    zeros(file, 300)


def long_extension(file: gzip.GzipFile) -> None:
    file.write(header("x", 4096 * MIB, tarfile.XHDTYPE))
    zeros(file, 300)


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
    assert archive.verified(backup)[0] == {"format": archive.FORMAT}
    with archive.members(backup) as found:
        read = [one for name, size, content in found if name.startswith("redis/") for one in archive.records(content, size)]
    assert len(read) == 40_001
    assert read[-1] == (b"hash", "hash", 5, values)
    assert hashlib.sha256(backup.read_bytes()).hexdigest()


KEY, OTHER_KEY = "k" * 32, "o" * 32


def written(path: Path, **more: bytes) -> Path:
    """A backup of this fleet, with other members before its sums."""
    with archive.Writer(path) as writer:
        writer.add(archive.MANIFEST, json.dumps({"format": archive.FORMAT}).encode())
        for name, content in more.items():
            writer.add(name, content)
    return path


def test_where_the_fleet_signs_a_backup_that_somebody_else_made_or_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsigned = written(tmp_path / "unsigned")
    monkeypatch.setenv("TRAWL_SIGNING_KEY", OTHER_KEY)
    foreign = written(tmp_path / "foreign")
    monkeypatch.setenv("TRAWL_SIGNING_KEY", KEY)
    ours, evil = written(tmp_path / "ours"), written(tmp_path / "evil", database=b"COPY x FROM PROGRAM 'sh'")
    assert archive.verified(ours)[0] == {"format": archive.FORMAT}
    with archive.members(ours) as found:
        signature = next(content.read() for name, _, content in found if name == archive.SIGNATURE)
    stolen = written(tmp_path / "stolen", database=b"other content")
    changed = tmp_path / "changed"
    replaced_signature(stolen, changed, signature)
    for refused in (unsigned, foreign, changed):
        with pytest.raises(BackupError, match=rf"{refused.name} (is not signed|has a signature that does not fit).*--unsigned"):
            archive.verified(refused)
        assert archive.verified(refused, unsigned=True)
    monkeypatch.setenv("TRAWL_NAMESPACE", "another")
    with pytest.raises(BackupError, match="does not fit"):
        archive.verified(evil)
    monkeypatch.delenv("TRAWL_SIGNING_KEY")
    assert archive.verified(unsigned)
    assert archive.verified(ours), "where nothing is signed, nothing is asked"


def replaced_signature(source: Path, target: Path, signature: bytes) -> None:
    """The same file with this signature."""
    with tarfile.open(source, "r:gz") as old, tarfile.open(target, "w:gz") as new:
        for info in old:
            content = old.extractfile(info)
            assert content
            raw = signature if info.name == archive.SIGNATURE else content.read()
            info.size = len(raw)
            new.addfile(info, io.BytesIO(raw))


def test_nothing_follows_a_signature_and_it_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SIGNING_KEY", KEY)
    good = written(tmp_path / "good")
    for number, more in enumerate(((archive.SIGNATURE, b"x"), ("redis/0000001", b"x"))):
        spoilt = tmp_path / f"spoilt{number}"
        with tarfile.open(good, "r:gz") as old, tarfile.open(spoilt, "w:gz") as new:
            for info in old:
                new.addfile(info, old.extractfile(info))
            name, content = more
            info = tarfile.TarInfo(name)
            info.size = len(content)
            new.addfile(info, io.BytesIO(content))
        with pytest.raises(BackupError, match="something follows"):
            archive.verified(spoilt, unsigned=True)
    replaced_signature(good, tmp_path / "long", b"1" * 2000)
    with pytest.raises(BackupError, match="SIGNATURE has 2,000 bytes"):
        archive.verified(tmp_path / "long")


def test_a_backup_that_is_exchanged_after_it_was_looked_at_is_not_restored(tmp_path: Path) -> None:
    good, evil = written(tmp_path / "good", database=b"good"), written(tmp_path / "evil", database=b"evil")
    _, sums = archive.verified(good)
    with archive.members_again(good, sums) as every:
        assert [content.read()[-4:] for _, _, content in every][1] == b"good"
    evil.replace(good)
    with pytest.raises(BackupError, match="was changed while it was read"), archive.members_again(good, sums) as every:
        for _, _, content in every:
            content.read()


def test_a_file_or_link_that_somebody_put_where_a_backup_is_written_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    theirs, place = tmp_path / "theirs", tmp_path / ".a.backup.guessed.unfinished"
    theirs.write_bytes(b"theirs")
    place.symlink_to(theirs)
    with pytest.raises(FileExistsError):
        written(tmp_path / "a.backup")
    assert theirs.read_bytes() == b"theirs"
    place.unlink()
    place.touch(mode=0o666)
    with pytest.raises(FileExistsError):
        written(tmp_path / "a.backup")


@pytest.mark.parametrize("left_ms", [2**63 - 1, -2, 10**14])
def test_a_time_to_live_that_redis_would_refuse_in_the_last_step_is_refused_before(
    redis_client: redis.Redis, left_ms: int
) -> None:
    staging = Staging(redis_client)
    with pytest.raises(BackupError, match="would live for"):
        staging.load([(b"trawl:fleet:desired", "hash", left_ms, [b"a", b"1"])])
    staging.discard()
    assert redis_client.dbsize() == 0
