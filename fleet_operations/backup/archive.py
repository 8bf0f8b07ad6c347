"""The file of a backup: a tar of small members, each with its SHA-256, written and read in one pass.

| member              | content                                                                    |
|---------------------|----------------------------------------------------------------------------|
| `manifest.json`     | version of the format, namespace, time, what is in it                      |
| `redis/0000001` ... | keys in MessagePack: `[[key, kind, time to live in ms or -1, values], ...]` |
| `database.sqlite`, `.pg`, `.mysql` | a copy of the database                                      |
| `SHA256SUMS`        | the sum of each member before it; a file without it was cut off            |
| `SIGNATURE`         | of the sums, where the fleet signs: needs the fleet's key                  |

No member is ever written to a path that the file names. What a file claims is believed only as far as Trawl writes it: names and
their extensions are short, members are plain files, a part has no more elements than one that is written.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import secrets
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import msgspec
import redis

from redis_components.embedded.files import FILE
from redis_components.server.signing import fault, seal, signing_is_on
from redis_components.server.untrusted_values import as_bytes, as_text
from workers.state.keys import FleetKeys

from .snapshot import AT_ONCE, KEPT_MS, BackupError, KeyNames, in_lots, write

SUMS, SIGNATURE = "SHA256SUMS", "SIGNATURE"
PURPOSE = "backup"
MANIFEST = "manifest.json"
FORMAT = 1
PART_BYTES = 1 << 20
MOST_PART_BYTES = 1 << 30  # one element of Redis has at most 512 MiB
MOST_SUMS_BYTES = 1 << 26
MOST_SIGNATURE_BYTES = 1 << 10
MOST_MEMBERS = 1 << 20
"""A tebibyte of keys."""
MOST_HEADER_BYTES = 1 << 16
"""Of what stands before a member about its name or size: Trawl writes a few."""
MOST_RECORDS = PART_BYTES // 32
"""In a part, twice what is written: a gigabyte of empty ones would be forty in memory."""
MOST_VALUES = 10_000
"""In a portion."""
_READ = 1 << 20


class Writer:
    """Writes a backup next to `path`, and puts it there when the block ends without an error. Raises OSError, BackupError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.unfinished")
        self._sums: list[str] = []

    def __enter__(self) -> Self:
        # In a folder of several users another user may have made a file of that name, and would own it.
        handle = os.open(self._unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE)
        self._file = os.fdopen(handle, "wb")
        self._packed = gzip.GzipFile(filename="", fileobj=self._file, mode="wb", compresslevel=1)
        self._tar = tarfile.open(fileobj=self._packed, mode="w|")
        return self

    def add(self, name: str, content: bytes) -> None:
        """Add one member."""
        self._add(name, len(content), io.BytesIO(content), hashlib.sha256(content).hexdigest())

    def add_file(self, name: str, file: Path) -> None:
        """Add one member from a file."""
        with file.open("rb") as content:
            total = hashlib.file_digest(content, "sha256").hexdigest()
            content.seek(0)
            self._add(name, file.stat().st_size, content, total)

    def _add(self, name: str, size: int, content: IO[bytes], total: str) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = size, FILE
        self._tar.addfile(info, content)
        self._sums.append(f"{total}  {name}\n")

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                sums = "".join(self._sums).encode()
                self.add(SUMS, sums)
                if signing_is_on():
                    self.add(SIGNATURE, seal(PURPOSE, sums).encode())
                self._tar.close()
                self._packed.close()
                self._file.flush()
                os.fsync(self._file.fileno())
                self._unfinished.replace(self.path)
        finally:
            self._packed.close()
            self._file.close()
            self._unfinished.unlink(missing_ok=True)


class Parts:
    """Gathers portions of keys into members of about a mebibyte."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._records: list[Any] = []
        self._size = self._number = 0

    def add(self, key: bytes, kind: str, left_ms: int, values: list[Any]) -> None:
        """Add one portion of one key."""
        self._records.append((key, kind, left_ms, values))
        self._size += 64 + sum(len(value) if isinstance(value, bytes) else 9 for value in values)
        if self._size >= PART_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the gathered portions."""
        if self._records:
            self._number += 1
            self._writer.add(f"redis/{self._number:07}", msgspec.msgpack.encode(self._records))
        self._records, self._size = [], 0


@contextmanager
def members(path: Path) -> Iterator[Iterator[tuple[str, int, IO[bytes]]]]:
    """Name, size and content of each member, in their order; a content can be read until the next one is asked for.

    Raises BackupError for another or a damaged file.
    """
    try:
        with tarfile.open(path, mode="r|gz", tarinfo=_Header) as tar:
            yield _members(tar, path)
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise BackupError(f"{path}: {error.strerror}") from error
        raise BackupError(f"{path} is not a backup of Trawl, or is damaged: {error}") from error


