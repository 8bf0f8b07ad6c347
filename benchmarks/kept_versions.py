"""Which versions of posts and comments a database holds: the present ones and those of `revisions`, as the forum hashes them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import and_, select

from benchmarks.sightings import Sightings
from demo.truth import content_hash, stored_comments, stored_posts
from workers.storage import Database, comments, posts, revisions

Version = tuple[str, str, str]
"""Kind (`posts` or `comments`), id, hash."""


def kept_versions(database: Database, site: str, boards: Iterable[str]) -> set[Version]:
    """All that are there. A revision does not know which board its thread was in: each of `boards` counts as kept."""
    kept = {("posts", piece.id, piece.hash) for piece in stored_posts(database, site)}
    kept |= {("comments", piece.id, piece.hash) for piece in stored_comments(database, site)}
    r, p, c = revisions.c, posts.c, comments.c
    of_posts = select(p.id, r.title, r.body, r.author, p.created_at).join(
        posts, and_(r.site == p.site, r.id == p.id, r.kind == "post")
    )
    for piece, title, body, author, created_at in database.stream(of_posts.where(r.site == site)):
        hashes = (content_hash([piece, board, title, body, author, created_at]) for board in boards)
        kept |= {("posts", piece, one) for one in hashes}
    of_comments = select(c.id, c.post_id, c.parent_id, r.author, r.body, c.created_at).join(
        comments, and_(r.site == c.site, r.id == c.id, r.kind == "comment")
    )
    kept |= {("comments", row[0], content_hash(row)) for row in database.stream(of_comments.where(r.site == site))}
    return kept


def forgotten(seen: Sightings, kept: set[Version]) -> list[Version]:
    """Versions that were in the database once and are nowhere now."""
    return sorted(seen.versions.keys() - kept)
