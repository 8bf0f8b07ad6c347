"""Parses the bytes of a page to JSON or a tree of elements, also of bytes that are neither. Raises UnreadablePage.

A hostile page costs no more than its own parsing: a page that is larger, deeper or of more parts than a page of a forum is
refused before time is spent on it, and characters that databases refuse (NUL, half of a surrogate pair) are replaced.
"""

from __future__ import annotations

import codecs
import json
import math
import re
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from gzip import GzipFile
from io import BytesIO
from typing import TYPE_CHECKING, Any

import msgspec
from lxml import etree
from w3lib.encoding import http_content_type_encoding

from forum_reader.errors import UnreadablePage

from .reading_budget import check_attributes, check_markup

if TYPE_CHECKING:
    from forum_reader.page.response import Response, TextResponse


_MOST_ELEMENTS = 200_000  # a page of 100 long posts has 10,000
_DEEPEST = 1_000  # levels; pages of forums have 30, browsers cut at 512, and libxml2 at 2,048
_count = etree.XPath("count(//*)")
_is_deep = etree.XPath(f"boolean({'/*' * 64})")  # in a fifth of the time of the next
_is_too_deep = etree.XPath(f"boolean({'/*' * (_DEEPEST + 1)})")
_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
_YEARS = range(1991, 2100)  # of a page that was fetched, or stored; a server's clock may be wrong
_REPLACED = "\ufffd"  # in place of bytes outside of the page's encoding
_SHOWN = 60  # characters of a page that an error shows


def json_of(response: TextResponse) -> Any:
    """Return the value of a JSON page. Half of a surrogate pair, NaN and bytes that are not UTF-8 do not prevent it."""
    try:
        return json_text(_in_utf_8(response))
    except ValueError:
        begins = " ".join(response.text[:_SHOWN].split())
        raise UnreadablePage(f"no JSON: {content_type(response)} that begins with {begins!r}") from None


def _in_utf_8(response: TextResponse) -> bytes:
    """Return the bytes of a JSON page in UTF-8; a few old sites name another encoding."""
    charset = http_content_type_encoding((response.headers.get("Content-Type") or b"").decode("latin-1"))
    if charset in (None, "utf-8") or response.body.isascii():
        return response.body
    try:
        response.body.decode()
    except UnicodeDecodeError:
        return response.body.decode(charset, "replace").encode()
    return response.body


def json_text(text: str | bytes) -> Any:
    """Return the value of a JSON text, repaired like a page. Raises ValueError."""
    body = text.encode("utf-8", "replace") if isinstance(text, str) else text
    if rb"\u0000" in body:
        body = _NUL.sub(rb"\1", body)
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError):
        pass
    try:
        found = json.loads(body.decode("utf-8", "replace"), parse_float=_finite, parse_constant=_nothing)
        return msgspec.json.decode(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def html_of(response: TextResponse) -> Any:
    """Return the root element of an HTML page."""
    if "json" in content_type(response):
        raise UnreadablePage(f"no HTML: {content_type(response)}")
    root = tree_of(response.text, _as_sent(response, response.text))
    if len(response.body) > 3 * _DEEPEST and _too_deep(root):
        raise UnreadablePage(f"nests deeper than {_DEEPEST:,} levels: no page of a forum does")
    return root


def _as_sent(response: TextResponse, text: str) -> bytes | None:
    """Return the bytes of the page, where they are its text in UTF-8: the parser takes no other encoding."""
    is_exact = response.encoding == "utf-8" and _REPLACED not in text
    return response.body.removeprefix(codecs.BOM_UTF8) if is_exact else None


def tree_of(markup: str, body: bytes | None = None) -> Any:
    """Return the root element of a page, or of a text in HTML; `body`: the same in UTF-8, if available. Raises UnreadablePage,
    and TooMuchHere in strict reading.
    """
    check_markup(markup)
    root = parsed(markup if body is None else body)
    # A tag makes at most three elements: a lone <td> makes its row and body, too. A tag has three characters.
    is_long = len(markup) > _MOST_ELEMENTS and markup.count("<") > _MOST_ELEMENTS // 4
    if is_long and (elements := int(_count(root))) > _MOST_ELEMENTS:
        raise UnreadablePage(f"has {elements:,} elements: no page of a forum has more than {_MOST_ELEMENTS:,}")
    return root


def root_of(markup: str) -> Any:
    """Return the root element of any HTML, also of an empty text. Raises UnreadablePage."""
    check_attributes(markup)
    return parsed(markup)


def markup_root(response: TextResponse) -> Any:
    """Return the root element of a page, read as HTML; None for JSON. Raises UnreadablePage."""
    return None if "json" in content_type(response) else root_of(response.text)


def parsed(markup: str | bytes) -> Any:
    """Return the root element of HTML whose tags were checked; bytes are in UTF-8. Like parsel's `create_root_node`, without a
    copy of the page for each of its steps.
    """
    body = (markup if isinstance(markup, bytes) else markup.encode("utf-8", "replace")).strip()
    body = body.replace(b"\0", b"") if b"\0" in body else body
    parser = etree.HTMLParser(recover=True, encoding="utf-8", huge_tree=True)
    root = etree.fromstring(body or b"<html/>", parser=parser)
    return etree.fromstring(b"<html/>", parser=parser) if root is None else root


FRAME_TAGS = ("body", "title", "base", "link", "h1", "h2", "h3")
"""Elements that name a page and the pages next to it."""


def by_tag(root: Any, *tags: str) -> dict[str, list[Any]]:
    """Return the elements of these tags, in one search of the tree."""
    found: dict[str, list[Any]] = {tag: [] for tag in tags}
    for element in root.iter(*found):
        found[element.tag].append(element)
    return found


def not_too_large(root: Any) -> None:
    """Raise UnreadablePage for a tree of more or deeper elements than any page of a forum has."""
    if (elements := int(_count(root))) > _MOST_ELEMENTS:
        raise UnreadablePage(f"has {elements:,} elements: no page of a forum has more than {_MOST_ELEMENTS:,}")
    if _too_deep(root):
        raise UnreadablePage(f"nests deeper than {_DEEPEST:,} levels: no page of a forum does")


def _too_deep(root: Any) -> bool:
    return bool(_is_deep(root) and _is_too_deep(root))


def content_type(response: Response) -> str:
    """Return the content type of the response."""
    return (response.headers.get("Content-Type") or b"no content type").decode("latin-1").split(";")[0].strip()


def read_at(response: Response) -> datetime:
    """Return the time at which the page was made: relative dates refer to it, also when the page is read again later."""
    try:
        made = parsedate_to_datetime((response.headers.get("Date") or b"").decode("latin-1"))
        made = (made if made.tzinfo else made.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):  # `31 Dec 9999 -1200` is in no calendar
        return datetime.now(UTC)
    return made if made.year in _YEARS else datetime.now(UTC)


def _finite(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


def _nothing(_: str) -> None:
    """Return None for NaN and Infinity, which are not JSON."""


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
        begins = " ".join(body[:_SHOWN].decode("utf-8", "replace").split())
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
