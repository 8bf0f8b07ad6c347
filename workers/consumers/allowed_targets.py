"""Limits the places that a consumer may write to if its target comes from Redis, where other clients may write."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from redis_components.embedded import data_dir
from redis_components.errors import ConfigError

from .targets import Target, TargetKind


def check_place(target: Target) -> None:
    """Raise ConfigError for a file outside of the data folder, and for a bucket: the login to it is this machine's. Addresses are
    checked where they are connected to.
    """
    if target.kind is TargetKind.S3:
        raise ConfigError(
            f"{target.place!r:.200} is declared in Redis, and the login to it is this machine's: nothing was written; name it"
            " with --to or in services.toml, or sign what is declared (TRAWL_SIGNING_KEY_FILE)"
        )
    path = _path_of(target)
    if path is not None and not path.resolve().is_relative_to(data_dir().resolve()):
        raise ConfigError(
            f"{str(path)!r:.200} is declared in Redis and outside of the data folder {data_dir()}: nothing was written; if"
            " that is meant, name it with --to or in services.toml, or sign what is declared (TRAWL_SIGNING_KEY_FILE)"
        )


def _path_of(target: Target) -> Path | None:
    if target.kind in (TargetKind.JSONL, TargetKind.CSV, TargetKind.PARQUET):
        return Path(target.place)
    if target.kind is TargetKind.DATABASE and target.place.startswith("sqlite"):
        try:
            name = make_url(target.place).database or ""
        except (ArgumentError, ValueError):
            return None  # the consumer reports it
        # SQLite takes `file:` with options, which could be any path: as a path it is outside.
        return Path("/") / name if name.startswith("file:") else Path(name) if name not in ("", ":memory:") else None
    return None
