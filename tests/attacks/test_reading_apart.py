"""What may take longer than a reactor can wait is read in a process apart, which the kernel ends; what forums send is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree
from multidict import CIMultiDict, CIMultiDictProxy
from scrapy.http import HtmlResponse, TextResponse

from forum_reader import jail
from forum_reader.errors import NotAPage
from forum_reader.readers.page_reader import read_page
from forum_reader.reading import markup_limits, parse_body
from forum_reader.reading.page_records import Asked, CommentsPage
from forum_reader.reading.parse_body import TooMuchHere
from forum_reader.reading.xml_body import xml_of
from forums.sites import PageGone, Site, UnreadablePage, isolated, load_site
from forums.sites.http import fetch
from forums.sites.http.fetch import FetchFailed
from tests.attacks.hostile_pages import PAGES, PHPBB, TAGS, attributes, quoted_attributes, short_attributes, siblings
from tests.attacks.site_attacks import DEADLY
from tests.support import warm_start
from tests.support.cpu_time import least_cpu_s

URL = "http://forum.example/viewtopic.php?t=1"
COMMENTS = Asked(kind="comments", thread="1", number=2)
FIXTURES = Path(__file__).parents[1] / "fixtures" / "forums"
SITE = 'profile = "phpbb"\nbase_url = "http://forum.example"\nforums = ["2"]\n'


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "s.toml").write_text(SITE)
    return load_site("s")


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[isolated.Reader]:
    monkeypatch.setattr(jail, "subprocess", warm_start)
    reader = isolated.Reader()
    yield reader
    reader.close()


def page(body: str) -> HtmlResponse:
    return HtmlResponse(URL, body=body, encoding="utf-8", headers={"Content-Type": "text/html; charset=utf-8"})


@pytest.mark.parametrize(("make", "size"), TAGS.values(), ids=TAGS.keys())
def test_tags_that_take_the_parser_long_are_not_parsed_here(site: Site, make: Callable[[int], str], size: int) -> None:
    def read() -> None:
        with pytest.raises(UnreadablePage, match=r"attributes|characters"):
            isolated.here(site, page(make(size)), COMMENTS)

    assert least_cpu_s(read, 1) < 1


@pytest.mark.parametrize(
    ("make", "count"), [*product((attributes, quoted_attributes), (60_000, 250_000)), (short_attributes, 30_000)]
)
def test_a_tag_with_thousands_of_attributes_is_refused_before_any_reader_parses_it(
    site: Site, monkeypatch: pytest.MonkeyPatch, make: Callable[[int], str], count: int
) -> None:
    markup = make(count)

    def parsed(*_: object) -> None:
        pytest.fail("it was parsed")

    monkeypatch.setattr(parse_body, "parsed", parsed)
    sent = CIMultiDictProxy(CIMultiDict({"Content-Type": "text/html"}))
    refused = r"has a tag with more than 4,000 attributes"
    with pytest.raises(UnreadablePage, match=refused):  # of a crawl, apart, and `trawl sites reparse`
        isolated.reading.read(site, page(markup), COMMENTS)
    with pytest.raises(NotAPage, match=f"{URL}: {refused}".replace("?", r"\?")):  # `trawl read`
        read_page(markup, URL)
    with pytest.raises(FetchFailed, match=refused):  # `sites new`, `sites check` and probes
        fetch._response(URL, 200, sent, markup.encode())
    with pytest.raises(UnreadablePage, match=refused):
        xml_of(page(markup))


def test_what_is_no_attribute_is_not_counted_as_one() -> None:
    words = " ".join(f"a{n}" for n in range(20_000))
    for markup in (f"<script>a<b {words}</script>", f"<!-- <b {words}", f"<p title='<b {words}'>", f"<textarea><b {words}"):
        markup_limits.check_attributes(f"<p>{markup}")
    for markup in (f"<!--><b {words}>", f"<script {words}>", f"<script></script><b {words}", f"<!-- --!><b {words}>"):
        with pytest.raises(UnreadablePage):
            markup_limits.check_attributes(f"<p>{markup}")


@pytest.mark.parametrize(("make", "size"), PAGES.values(), ids=PAGES.keys())
def test_whatever_the_page_the_reactor_waits_no_longer_than_it_can(site: Site, make: Callable[[int], str], size: int) -> None:
    def read() -> None:
        for kind in ("comments", "list"):
            with suppress(UnreadablePage):
                isolated.here(site, page(make(size)), Asked(kind=kind, forum="2", thread="1", number=2))

    most_s = 2 * (parse_body.STRICT_CPU_S + 1)
    assert least_cpu_s(read, most_s) < most_s


def test_what_is_not_counted_takes_the_parser_no_longer_than_the_reactor_can_wait(site: Site) -> None:
    def read() -> None:
        with pytest.raises(UnreadablePage, match="has no"):
            isolated.here(site, page(short_attributes(3_990)), COMMENTS)

    assert least_cpu_s(read, parse_body.STRICT_CPU_S) < parse_body.STRICT_CPU_S


def test_pages_of_forums_are_read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = list(FIXTURES.rglob("*.html"))
    assert len(pages) > 20
    monkeypatch.setattr(markup_limits, "_UNSEEN", 0)
    assert [file for file in pages if markup_limits.extraordinary(file.read_text(errors="replace")) is not None] == []


def test_a_large_page_is_read_apart_as_it_would_be_here(site: Site, reader: isolated.Reader) -> None:
    body = siblings(9_000) + '<div class="post" id="p77777"><div class="content">é <b>x</b></div></div>'
    with pytest.raises(TooMuchHere), parse_body.strictly():
        isolated.here(site, page(body + "<i>" * 20_000), COMMENTS)
    found = reader.read(site, page(body), COMMENTS)
    assert isinstance(found, CommentsPage)
    assert (len(found.comments), found.comments[-1].body, found.comments[-1].body_html) == (9_001, "é x", "é <b>x</b>")
    assert found == isolated.reading.read(site, page(body), COMMENTS)


def test_what_is_wrong_with_a_page_is_told_from_there(site: Site, reader: isolated.Reader, tmp_path: Path) -> None:
    with pytest.raises(UnreadablePage, match=r"has no body\.section-viewtopic"):
        reader.read(site, page("<p>"), COMMENTS)
    with pytest.raises(UnreadablePage, match="no text"):
        reader.read(site, TextResponse(URL, body=b"\x00\x01", headers={"Content-Type": "image/png"}), COMMENTS)
    (tmp_path / "other.toml").write_text(SITE + '[pages.comments]\ngone = ".gone"\n')
    with pytest.raises(PageGone):
        reader.read(load_site("other"), page('<p class="gone">'), COMMENTS)


def test_what_takes_too_long_apart_is_ended_by_the_kernel_and_the_next_page_is_read(
    site: Site, reader: isolated.Reader, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "deadly.toml").write_text(SITE + DEADLY)
    monkeypatch.setenv("TRAWL_PARSE_TIMEOUT_S", "1")
    with pytest.raises(UnreadablePage, match=r"takes more than 1 s .* to be read in a process apart"):
        reader.read(load_site("deadly"), page(PHPBB + "<p>x</p>" * 9_000), COMMENTS)
    monkeypatch.setenv("TRAWL_PARSE_TIMEOUT_S", "60")  # also for the site file, which another process reads again
    assert len(reader.read(site, page(siblings(3)), COMMENTS).comments) == 3  # type: ignore[union-attr]


def test_time_in_which_a_process_apart_gets_no_processor_does_not_count(
    site: Site, reader: isolated.Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(isolated, "WAIT_S", 0.0)
    monkeypatch.setattr(isolated, "waited_s", lambda _: float(next(waited)))
    assert len(reader.read(site, page(siblings(3)), COMMENTS).comments) == 3  # type: ignore[union-attr]
    monkeypatch.setattr(isolated, "waited_s", lambda _: 0.0)
    with pytest.raises(UnreadablePage, match="takes more than 0 s to be read in a process apart"):
        reader.read(site, page(siblings(3)), COMMENTS)


def test_a_process_apart_ends_with_the_one_that_asks(site: Site, reader: isolated.Reader, no_process_left: None) -> None:
    reader.read(site, page(siblings(3)), COMMENTS)
    process = reader.jail.process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0


NAMES = st.text("ab<>=\"'/ \n!-", max_size=8)
PIECES = st.sampled_from(
    [
        "<a ",
        "<b\n",
        "x ",
        "y",
        "=",
        '"',
        "'",
        "/",
        ">",
        " ",
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "<textarea>",
        "</textarea>",
        "1=2 ",
    ]
)


@given(st.lists(PIECES | NAMES, max_size=60).map("".join))
@example('<script>x<a y="</script><b ' + "".join(f" q{n}" for n in range(9)) + ">")
@example("<a " + "".join(f'q{n}=">"' for n in range(9)))
def test_no_tag_has_more_attributes_than_were_counted(markup: str) -> None:
    """The count is too high, and never too low, whatever libxml2 makes of the markup."""
    with pytest.MonkeyPatch.context() as small:
        small.setattr(markup_limits, "_MOST_ATTRIBUTES", 4)
        small.setattr(markup_limits, "_SHORT", 2)
        small.setattr(markup_limits, "_UNSEEN", 0)
        small.setattr(markup_limits, "_LONG_TAG", markup_limits.re.compile(r"(<[A-Za-z](?=[^>]{2})[^ \t\n\f\r/>]*+)[^>]*"))
        ordinary = markup_limits.extraordinary(markup) is None
    root = etree.HTML(f"<p>{markup}")
    most = max(len(element.attrib) for element in root.iter(etree.Element))
    assert most <= 4 + 2 or not ordinary
