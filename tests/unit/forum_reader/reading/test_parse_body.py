"""The tree of a page, however its bytes are written."""

from __future__ import annotations

import codecs

import pytest
from lxml import etree
from parsel.selector import create_root_node
from scrapy.http import HtmlResponse

from forum_reader.reading.parse_body import html_of, root_of

PAGE = '<p class="größe">Grüße, 你好 &amp; <b>bold</b>'


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        (PAGE.encode(), "utf-8"),
        (codecs.BOM_UTF8 + PAGE.encode(), "utf-8"),
        (f" \n\t{PAGE}\n".encode(), "utf-8"),
        (f"<p>a\0b</p>{PAGE}".encode(), "utf-8"),
        (b"<p>not of UTF-8: \xff\xc3</p>" + PAGE.encode(), "utf-8"),
        (b"<p>cut within a character \xe4\xbd", "utf-8"),
        (PAGE.encode("gb18030", "ignore"), "gb2312"),
        (PAGE.encode("utf-16"), "utf-16"),
        (b"<p>plain</p>", "windows-1251"),
        ("<p>при</p>".encode("windows-1251"), "windows-1251"),
        (b"<!-- nothing -->", "utf-8"),
        (b"", "utf-8"),
    ],
)
def test_a_page_has_the_tree_of_its_text(body: bytes, charset: str) -> None:
    response = HtmlResponse("http://forum.example", body=body, headers={"Content-Type": f"text/html; charset={charset}"})
    expected = create_root_node(response.text.replace("\x00", ""), etree.HTMLParser)
    assert etree.tostring(html_of(response)) == etree.tostring(expected)


def test_half_of_a_surrogate_pair_does_not_spoil_a_text() -> None:
    assert root_of("<p>a\ud83db</p>").findtext(".//p") == "a?b"
