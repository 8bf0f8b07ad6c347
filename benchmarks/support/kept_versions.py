"""Versions of posts and comments in a database, present ones and those of `revisions`, hashed as the forum does."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_, select

from demo.compare import content_hash, stored_comments
from forums.storage import Database, comments, posts, revisions

from .sightings import Sightings

Version = tuple[str, str, str]
"""Kind (`posts` or `comments`), id, hash."""


def kept_versions(database: Database, site: str, boards: Sequence[str]) -> set[Version]:
    """All that are there. That a thread was moved is no revision: its post's texts count as kept with each of `boards`."""
    r, p, c = revisions.c, posts.c, comments.c
    now = select(p.id, p.title, p.body, p.author, p.created_at).where(p.site == site)
    before = select(p.id, r.title, r.body, r.author, p.created_at).join(
        posts, and_(r.site == p.site, r.id == p.id, r.kind == "post")
    )
    kept = {
        ("posts", piece, content_hash([piece, board, *text]))
        for query in (now, before.where(r.site == site))
        for piece, *text in database.stream(query)
        for board in boards
    }
    kept |= {("comments", piece.id, piece.hash) for piece in stored_comments(database, site)}
    of_comments = select(c.id, c.post_id, c.parent_id, r.author, r.body, c.created_at).join(
        comments, and_(r.site == c.site, r.id == c.id, r.kind == "comment")
    )
    kept |= {("comments", row[0], content_hash(row)) for row in database.stream(of_comments.where(r.site == site))}
    return kept


def forgotten(seen: Sightings, kept: set[Version]) -> list[Version]:
    """Versions that were in the database once and are nowhere now."""
    return sorted(seen.versions.keys() - kept)
