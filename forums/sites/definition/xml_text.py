"""Texts that lxml's elements accept."""

from __future__ import annotations

import re

_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def xml_text(text: str | None) -> str | None:
    """Return `text` without the characters that XML forbids. libxml2's HTML parser keeps them, as bytes and as `&#8;`; lxml
    raises ValueError where such a text is put into another element.
    """
    return text and _REFUSED.sub("", text)
