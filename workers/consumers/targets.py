"""Parses the target of `trawl consume`: `jsonl:PATH`, `parquet:PATH`, a URL of SQLAlchemy's, `http://…`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from redis_components.errors import ConfigError, did_you_mean

_DATABASES = ("sqlite", "postgresql", "mysql", "mariadb", "oracle", "mssql")
_DATABASE = re.compile(rf"({'|'.join(_DATABASES)})(\+\w+)?://", re.ASCII)
_BUCKET = re.compile(r"//[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^\s?#@\\]{0,500})?", re.ASCII)
FORMS = (
    "jsonl:PATH, csv:PATH, parquet:PATH, s3://BUCKET/PREFIX, s3+gzip://BUCKET/PREFIX, http://HOST/PATH, https://HOST/PATH, or a"
    " database such as sqlite:///PATH"
)


class TargetKind(StrEnum):
    """Kinds of targets."""

    JSONL = "jsonl"  # JSON Lines, in files that are rotated
    CSV = "csv"  # comma-separated values, in files that are rotated
    PARQUET = "parquet"  # Parquet files, of a journal that is rotated
    DATABASE = "database"  # a table of any database that SQLAlchemy knows
    S3 = "s3"  # objects of JSON Lines in S3-compatible storage
    HTTP = "http"  # POST of JSON Lines


@dataclass(frozen=True, kw_only=True)
class Target:
    """Destination of items."""

    kind: TargetKind
    place: str
    """A path for files, a URL for the others. It may hold a password."""


def is_target(text: str) -> bool:
    """Return True if `parse_target` accepts the text."""
    try:
        parse_target(text)
    except ConfigError:
        return False
    return True


def parse_target(text: str) -> Target:
    """Parse a target. Raises ConfigError, which shows nothing behind a URL's scheme: it may hold a password."""
    scheme, colon, rest = text.partition(":")
    if scheme in (TargetKind.JSONL, TargetKind.CSV, TargetKind.PARQUET) and rest.strip():
        return Target(kind=TargetKind(scheme), place=rest)
    if scheme in ("http", "https") and re.fullmatch(r"//[^/?#\s]\S*", rest):
        return Target(kind=TargetKind.HTTP, place=text)
    if scheme in ("s3", "s3+gzip") and _BUCKET.fullmatch(rest):
        return Target(kind=TargetKind.S3, place=text)
    if _DATABASE.match(text):
        return Target(kind=TargetKind.DATABASE, place=text)
    shown = f"{scheme}:…" if colon else text
    hint = did_you_mean(scheme, ["jsonl", "csv", "parquet", "s3", "http", *_DATABASES])
    raise ConfigError(f"{shown!r:.100} is not a target: write {FORMS}{hint}")
