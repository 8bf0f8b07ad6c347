"""A raw page, and its record in a WARC file."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any, Self

import msgspec
from warcio.recordloader import ArcWarcRecord
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

if TYPE_CHECKING:
    from scrapy.http import Response

CONTEXT = "Trawl-Page"
"""Header of a record: Trawl's context of the page, as JSON in ASCII."""
ASKED = "Trawl-Request-URI"
"""Header of a record: the requested URL, if a redirect led elsewhere."""
KEPT_HEADERS = (b"content-type", b"content-language", b"link", b"last-modified", b"date")
"""Headers needed for decoding, paging and relative dates; no cookies."""
LEVEL = 4  # of zlib: 9 takes four times as long and saves 3 %


class RawPage(msgspec.Struct, frozen=True, kw_only=True):
    """The last response to a request, decompressed."""

    site: str
    page: dict[str, Any]  # `meta["page"]`: kind, forum, thread, number
    url: str
    request_url: str  # before redirects
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    fetched_at: str  # ISO 8601, UTC, ms: equal to that of the page's items

    @classmethod
    def of(cls, response: Response, site: str, page: Mapping[str, Any], fetched_at: str) -> Self:
        """Build the page from a Scrapy response."""
        request = response.request
        asked = request.meta.get("redirect_urls", [request.url])[0] if request is not None else response.url
        headers = tuple((name, value) for name in KEPT_HEADERS for value in response.headers.getlist(name))
        if b"date" not in dict(headers):  # makes "2 hours ago" mean the same when the page is parsed again
            at = format_datetime(datetime.fromisoformat(fetched_at).astimezone(UTC), usegmt=True)
            headers += ((b"date", at.encode()),)
        return cls(
            site=site,
            page=dict(page),
            url=response.url,
            request_url=asked,
            status=response.status,
            headers=headers,
            body=response.body,
            fetched_at=fetched_at,
        )

    @property
    def day(self) -> str:
        """`2026-11-22`."""
        return self.fetched_at[:10]

    def to_record(self) -> bytes:
        """Encode the page as a record of type `response`, compressed separately."""
        headers = [(name.decode("latin-1").title(), value.decode("latin-1")) for name, value in self.headers]
        headers.append(("Content-Length", str(len(self.body))))
        context = {"site": self.site, **self.page}
        named = {
            "WARC-Date": self.fetched_at.replace("+00:00", "Z"),
            CONTEXT: json.dumps(context),
            **({ASKED: self.request_url} if self.request_url != self.url else {}),
        }
        plain = BytesIO()
        writer = WARCWriter(plain, gzip=False, warc_version="1.1")
        record = writer.create_warc_record(
            self.url,
            "response",
            payload=BytesIO(self.body),
            length=len(self.body),
            warc_headers_dict=named,
            http_headers=StatusAndHeaders(f"{self.status} ", headers, protocol="HTTP/1.1"),
        )
        writer.write_record(record)
        return compressed(plain.getvalue())

    @classmethod
    def from_record(cls, record: ArcWarcRecord) -> Self:
        """Parse a record of `to_record`. Raises ValueError for a record that Trawl did not write, or a truncated one."""
        named, http = record.rec_headers, record.http_headers
        context, date = named.get_header(CONTEXT), named.get_header("WARC-Date")
        if not context or not date or http is None:
            raise ValueError(f"not a page that Trawl kept: it has no header {CONTEXT}")
        page = json.loads(context)
        body = record.raw_stream.read()
        if len(body) != int(http.get_header("Content-Length") or -1):
            raise ValueError("cut off")
        url = named.get_header("WARC-Target-URI")
        return cls(
            site=page.pop("site"),
            page=page,
            url=url,
            request_url=named.get_header(ASKED) or url,
            status=int(http.get_statuscode()),
            headers=tuple(
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in http.headers
                if name != "Content-Length"
            ),
            body=body,
            fetched_at=date.replace("Z", "+00:00"),
        )


def compressed(record: bytes) -> bytes:
    """Compress a record to a gzip member."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return packer.compress(record) + packer.flush()
