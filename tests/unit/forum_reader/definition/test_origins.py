"""Which addresses are at one place, and which of them may see a site's secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from forum_reader.definition.load import read, site_of
from forum_reader.definition.page_requests import NOWHERE, elsewhere, may_have_secrets, place_of, shown
from forum_reader.definition.site import Site
from forums.sites import SiteError


def site(base: str, also: tuple[str, ...] = (), trusted: tuple[str, ...] = ()) -> Site:
    table = {"profile": "generic", "base_url": base, "forums": ["f"], "also_allowed": also, "send_headers_to": trusted}
    return site_of(
        read(Path("books.toml"), {name: list(value) if isinstance(value, tuple) else value for name, value in table.items()})
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://books.example", "HTTP://BOOKS.example:80/x?y#z"),
        ("https://books.example/forum", "https://books.example:443/elsewhere"),
        ("https://b\u00fccher.example", "https://xn--bcher-kva.example/"),
        ("http://[::1]:8080", "http://[0:0:0:0:0:0:0:1]:8080/"),
        ("http://[2001:DB8::A]/", "http://[2001:db8:0::a]/"),
        ("http://books.example", "http://user:pw@books.example/"),
        ("http://127.1:8080", "http://127.0.0.1:8080/"),
    ],
)
def test_one_place_in_two_spellings(one: str, other: str) -> None:
    assert elsewhere(site(one), other) is None
    assert may_have_secrets(site(one), other)


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://books.example", "http://books.example/"),
        ("http://books.example", "https://books.example/"),
        ("https://books.example", "http://books.example:443/"),
        ("https://books.example", "https://books.example:8443/"),
        ("https://books.example", "https://books.example./"),
        ("https://books.example", "https://www.books.example/"),
        ("https://books.example", "https://books.example@other.example/"),
        ("https://books.example", "https://books.example%2F@other.example/"),
        ("https://books.example", "https://books.example\\@other.example/"),
        ("https://books.example", "https://other.example\\@books.example/"),
        ("https://books.example", "https://other.example#@books.example/"),
        ("https://books.example", "//books.example/"),
        ("https://books.example", "https:/books.example/"),
        ("https://books.example", "https://books.example:99999/"),
        ("https://books.example", "https://books.example:443:443/"),
        ("https://books.example", "https://books.example[::1]@/"),
        ("https://books.example", "file://books.example/etc/passwd"),
        ("https://books.example", "https://b\u043eoks.example/"),
        ("http://127.0.0.1", "http://2130706433/"),
        ("http://127.0.0.1", "http://[::ffff:127.0.0.1]/"),
        ("http://[::1]", "http://127.0.0.1/"),
    ],
)
def test_another_place_sees_no_secret(base: str, url: str) -> None:
    one = site(base)
    assert not may_have_secrets(one, url)
    assert elsewhere(one, url) is not None
    assert not may_have_secrets(site(base, also=("https://cdn.example",)), "https://cdn.example/")


def test_a_place_that_is_trusted_in_the_file_and_what_a_proxy_could_read() -> None:
    one = site("http://books.example", ("https://api.example", "http://proxy.example:3128"), ("https://api.example/v2",))
    assert may_have_secrets(one, "https://api.example/anything")
    assert not may_have_secrets(one, "http://api.example/anything")
    proxy = "http://user:pw@proxy.example:3128"
    assert may_have_secrets(one, "https://api.example/", proxy), "it sees an encrypted stream"
    assert not may_have_secrets(one, "http://books.example/", proxy)
    trusting = site("http://books.example", ("http://proxy.example:3128",), ("http://proxy.example:3128",))
    assert may_have_secrets(trusting, "http://books.example/", proxy)


def test_a_file_cannot_trust_what_it_does_not_allow_nor_send_in_the_clear_what_is_encrypted() -> None:
    with pytest.raises(SiteError, match=r"send_headers_to.*is not among also_allowed.*add it there, too"):
        site("https://books.example", (), ("https://api.example",))
    with pytest.raises(SiteError, match="would get in the clear what base_url gets encrypted"):
        site("https://books.example", ("http://books.example",), ("http://books.example",))
    with pytest.raises(SiteError, match="must not hold a password"):
        site("https://books.example", ("https://a.example",), ("https://u:p@a.example",))


def test_a_place_is_shown_as_people_write_it() -> None:
    urls = ("http://books.example", "https://books.example:8443", "http://[::1]:80", "http://[::1]:81")
    assert [shown(place_of(f"{url}/x")) for url in urls] == [url.removesuffix(":80") for url in urls]
    assert place_of("http://books.example:99999") == NOWHERE