def _members(tar: tarfile.TarFile, path: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    for number, info in enumerate(tar):
        # A sparse file is zeros without end that cost nothing to write.
        content = tar.extractfile(info) if info.isreg() and not info.issparse() else None
        if content is None or number >= MOST_MEMBERS:
            raise BackupError(f"{path}: {info.name[:100]!r} is not a file of a backup: this is not a backup of Trawl")
        yield info.name, info.size, content
        tar.members = []  # type: ignore[attr-defined]  # tarfile keeps the header of each


class _Header(tarfile.TarInfo):
    """A member's header as it is read; one that would read megabytes about a name is refused."""

    def _proc_member(self, tar: tarfile.TarFile) -> Any:
        if self.type not in tarfile.REGULAR_TYPES and self.size > MOST_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        return super()._proc_member(tar)  # type: ignore[misc]  # of every Python since 3.0


def records(content: IO[bytes], size: int) -> list[tuple[bytes, str, int, list[Any]]]:
    """Return the portions in one member. Raises BackupError."""
    if size > MOST_PART_BYTES:
        raise BackupError(f"a part of {size:,} bytes is larger than Redis can have")
    try:
        raw = content.read()
        _check_length(raw, MOST_RECORDS)
        found = msgspec.msgpack.decode(raw, type=list[tuple[bytes, str, int, msgspec.Raw]])
        return [(key, kind, left_ms, _values(values)) for key, kind, left_ms, values in found]
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BackupError(f"a part cannot be read: {error}") from error


def _values(raw: msgspec.Raw) -> list[Any]:
    _check_length(bytes(memoryview(raw)[:5]), MOST_VALUES)
    return msgspec.msgpack.decode(raw, type=list[bytes | float])


def _check_length(raw: bytes, most: int) -> None:
    """Raise BackupError for an array in MessagePack of more elements, by the count in its head."""
    head = raw[:1]
    width = {b"\xdc": 2, b"\xdd": 4}.get(head, 0)
    length = int.from_bytes(raw[1 : 1 + width], "big") if width else 0  # without: at most 15, or not an array
    if length > most:
        raise BackupError(f"a part has a list of {length:,} elements, a backup has at most {most:,}")


class _Summed:
    """A member's content, whose sum is known when it was read."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content, self.sum = content, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        part = self._content.read(size)
        self.sum.update(part)
        return part


@contextmanager
def members_again(path: Path, sums: bytes) -> Iterator[Iterator[tuple[str, int, Any]]]:
    """Yield the members of a file whose sums were verified. Raises BackupError at the end of the block where the file has
    changed. Each content has to be read.
    """
    seen: list[tuple[str, _Summed]] = []

    def each(found: Iterator[tuple[str, int, IO[bytes]]]) -> Iterator[tuple[str, int, _Summed]]:
        for name, size, content in found:
            seen.append((name, _Summed(content)))
            yield name, size, seen[-1][1]

    with members(path) as found:
        yield each(found)
    now = "".join(f"{one.sum.hexdigest()}  {name}\n" for name, one in seen if name not in (SUMS, SIGNATURE))
    if now.encode() != sums:
        raise BackupError(f"{path} was changed while it was read: nothing was restored")


def verified(path: Path, *, unsigned: bool = False) -> tuple[dict[str, Any], bytes]:
    """Read the whole file once, compare every sum, and return the manifest and the sums. Raises BackupError.

    Where the fleet signs its signature has to fit, unless `unsigned`.
    """
    sums: list[str] = []
    manifest = stored_sums = signature = b""
    with members(path) as found:
        for name, size, content in found:
            if stored_sums and (name != SIGNATURE or signature):
                raise BackupError(f"{path}: something follows its sums: it was changed")
            if size > {SUMS: MOST_SUMS_BYTES, MANIFEST: MOST_SUMS_BYTES, SIGNATURE: MOST_SIGNATURE_BYTES}.get(name, size):
                raise BackupError(f"{path}: {name} has {size:,} bytes")
            if stored_sums:
                signature = content.read()
                continue
            if name == SUMS:
                stored_sums = content.read()
                continue
            total = hashlib.sha256()
            while part := content.read(_READ):
                total.update(part)
                manifest += part if name == MANIFEST else b""
            sums.append(f"{total.hexdigest()}  {name}\n")
    if not stored_sums:
        raise BackupError(f"{path} was cut off: it has no sums")
    if stored_sums != "".join(sums).encode():
        raise BackupError(f"{path} is damaged: a sum differs")
    if not unsigned and signing_is_on() and (wrong := fault(signature.decode("latin-1") or None, PURPOSE, stored_sums)):
        raise BackupError(f"{path} {wrong}: if only trusted users could write the file, restore it with --unsigned")
    try:
        known: dict[str, Any] = msgspec.json.decode(manifest, type=dict)
    except msgspec.MsgspecError as error:
        raise BackupError(f"{path}: its manifest cannot be read: {error}") from error
    if known.get("format") != FORMAT:
        raise BackupError(f"{path} has format {known.get('format')!r:.40}, this Trawl reads {FORMAT}: use the Trawl that made it")
    return known, stored_sums


LONGEST_MS = 100 * 366 * 86_400_000
"""A key's time to live: no backup has a longer one, and with some Redis would refuse the last step."""


class Staging:
    """Loads portions; `swap` makes them the fleet's. Nothing of the fleet is changed before, and `discard` leaves nothing.

    Methods raise `redis.RedisError`.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._word = secrets.token_hex(6)
        self._keys: dict[bytes, int] = {}  # -> time to live
        self._copies: dict[bytes, str] = {}

    def load(self, records: list[tuple[bytes, str, int, list[Any]]]) -> None:
        """Add portions. Raises BackupError for what no backup has."""
        for some in in_lots(records, AT_ONCE):
            with self._client.pipeline(transaction=False) as pipe:
                for key, kind, left_ms, values in some:
                    if not -1 <= left_ms <= LONGEST_MS:
                        raise BackupError(f"key {key!r:.100} cannot be restored: it would live for {left_ms} ms")
                    self._keys.setdefault(key, left_ms)
                    copy = self._copy(key)
                    try:
                        write(pipe, copy, kind, values)
                    except (ValueError, redis.DataError) as error:
                        raise BackupError(f"key {key!r:.100} cannot be restored: {error}") from error
                    pipe.pexpire(copy, KEPT_MS)
                pipe.execute()

    @property
    def keys(self) -> int:
        """Return the number of loaded keys."""
        return len(self._keys)

    def foreign(self, names: KeyNames) -> list[bytes]:
        """Return the loaded keys that are not the fleet's."""
        return [key for key in self._keys if not names.owns(key) or names.is_of_living_processes(key)]

    def hash_of(self, key: str) -> dict[bytes, bytes]:
        """Return the fields of a loaded hash."""
        if key.encode() not in self._copies:
            return {}
        fields = self._client.hgetall(self._copy(key.encode()))  # of the fleet: as many as services
        return {as_bytes(name): as_bytes(value) for name, value in fields.items()}

    def swap(self, names: KeyNames) -> None:
        """Replace the fleet's keys by those that were loaded, in one transaction; locks of living processes stay.

        Fencing tokens never go back. Raises BackupError when a loaded key is gone.
        """
        self._raise_fences()
        old = [key for some in in_lots(names.found(self._client), AT_ONCE) for key in self._without_locks(some)]
        order = list(self._keys)
        with self._client.pipeline(transaction=True) as pipe:
            for some in in_lots(old, AT_ONCE):
                pipe.unlink(*some)
            for key in order:
                pipe.rename(self._copy(key), key)
                if self._keys[key] >= 0:
                    pipe.pexpire(key, self._keys[key])
                else:
                    pipe.persist(key)
            replies = pipe.execute(raise_on_error=False)
        if any(isinstance(one, redis.RedisError) for one in replies):
            raise BackupError("a key that was loaded is gone again: does Redis evict keys? Restore once more")

    def discard(self) -> None:
        """Remove loaded keys that were not swapped."""
        for some in in_lots(self._copies.values(), AT_ONCE):
            self._client.unlink(*some)

    def renew(self) -> None:
        """Keep the loaded keys for another hour. Raises BackupError when one of them is gone."""
        for some in in_lots(self._copies.values(), AT_ONCE):
            with self._client.pipeline(transaction=False) as pipe:
                for copy in some:
                    pipe.pexpire(copy, KEPT_MS)
                if not all(pipe.execute()):
                    raise BackupError("a key that was loaded is gone again: does Redis evict keys?")

    def _raise_fences(self) -> None:
        fences = FleetKeys().fences().encode()
        for name, token in self._client.hgetall(fences.decode()).items():  # slots: as many as crawlers
            if fences not in self._keys:
                self._keys[fences] = -1
            stored = self._client.hget(self._copy(fences), name)
            if _number(stored) < _number(token):
                self._client.hset(self._copy(fences), name, token)

    def _without_locks(self, keys: list[bytes]) -> list[bytes]:
        with self._client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.pttl(key)
                pipe.type(key)
            replies = pipe.execute()
        return [
            key
            for key, left, kind in zip(keys, replies[::2], replies[1::2], strict=True)
            if left < 0 or as_text(kind) != "string"
        ]

    def _copy(self, key: bytes) -> str:
        return self._copies.setdefault(key, FleetKeys().backup_copy(self._word, len(self._copies)))


def _number(raw: bytes | str | None) -> int:
    try:
        return int(raw or 0)
    except ValueError:
        return 0
