"""Parses the bytes of a page to JSON or a tree of elements, also of bytes that are neither, and limits what reading it costs:
processor time, characters of output, time in regular expressions. Raises UnreadablePage.

A hostile page costs no more than its own parsing: a page that is larger, deeper or of more parts than a page of a forum is
refused before time is spent on it, and characters that databases refuse (NUL, half of a surrogate pair) are replaced.

A page of a forum is read in some 10 ms on the reactor's thread, which is blocked meanwhile. `strict` reading, in a crawler's
reactor, raises `TooMuchHere` for a page that may take longer: it is read in a child process (`forums/sites/isolated.py`)
under a limit of the kernel. The result of an ordinary page depends on no clock.
"""

from __future__ import annotations

import codecs
import json
import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

import msgspec
from lxml import etree
from w3lib.encoding import http_content_type_encoding

from forum_reader.errors import UnreadablePage

from .markup_limits import MOST_CHARACTERS, check_attributes, extraordinary

if TYPE_CHECKING:
    from forum_reader.page.response import Response, TextResponse

AnyResponse = TypeVar("AnyResponse", bound="Response")

MOST_TIMES = 8
"""Characters of output for each byte of a page: as text and as HTML, where `&` is `&amp;`."""
LEAST_OUTPUT = 65_536
"""Characters of output of the smallest page: a header above all rows may be read for each of them."""
STRICT_CPU_S = 2.0
"""Seconds of the reactor's thread for a page."""
REGEX_S = 1.0
"""Seconds for a page in regular expressions of its site file."""
_NOTICED_S = 0.0001
_MOST_ROWS_HERE = 2_000  # a tenth of a second; pages of forums have 20 to 300
_MOST_ELEMENTS = 200_000  # a page of 100 long posts has 10,000
_DEEPEST = 1_000  # levels; pages of forums have 30, browsers cut at 512, and libxml2 at 2,048
_count = etree.XPath("count(//*)")
_is_deep = etree.XPath(f"boolean({'/*' * 64})")  # in a fifth of the time of the next
_is_too_deep = etree.XPath(f"boolean({'/*' * (_DEEPEST + 1)})")
_NUL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
_YEARS = range(1991, 2100)  # of a page that was fetched, or stored; a server's clock may be wrong
_REPLACED = "\ufffd"  # in place of bytes outside of the page's encoding
SHOWN = 60  # characters of a page that an error shows
_BEGINNING = 4096  # bytes that Scrapy searches for the encoding
_NAMED = re.compile(rb"charset|encoding", re.IGNORECASE)
_NAMES = (
    "ascii big5 big5hkscs cp037 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp437 cp850 cp852 cp855"
    " cp857 cp858 cp860 cp861 cp862 cp863 cp864 cp865 cp866 cp869 cp874 cp932 cp949 cp950 euc_jisx0213 euc_jp euc_kr gb18030"
    " gb2312 gbk hz iso2022_jp iso2022_jp_2 iso2022_kr iso8859-1 iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15"
    " iso8859-16 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9 johab koi8-r koi8-t koi8-u"
    " kz1048 mac-cyrillic mac-greek mac-latin2 mac-roman mac-turkish ptcp154 shift_jis shift_jisx0213 tis-620 utf-16"
    " utf-16-be utf-16-le utf-32 utf-8 utf-8-sig"
)
WEB = frozenset(_NAMES.split())
"""Names of Python's codecs, as `codecs.lookup(…).name`, for encodings of pages; each takes time linear in the length. A literal,
as looking each of them up loads 74 modules.
"""
_strict: ContextVar[bool] = ContextVar("trawl_strict_reading", default=False)
_budget: ContextVar[Budget | None] = ContextVar("trawl_reading_budget", default=None)


class TooMuchHere(UnreadablePage):
    """The page may take longer than a reactor can wait: it has to be read in a child process."""


