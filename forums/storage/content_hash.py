"""Hash of the text of a post or comment: a change of the hash is an edit.

It covers the title and the plain text. The author's name is excluded, because it changes on all comments of an author at once,
and so is the HTML, in which boards write new ids, signatures of links and "2 hours ago" each time.
"""

from __future__ import annotations

from hashlib import sha256

NO_TEXT = ""
"""Stands for the hash of a row of which only a removed state was seen."""


def content_hash(title: str | None, body: str) -> str:
    """Return the first 128 bits of SHA-256 over the title (if any), a separator and the text, as 32 hexadecimal digits."""
    return sha256(f"{title}\x1f{body}".encode() if title is not None else body.encode()).hexdigest()[:32]
