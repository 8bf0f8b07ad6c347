"""The start tasks of the two forum spiders, as JSON."""

from __future__ import annotations

import msgspec


class ForumTask(msgspec.Struct, forbid_unknown_fields=True):
    """Start task of `forum_list`: scan one forum."""

    site: str
    forum: str


class PostTask(msgspec.Struct, forbid_unknown_fields=True):
    """Start task of `forum_detail`: fetch one post and its comments."""

    site: str
    post: str


def encode(task: ForumTask | PostTask) -> bytes:
    """The start task as JSON."""
    return msgspec.json.encode(task)
