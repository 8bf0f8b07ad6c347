"""What a page may say of its encoding, and what is read then."""

from __future__ import annotations

import codecs
from encodings.aliases import aliases

import pytest
from scrapy.http import HtmlResponse, Response

from forum_reader.reading.parse_body import WEB, in_web_encoding
from tests.support.cpu_time import least_cpu_s

ODD = ("punycode", "idna", "undefined", "unicode_escape", "raw_unicode_escape", "utf_7", "rot_13", "zlib_codec", "mbcs")


def page(body: bytes, charset: str | None = None) -> HtmlResponse:
    more = f"; charset={charset}" if charset else ""
    return HtmlResponse("http://forum.example/", headers={"Content-Type": f"text/html{more}"}, body=body)


def text(response: Response) -> str:
    return str(in_web_encoding(response).text)


@pytest.mark.parametrize("charset", [*ODD, *sorted(set(aliases.values()))])
def test_whatever_python_can_decode_a_page_is_read_in_time_that_grows_with_it(charset: str) -> None:
    body = b"<meta charset=" + charset.encode() + b">-" + b"ya" * 150_000
    found: list[str] = []
    cost_s = least_cpu_s(lambda: found.extend([text(page(body, charset)), text(page(body))]), 2)
    assert all(found)
    assert cost_s < 2  # punycode took 16 s for 200 KB, six times as much as for 100 KB


@pytest.mark.parametrize("charset", ODD)
def test_a_name_that_is_not_the_webs_says_nothing(charset: str) -> None:
    assert text(page("Grüße".encode(), charset)) == "Grüße"
    assert text(page("Grüße".encode("cp1252"), charset)) == "Grüße"


@pytest.mark.parametrize(
    ("charset", "said"),
    [("shift_jis", "日本"), ("windows-1251", "Привет"), ("GBK", "中文"), ("euc-kr", "한국"), ("x-sjis", "日本")],
)
def test_encodings_of_the_web_are_kept(charset: str, said: str) -> None:
    encoded = said.encode("shift_jis" if charset == "x-sjis" else charset)
    for response in (page(encoded, charset), page(f"<meta charset={charset}>".encode() + encoded)):
        assert in_web_encoding(response) is response
        assert said in text(response)


def test_the_names_are_those_that_python_gives_its_codecs() -> None:
    assert {codecs.lookup(name).name for name in WEB} == WEB


def test_what_names_nothing_is_not_decoded() -> None:
    response = page(b"<p>x")
    assert in_web_encoding(response) is response
    assert response._cached_ubody is None
    assert not WEB & {"punycode", "idna", "utf-7", "unicode-escape", "undefined"}
