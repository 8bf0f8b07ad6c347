"""What one reader knows of the posts of another."""

from __future__ import annotations

from datetime import UTC, datetime

from forum_reader.page.records import SeenPost
from forum_reader.readers.checks import completed

AT = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


def test_a_post_whose_text_ends_elsewhere_is_known_by_its_id_and_author() -> None:
    ours = (
        SeenPost(text="No idea.\n\nSent from my pump", id="7", author="ida"),
        SeenPost(text="Me neither.\n\nSent from my pump", id="8", author="walter"),
    )
    others = (
        SeenPost(text="No idea.", id="7", author="ida", published=AT),
        SeenPost(text="Something else", id="8", author="nora", published=AT),
    )
    assert [post.published for post in completed(ours, others)] == [AT, None]
