"""Parses the bytes of a feed, a sitemap or another XML page to a tree of elements without namespaces. Raises UnreadablePage."""

from __future__ import annotations

import zlib
from contextlib import suppress
from gzip import GzipFile
from io import BytesIO
from typing import TYPE_CHECKING, Any

from lxml import etree

from forum_reader.errors import UnreadablePage

from .parse_body import SHOWN, check_markup, content_type, not_too_large

if TYPE_CHECKING:
    from forum_reader.page.response import Response

_GZIP = b"\x1f\x8b"
_LARGEST = 50_000_000  # bytes; a sitemap has 50 MB at most
_MARKUP = ("html", "text/html", "xhtml", "application/xhtml+xml")


def xml_of(response: Response) -> Any:
    """Return the root element of an XML page. Raises UnreadablePage for anything else."""
    body = _decompressed(response)
    check_markup(body.decode("utf-8", "replace"))
    parser = etree.XMLParser(
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )  # fmt: skip
    try:
        root = etree.fromstring(body.lstrip(b"\xef\xbb\xbf \t\r\n") or b" ", parser)
    except (etree.XMLSyntaxError, ValueError):
        root = None
    if root is None or not isinstance(root.tag, str) or _local(root.tag).lower() == "html":
        begins = " ".join(body[:SHOWN].decode("utf-8", "replace").split())
        raise UnreadablePage(f"no XML: {content_type(response)} that begins with {begins!r}")
    not_too_large(root)
    for element in root.iter(etree.Element):
        with suppress(ValueError):  # for `x:1`, which libxml2 accepts with an undeclared prefix; it keeps its name
            element.tag = _local(element.tag)
        for name in [name for name in element.keys() if name[:1] == "{"]:  # noqa: SIM118 - lxml's attributes are not a dict
            value, plain = element.attrib.pop(name), _local(name)
            if plain not in element.attrib:
                element.attrib[plain] = value
    return root


def _local(name: str) -> str:
    """Return the name in `{http://...}title`, and in `x:title` with an undeclared prefix."""
    return name.rpartition("}")[2].rpartition(":")[2]


def markup_of(element: Any) -> str:
    """Return the HTML that an element holds: escaped, in a CDATA section, as its elements, or plain text."""
    kind = element.get("type")
    if len(element):
        return "".join(etree.tostring(child, encoding="unicode", method="html") for child in element)
    text = "".join(element.itertext())
    return text if kind in (None, *_MARKUP) else _escaped(text)


def holds_markup(element: Any) -> bool:
    """Return True if Atom marks a text as HTML."""
    return element.get("type") in _MARKUP


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _decompressed(response: Response) -> bytes:
    body = response.body
    if not body.startswith(_GZIP):
        return body
    content, file = bytearray(), GzipFile(fileobj=BytesIO(body))
    try:
        while (part := file.read1(1 << 16)) and len(content) <= _LARGEST:
            content += part
    except (OSError, EOFError, zlib.error) as exc:
        if not content:  # else its end is lost
            raise UnreadablePage(f"no XML: compressed, and it cannot be decompressed: {type(exc).__name__}") from None
    if len(content) > _LARGEST:
        raise UnreadablePage(f"no XML: compressed, and it cannot be decompressed: it has more than {_LARGEST:,} bytes")
    return bytes(content)
