"""The encoding that a page names is one of the web's: Python knows others, some of which cost the square of what they read.

`punycode` takes seconds for a page of 200 KB, `idna` and `zlib` are errors. As in browsers, a name that is not the web's
says nothing.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from scrapy.http import TextResponse

if TYPE_CHECKING:
    from scrapy.http import Response

AnyResponse = TypeVar("AnyResponse", bound="Response")

_NAMES = (
    "utf-8 utf-16 utf-16-be utf-16-le utf-32 ascii latin-1 cp037 cp437 cp850 cp852 cp855 cp857 cp858 cp860 cp861 cp862 cp863"
    " cp864 cp865 cp866 cp869 cp874 cp932 cp949 cp950 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 iso8859-2"
    " iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9 iso8859-10 iso8859-11 iso8859-13 iso8859-14"
    " iso8859-15 iso8859-16 koi8-r koi8-u koi8-t kz1048 ptcp154 mac-roman mac-cyrillic mac-greek mac-turkish mac-latin2 tis-620"
    " viscii gbk gb2312 gb18030 hz big5 big5hkscs euc-jp shift-jis shift-jisx0213 euc-jisx0213 iso2022-jp iso2022-jp-2 euc-kr"
    " johab iso2022-kr"
)

_BEGINNING = 4096  # bytes in which Scrapy looks for it
_NAMED = re.compile(rb"charset|encoding", re.IGNORECASE)


def _known() -> frozenset[str]:
    found = set()
    for name in _NAMES.split():
        with suppress(LookupError):  # a Python without it
            found.add(codecs.lookup(name).name)
    return frozenset(found | {"utf-8-sig"})


WEB = _known()
"""Names of Python's codecs for encodings that pages have; each takes time that grows with the length."""


def in_web_encoding(response: AnyResponse) -> AnyResponse:
    """The response, or one with the same body whose text is read as if it had not named its encoding."""
    if not isinstance(response, TextResponse) or not _may_name_one(response) or _is_of_the_web(response.encoding):
        return response
    try:
        response.body.decode("utf-8")
    except UnicodeDecodeError:
        return response.replace(encoding="cp1252")
    return response.replace(encoding="utf-8")


def _may_name_one(response: Response) -> bool:
    """Only then: to ask for an encoding that is not named decodes the page, which not every reader needs."""
    begins = (response.headers.get("Content-Type") or b"") + response.body[:_BEGINNING]
    return _NAMED.search(begins) is not None


def _is_of_the_web(name: str) -> bool:
    try:
        return codecs.lookup(name).name in WEB
    except (LookupError, ValueError):
        return False
