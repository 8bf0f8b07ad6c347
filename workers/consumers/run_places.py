"""Places of the files of runs: a folder, or a prefix of a bucket. What is put there is there as a whole, or not at all."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Protocol

from redis_components.embedded import data_dir

from .consume import SinkUnavailable
from .files import sync_folder
from .s3_objects import Bucket

_CHUNK = 1024 * 1024


class Place(Protocol):
    """A place of files with names such as `brands/brands-20261129T030000/books.jsonl`. Methods raise SinkUnavailable."""

    def put(self, name: str, content: BinaryIO) -> None:
        """Keep a file for good, in place of one of that name."""

    def lines(self, name: str) -> Iterator[bytes]:
        """Return the lines of a file; none where there is none."""

    def names(self, folder: str) -> list[str]:
        """Return the names of all files below a folder, in their order."""

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders in a folder, without those above."""

    def remove(self, folder: str) -> None:
        """Remove a folder with all that is in it."""

    def point(self, name: str, to: str) -> None:
        """Have one name lead to a folder next to it."""


def place_of(files: str) -> Place:
    """Return the place that `files` of a group names: a folder, taken from the data folder, or `s3://BUCKET/PREFIX`."""
    if files.startswith("s3:"):
        return BucketPlace(files)
    return FolderPlace(data_dir() / files)


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


class FolderPlace:
    """A folder of this machine, or one that machines share."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, name: str, content: BinaryIO) -> None:
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
        if (self._root / name).exists():
            with (self._root / name).open("rb") as file:
                yield from file

    def names(self, folder: str) -> list[str]:
        found = (one for one in (self._root / folder).rglob("*") if one.is_file() and one.suffix != ".tmp")
        return sorted(str(one.relative_to(self._root)) for one in found)

    def folders(self, folder: str) -> list[str]:
        place = self._root / folder
        return sorted(one.name for one in place.iterdir() if one.is_dir() and not one.is_symlink()) if place.is_dir() else []

    def remove(self, folder: str) -> None:
        shutil.rmtree(self._root / folder, ignore_errors=True)

    def point(self, name: str, to: str) -> None:
        link = self._root / name
        part = link.with_name(f".{link.name}.{os.getpid()}.tmp")
        try:
            part.unlink(missing_ok=True)
            part.symlink_to(to)
            part.replace(link)
        except OSError as error:
            raise SinkUnavailable(f"{link} cannot be written: {error.strerror}") from error


class BucketPlace:
    """A prefix of a bucket."""

    def __init__(self, url: str) -> None:
        self._bucket = Bucket(url.partition("://")[2])

    def put(self, name: str, content: BinaryIO) -> None:
        size = content.seek(0, os.SEEK_END)
        content.seek(0)
        self._bucket.put(name, content, size, "application/octet-stream")

    def lines(self, name: str) -> Iterator[bytes]:
        return self._bucket.read(name)

    def names(self, folder: str) -> list[str]:
        return sorted(self._bucket.names(folder))

    def folders(self, folder: str) -> list[str]:
        found = self._bucket.names(folder, below=False)
        return sorted(one.rstrip("/").rpartition("/")[2] for one in found if one.endswith("/"))

    def remove(self, folder: str) -> None:
        for name in self._bucket.names(folder):
            self._bucket.remove(name)

    def point(self, name: str, to: str) -> None:
        """Put the name of the folder into an object `NAME.txt`: buckets have no links."""
        put_text(self, f"{name}.txt", f"{to}\n".encode())
