"""Items in parts, each written as a whole, and the places of such files: a folder, or a prefix of a bucket in S3-compatible
storage, which cannot append.

The items of the next part, and its name, are noted in Redis before it is written, and the note ends in the step in which the
items leave Redis. After a consumer that is killed between the two, the next one writes the same items under the same name, over
the old object: no item is lost, and none is in two parts.
"""

from __future__ import annotations

import io
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from redis_components.embedded import data_dir
from redis_components.errors import ConfigError
from redis_components.items.stream import ItemStream, PartNote
from redis_components.server.printable import in_words
from workers.environment.variables import S3

from .consume import Item, Sink, SinkOptions, SinkUnavailable, to_line
from .files import sync_folder

MOST_ITEMS = 5_000
FIRST_ITEMS = 500  # of the first part: how large the items are is not known yet
MOST_BYTES = 16 * 1024 * 1024
"""Most bytes of a part, which is in memory and has to be written while the consumer's lock lives."""
DEFAULT_MAX_AGE_S = 60.0
"""Longest wait of a part for more items."""


class Parts(Sink):
    """A sink that selects the items of the next part; a subclass writes it under the name `part`."""

    lock_s = 60.0

    def __init__(self, *, max_bytes: int = 0, max_age_s: float = 0.0, at_once: bool = False) -> None:
        self._most_bytes = min(max_bytes or MOST_BYTES, MOST_BYTES)
        self._within_s = max_age_s or DEFAULT_MAX_AGE_S
        self._at_once = at_once
        self._most = FIRST_ITEMS
        self._since: float | None = None  # some items wait
        self.part = ""

    def peek(self, stream: ItemStream, token: str) -> list[bytes]:
        """Return the items of the next part, noted under the lock `token`; none while it is worth waiting for more."""
        if note := stream.noted():
            payloads = stream.peek(note.count)
            if len(payloads) == note.count and _digest(payloads) == note.digest:
                self.part = note.name
                return payloads
        if not self._is_due(stream):
            return []
        payloads = self._cut(stream.peek(self._most))
        if not payloads:
            return []
        digest = _digest(payloads)
        self.part = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{digest[:16]}"
        if not stream.note(token, PartNote(name=self.part, count=len(payloads), digest=digest)):
            return []  # the lock is lost: the part is another consumer's
        self._since = None
        return payloads

    def _is_due(self, stream: ItemStream) -> bool:
        if self._at_once:
            return True
        waiting = len(stream)
        if not waiting:
            self._since = None
            return False
        self._since = self._since or time.monotonic()
        return waiting >= self._most or time.monotonic() - self._since >= self._within_s

    def _cut(self, payloads: list[bytes]) -> list[bytes]:
        """Return as many items as a part may have, at least one; the next part is sized by them."""
        size = count = 0
        for payload in payloads:
            if count and size + len(payload) > self._most_bytes:
                break
            size += len(payload) + 1
            count += 1
        if count:
            self._most = max(1, min(MOST_ITEMS, self._most_bytes * count // size))
        return payloads[:count]


def _digest(payloads: Sequence[bytes]) -> str:
    made = sha256()
    for payload in payloads:
        made.update(b"%d:%b" % (len(payload), payload))
    return made.hexdigest()


class S3Objects(Parts):
    """Puts parts as `<prefix>/<name>.jsonl` into a bucket."""

    def __init__(self, url: str, **bounds: Any) -> None:
        super().__init__(**bounds)
        self._bucket = BucketPlace(url)

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Put them, in one request; an object of that name is replaced."""
        body = b"".join(to_line(one.value) for one in items)
        self._bucket.put(f"{self.part}.jsonl", io.BytesIO(body), "application/x-ndjson")
        return {}


def opened(place: str, options: SinkOptions) -> S3Objects:
    """Open the bucket of a target."""
    return S3Objects(place, max_bytes=options.max_bytes, max_age_s=options.max_age_s, at_once=options.once)


_CHUNK = 1024 * 1024


class FolderPlace:
    """A folder of this machine, or one that machines share. What is put there is there as a whole, or not at all.

    Names are such as `brands/brands-20261129T030000/books.jsonl`. Methods raise SinkUnavailable.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, name: str, content: BinaryIO) -> None:
        """Keep a file for good, in place of one of that name."""
        path = self._root / name
        part = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                shutil.copyfileobj(content, file, _CHUNK)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            raise SinkUnavailable(f"{path} cannot be written: {error.strerror}") from error

    def lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a file; none where there is none."""
        if (self._root / name).exists():
            with (self._root / name).open("rb") as file:
                yield from file

    def names(self, folder: str) -> list[str]:
        """Return the names of all files below a folder, in their order."""
        found = (one for one in (self._root / folder).rglob("*") if one.is_file() and one.suffix != ".tmp")
        return sorted(str(one.relative_to(self._root)) for one in found)

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, without those above."""
        place = self._root / folder
        return sorted(one.name for one in place.iterdir() if one.is_dir() and not one.is_symlink()) if place.is_dir() else []

    def remove(self, folder: str) -> None:
        """Remove a folder with all that is in it."""
        shutil.rmtree(self._root / folder, ignore_errors=True)

    def point(self, name: str, to: str) -> None:
        """Have one name lead to a folder next to it."""
        link = self._root / name
        part = link.with_name(f".{link.name}.{os.getpid()}.tmp")
        try:
            part.unlink(missing_ok=True)
            part.symlink_to(to)
            part.replace(link)
        except OSError as error:
            raise SinkUnavailable(f"{link} cannot be written: {error.strerror}") from error


CONNECT_S, ANSWER_S = 5.0, 20.0
"""Together shorter than the consumer's lock lives."""
_LATER = frozenset(
    {"InternalError", "OperationAborted", "RequestTimeout", "ServiceUnavailable", "SlowDown", "RequestTimeTooSkewed"}
)


class BucketPlace:
    """A prefix of a bucket of the server that the environment names, with the methods of a FolderPlace.

    They raise SinkUnavailable where it may work later, else ConfigError.
    """

    def __init__(self, url: str) -> None:
        self._name, _, prefix = url.partition("://")[2].partition("/")
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._client = _client(S3.read())

    def put(self, name: str, content: BinaryIO, kind: str = "application/octet-stream") -> None:
        """Put an object, in place of one of that name."""
        size = content.seek(0, os.SEEK_END)
        content.seek(0)
        with self._faults(name):
            self._client.put_object(self._name, f"{self._prefix}{name}", content, size, kind, part_size=4 * MOST_BYTES)

    def lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of an object; none where there is none."""
        from minio.error import S3Error

        with self._faults(name):
            try:
                answer = self._client.get_object(self._name, f"{self._prefix}{name}")
            except S3Error as error:
                if error.code == "NoSuchKey":
                    return
                raise
            with closing(answer):
                yield from answer

    def names(self, folder: str, *, below: bool = True) -> list[str]:
        """Return the names of the objects in a folder, or only those that are directly in it, folders with `/` at the end."""
        with self._faults(folder):
            found = self._client.list_objects(self._name, f"{self._prefix}{folder}/", recursive=below)
            return sorted(one.object_name.removeprefix(self._prefix) for one in found)

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, without those above."""
        return [one.rstrip("/").rpartition("/")[2] for one in self.names(folder, below=False) if one.endswith("/")]

    def remove(self, folder: str) -> None:
        """Remove the objects in a folder."""
        for name in self.names(folder):
            with self._faults(name):
                self._client.remove_object(self._name, f"{self._prefix}{name}")

    def point(self, name: str, to: str) -> None:
        """Put the name of the folder into an object `NAME.txt`: buckets have no links."""
        put_text(self, f"{name}.txt", f"{to}\n".encode())

    @contextmanager
    def _faults(self, name: str) -> Iterator[None]:
        from minio.error import MinioException, S3Error
        from urllib3.exceptions import HTTPError

        shown = f"s3://{self._name}/{self._prefix}{name}"
        try:
            yield
        except S3Error as error:
            message = f"{error.code}: {' '.join(str(error.message).split())[:200]}"
            if error.code in _LATER or error.response.status >= 500:
                raise SinkUnavailable(f"{shown}: {message}") from None
            raise ConfigError(f"{shown}: {message}: no item was taken; correct the bucket, or TRAWL_S3_…") from None
        except ValueError:  # of the providers; a role may come
            raise SinkUnavailable(f"{shown}: no login is found: set TRAWL_S3_ACCESS_KEY and TRAWL_S3_SECRET_KEY") from None
        except (MinioException, HTTPError, OSError) as error:
            raise SinkUnavailable(f"{shown} cannot be put: {in_words(error)[:200]}") from None


def _client(settings: S3) -> Any:
    """Return the client. Raises ConfigError."""
    try:
        import urllib3
        from minio import Minio
        from minio.credentials.providers import ChainedProvider, EnvAWSProvider, IamAwsProvider, StaticProvider
    except ImportError:
        raise ConfigError("s3: needs minio: install it with pip install 'trawl-fleet[s3]'") from None
    key, secret = settings.s3_access_key, settings.s3_secret_key
    if (key is None) != (secret is None):
        raise ConfigError("TRAWL_S3_ACCESS_KEY and TRAWL_S3_SECRET_KEY: set both, or none for those of AWS's environment")
    login: Any = ChainedProvider([EnvAWSProvider(), IamAwsProvider()])
    if key and secret:
        login = StaticProvider(key.get_secret_value(), secret.get_secret_value())
    scheme, _, host = settings.s3_endpoint.partition("://")
    timeout = urllib3.Timeout(connect=CONNECT_S, read=ANSWER_S)
    try:
        return Minio(
            host.rstrip("/"),
            secure=scheme == "https",
            region=settings.s3_region or None,
            credentials=login,
            http_client=urllib3.PoolManager(timeout=timeout, retries=False),
        )
    except ValueError as error:
        raise ConfigError(
            f"TRAWL_S3_ENDPOINT={settings.s3_endpoint!r}: {error}: write https://HOST or http://HOST:PORT"
        ) from None


Place = FolderPlace | BucketPlace


def place_of(files: str) -> Place:
    """Return the place that `files` of a group names: a folder, taken from the data folder, or `s3://BUCKET/PREFIX`."""
    return BucketPlace(files) if files.startswith("s3:") else FolderPlace(data_dir() / files)


def put_text(place: Place, name: str, text: bytes) -> None:
    """Put a file with this content."""
    place.put(name, io.BytesIO(text))


def digest_of(file: BinaryIO) -> tuple[int, str]:
    """Return the size and the SHA-256 of a file, which stands at its beginning afterwards."""
    made, size = sha256(), 0
    while chunk := file.read(_CHUNK):
        made.update(chunk)
        size += len(chunk)
    file.seek(0)
    return size, made.hexdigest()
