"""Responses that the reader reads. The Protocols are the part of Scrapy's responses that it uses, so a crawl reads its own
responses as they are; `FetchedPage` is the response of pages from any other source.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, Self

from w3lib.encoding import html_body_declared_encoding, html_to_unicode, http_content_type_encoding, read_bom

if TYPE_CHECKING:
    from forum_reader.definition.page_requests import PageRequest


class Headers(Protocol):
    """Headers of a response, by names in any case."""

    def get(self, name: str, /) -> bytes | None:
        """Return the last value of a header."""

    def getlist(self, name: str, /) -> list[bytes]:
        """Return all values of a header."""

    def items(self) -> Iterable[tuple[bytes, list[bytes]]]:
        """Return the names, each with its values."""


class Response(Protocol):
    """A response of any content."""

    status: int

    @property
    def url(self) -> str:
        """Return the address, after redirects."""

    @property
    def headers(self) -> Headers:
        """Return the headers."""

    @property
    def body(self) -> bytes:
        """Return the content, decompressed."""


class TextResponse(Response, Protocol):
    """A response whose content is text."""

    @property
    def encoding(self) -> str:
        """Return the encoding of the content, as named or inferred."""

    @property
    def text(self) -> str:
        """Return the content as text."""

    def replace(self, *, encoding: str) -> Self:
        """Return a copy with this encoding."""


Get = Callable[[str], Awaitable[TextResponse]]
"""Fetches a page by its address. Raises FetchFailed."""
Fetch = Callable[["str | PageRequest"], Awaitable[TextResponse]]
"""Fetches a page by its address or request. Raises FetchFailed."""


class PageHeaders:
    """Headers of a fetched page, each with all its values."""

    def __init__(self, headers: Iterable[tuple[str, str]]) -> None:
        self._values: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            self._values.setdefault(_key(name), []).append(value.encode("latin-1", "replace"))

    def get(self, name: str, /) -> bytes | None:
        """Return the last value of a header; None where there is none."""
        return values[-1] if (values := self.getlist(name)) else None

    def getlist(self, name: str, /) -> list[bytes]:
        """Return all values of a header."""
        return self._values.get(_key(name), [])

    def items(self) -> Iterable[tuple[bytes, list[bytes]]]:
        """Return the names, each with its values."""
        return self._values.items()


class FetchedPage:
    """A page from any source; `encoding`: where it is known other than by the content and the headers."""

    def __init__(
        self, url: str, body: bytes, *, status: int = 200, headers: Iterable[tuple[str, str]] = (), encoding: str | None = None
    ) -> None:
        self.url = url
        self.body = body
        self.status = status
        self.headers = PageHeaders(headers)
        self._encoding = encoding

    @classmethod
    def of_text(cls, url: str, text: str, headers: Iterable[tuple[str, str]]) -> FetchedPage:
        """Return the page with this text, which is not decoded again."""
        page = cls(url, text.encode("utf-8", "replace"), headers=headers, encoding="utf-8")
        page.text = text
        return page

    @cached_property
    def encoding(self) -> str:
        """Return the encoding that is known, named in the page or its headers, or fits."""
        named = (self.headers.get("Content-Type") or b"").decode("latin-1")
        return (
            self._encoding
            or read_bom(self.body)[0]
            or http_content_type_encoding(named)
            or html_body_declared_encoding(self.body)
            or _fitting(self.body)
        )

    @cached_property
    def text(self) -> str:
        """Return the content as text; bytes outside of its encoding are replaced."""
        return html_to_unicode(f"charset={self.encoding}", self.body)[1]

    def replace(self, *, encoding: str) -> FetchedPage:
        """Return a copy with this encoding."""
        page = FetchedPage(self.url, self.body, status=self.status, encoding=encoding)
        page.headers = self.headers
        return page


def _fitting(body: bytes) -> str:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"  # as in browsers
    return "utf-8"


def _key(name: str) -> bytes:
    return name.title().encode("latin-1", "replace")
