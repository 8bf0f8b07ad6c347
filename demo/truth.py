"""Is everything in the database? Compares what is stored with what the forum knows about itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha1
from typing import Any

from sqlalchemy import select

from workers.storage import Database, comments, posts


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How one table compares with the truth."""

    table: str
    expected: int
    stored: int  # rows, whatever is in them
    missing: tuple[str, ...]  # ids
    duplicates: int  # rows beyond the first of each id
    wrong: tuple[str, ...]  # ids whose content is not the forum's
    unknown: tuple[str, ...]  # ids that the forum never had

    @property
    def complete(self) -> bool:
        return not (self.missing or self.duplicates or self.wrong or self.unknown)

    @property
    def share(self) -> float:
        """Share of what the forum has that is stored as it is there, 0 to 1."""
        return (self.expected - len(self.missing) - len(self.wrong)) / self.expected if self.expected else 1.0


def compare(database: Database, truth: Mapping[str, Any], site: str) -> tuple[Coverage, Coverage]:
    """Posts and comments of `site`, each row's content hashed anew, against the forum's `/truth`. Raises StorageError."""
    post, comment = posts.c, comments.c
    stored_posts = database.stream(
        select(post.id, post.forum_id, post.title, post.body, post.author, post.created_at).where(post.site == site)
    )
    stored_comments = database.stream(
        select(comment.id, comment.post_id, comment.parent_id, comment.author, comment.body, comment.created_at).where(
            comment.site == site
        )
    )
    return _coverage("posts", stored_posts, truth["posts"]), _coverage("comments", stored_comments, truth["comments"])


def _coverage(table: str, rows: Iterable[Any], truth: Mapping[str, str]) -> Coverage:
    found: dict[str, str] = {}
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - the last one is the number of rows
        found[row[0]] = content_hash(row)
    return Coverage(
        table=table,
        expected=len(truth),
        stored=count,
        missing=tuple(sorted(truth.keys() - found.keys())),
        duplicates=count - len(found),
        wrong=tuple(sorted(one for one in found.keys() & truth.keys() if found[one] != truth[one])),
        unknown=tuple(sorted(found.keys() - truth.keys())),
    )


def content_hash(values: Iterable[str | datetime | None]) -> str:
    """SHA-1 in hex as the forum publishes it: the fields joined by U+001F, nothing for null, times to the second with a Z."""
    return sha1("\x1f".join(_text(value) for value in values).encode(), usedforsecurity=False).hexdigest()


def _text(value: str | datetime | None) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return value or ""
