"""Encodings of pages, limited to those of the web: Python has others, some of which take time quadratic in the text.

`punycode` takes seconds for a page of 200 KB, `idna` and `zlib` are errors. As in browsers, a name that is not the web's is
ignored.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, TypeVar, cast

from .response import is_text

if TYPE_CHECKING:
    from .response import Response

AnyResponse = TypeVar("AnyResponse", bound="Response")

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

_BEGINNING = 4096  # bytes that Scrapy searches for the encoding
_NAMED = re.compile(rb"charset|encoding", re.IGNORECASE)


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
