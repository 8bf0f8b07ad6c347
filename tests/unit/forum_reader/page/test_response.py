"""A page of another source than a crawl is read as Scrapy's response with the same bytes and headers is."""

from __future__ import annotations

import pytest
from scrapy.http import HtmlResponse

from forum_reader.page.response import FetchedPage
from forum_reader.reading.parse_body import in_web_encoding, is_text

URL = "http://forum.example/t/1"
META = '<meta charset="{}"><p>Größe – 10 €</p>'


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<p>Größe</p>".encode(), "text/html"),
        ("<p>форум</p>".encode("cp1251"), "text/html; charset=windows-1251"),
        (META.format("windows-1252").encode("cp1252"), "text/html"),
        (META.format("punycode").encode(), "text/html"),
        (META.format("no-such").encode(), "text/html"),
        ("\ufeff<p>Größe</p>".encode(), "text/html; charset=latin-1"),
        ("\ufeff<p>Größe</p>".encode("utf-16-le"), "text/html"),
        (b"<p>\xff\xfe broken</p>", "text/html; charset=utf-8"),
        (b"", ""),
    ],
)
def test_text_is_that_of_scrapy(body: bytes, content_type: str) -> None:
    ours = in_web_encoding(FetchedPage(URL, body, headers=[("content-type", content_type)]))
    theirs = in_web_encoding(HtmlResponse(URL, body=body, headers={"Content-Type": content_type}))
    assert ours.text == theirs.text


def test_bytes_that_name_no_encoding_are_read_as_browsers_do() -> None:
    assert FetchedPage(URL, "Größe – 10 €".encode("cp1252")).text == "Größe – 10 €"


def test_headers_are_found_in_any_case_with_all_their_values() -> None:
    page = FetchedPage(URL, b"", headers=[("Set-Cookie", "a=1"), ("set-cookie", "b=2")])
    assert is_text(page)
    assert page.headers.get("SET-COOKIE") == b"b=2"
    assert page.headers.getlist("Set-cookie") == [b"a=1", b"b=2"]
    assert page.headers.get("Date") is None
    assert page.replace(encoding="cp1251").headers.getlist("set-cookie") == [b"a=1", b"b=2"]