class Budget:
    """Budget of one page of `size` bytes."""

    def __init__(self, size: int, *, strict: bool) -> None:
        self._most = MOST_TIMES * size + LEAST_OUTPUT
        self._size = size
        self._left = self._most
        self._regex_s = REGEX_S
        # Two clocks: the wall clock costs a tenth, and is never behind; where it shows too much, the CPU clock decides.
        self._begun_at = time.perf_counter()
        self._begun_cpu_s = time.thread_time()
        self._most_s = STRICT_CPU_S if strict else float("inf")

    def row(self, characters: int) -> None:
        """Count a row of `characters` characters. Raises TooMuchHere, and UnreadablePage where the output is many times the
        page's size.
        """
        self._left -= characters
        if self._left < 0:
            much = f"yields more than {self._most:,} characters out of {self._size:,} bytes"
            raise UnreadablePage(f"{much}: a selector finds the same text again and again")
        if time.perf_counter() - self._begun_at > self._most_s and self._spent_s() > self._most_s:
            raise TooMuchHere(f"takes more than {STRICT_CPU_S:g} s to be read")

    def _spent_s(self) -> float:
        """Return the processor time spent on the page so far."""
        return time.thread_time() - self._begun_cpu_s

    def search(self, compiled: Any, pattern: str, text: str) -> Any:
        """Return the match of a regular expression (of the package `regex`). Raises UnreadablePage where the page's time is
        over.
        """
        begun = time.perf_counter()
        try:
            return compiled.search(text, timeout=self._regex_s)
        except TimeoutError:
            raise _endless(pattern, text) from None
        finally:
            if (spent := time.perf_counter() - begun) > _NOTICED_S:
                self._spend(spent)

    def _spend(self, seconds: float) -> None:
        self._regex_s = max(self._regex_s - min(seconds, self._spent_s()), 0.001)


def _endless(pattern: str, text: str) -> UnreadablePage:
    shown = text[:SHOWN]
    return UnreadablePage(f"the regular expression {pattern} does not come to an end on {shown!r}: simplify it")


def begin(size: int) -> Budget:
    """Begin the budget of the next page."""
    budget = Budget(size, strict=_strict.get())
    _budget.set(budget)
    return budget


def current() -> Budget:
    """Return the budget of the page that is being read; outside of reading a separate one."""
    return _budget.get() or Budget(0, strict=False)


@contextmanager
def strictly() -> Iterator[None]:
    """Raise TooMuchHere from reading within, where a page may take too long for a reactor."""
    token = _strict.set(True)
    try:
        yield
    finally:
        _strict.reset(token)
        _budget.set(None)


def check_markup(markup: str) -> None:
    """Check HTML before it is parsed. Raises UnreadablePage, TooMuchHere."""
    if not _strict.get():
        check_attributes(markup)
    elif (why := extraordinary(markup)) is not None:
        if len(markup) <= MOST_CHARACTERS:  # else they are counted apart
            check_attributes(markup)
        raise TooMuchHere(why)


def check_rows(count: int) -> None:
    """Check the number of rows before they are read. Raises TooMuchHere."""
    if _strict.get() and count > _MOST_ROWS_HERE:
        raise TooMuchHere(f"has {count:,} rows")


def is_text(response: Response) -> TypeGuard[TextResponse]:
    """Return True if the content of a response is text."""
    return hasattr(type(response), "encoding")


def in_web_encoding(response: AnyResponse) -> AnyResponse:
    """Return the response, or a copy whose text is read as if the page had not named its encoding."""
    if not is_text(response) or not _may_name_one(response) or _is_of_the_web(response.encoding):
        return response
    try:
        response.body.decode("utf-8")
    except UnicodeDecodeError:
        return cast("AnyResponse", response.replace(encoding="cp1252"))
    return cast("AnyResponse", response.replace(encoding="utf-8"))


def _may_name_one(response: Response) -> bool:
    """Return True if the page may name its encoding: to look up an encoding that is not named decodes the page."""
    begins = (response.headers.get("Content-Type") or b"") + response.body[:_BEGINNING]
    return _NAMED.search(begins) is not None


def _is_of_the_web(name: str) -> bool:
    try:
        return codecs.lookup(name).name in WEB
    except (LookupError, ValueError):
        return False


def json_of(response: TextResponse) -> Any:
    """Return the value of a JSON page. Half of a surrogate pair, NaN and bytes that are not UTF-8 do not prevent it."""
    try:
        return json_text(_in_utf_8(response))
    except ValueError:
        begins = " ".join(response.text[:SHOWN].split())
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
