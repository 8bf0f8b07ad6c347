"""What counts as the text of a post or comment: an edit is a change of it, and nothing else is.

The title and the plain text. Not the author's name, which changes on all of somebody's comments at once, and not the HTML, in
which boards write ever new ids, signatures of links and "2 hours ago".
"""

from __future__ import annotations

from hashlib import sha256

NO_TEXT = ""
"""Instead of a hash where only a removed state was ever seen."""


def content_hash(title: str | None, body: str) -> str:
    """The first 128 bits of SHA-256 over title (if there is one), a separator and text, as 32 hexadecimal digits."""
    return sha256(f"{title}\x1f{body}".encode() if title is not None else body.encode()).hexdigest()[:32]
