"""A site that sets other cookies with each answer, where a crawl keeps them (COOKIES_ENABLED): requests look at few of them."""

from __future__ import annotations

import pytest
from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from forums.sites.http.politeness import LONGEST, MOST, SiteCookies

URL = "http://127.0.0.1:8080/t/1"


@pytest.fixture
def cookies() -> SiteCookies:
    return SiteCookies.from_crawler(get_crawler(Spider, {"COOKIES_ENABLED": True}))


def answered(cookies: SiteCookies, *lines: str, site: str = "evil", url: str = URL) -> None:
    request = Request(url, meta={"site": site})
    cookies.process_response(request, Response(url, headers={"Set-Cookie": list(lines)}, request=request))


def sent(cookies: SiteCookies, site: str = "evil", url: str = URL) -> list[str]:
    request = Request(url, meta={"site": site})
    cookies.process_request(request)
    return (request.headers.get("Cookie") or b"").decode().split("; ")


def test_of_cookies_without_end_the_newest_are_kept_and_no_others_are_looked_at(cookies: SiteCookies) -> None:
    answered(cookies, "session=good", site="other", url="http://127.0.0.1:9090/")
    for look in range(100):
        answered(cookies, *(f"c{look}-{n}=v; Path=/" for n in range(50)))
    found = sent(cookies)
    assert sorted(found) == sorted(f"c{look}-{n}=v" for look in (97, 98, 99) for n in range(50))
    assert len(found) == MOST
    assert sent(cookies, "other", "http://127.0.0.1:9090/") == ["session=good"]


def test_a_cookie_that_is_too_long_is_not_kept(cookies: SiteCookies) -> None:
    answered(cookies, f"long={'x' * LONGEST}", "short=1")
    assert sent(cookies) == ["short=1"]


def test_a_cookie_that_is_set_again_is_one(cookies: SiteCookies) -> None:
    for look in range(MOST + 10):
        answered(cookies, f"session={look}")
    assert sent(cookies) == [f"session={MOST + 9}"]
