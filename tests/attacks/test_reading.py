"""No page costs more than its size: neither time nor output. Each of these took from 3 s to minutes, or yielded 100 times itself.

Processor time of this process is measured, with a constant that is ten times what it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree
from protego import Protego
from scrapy.http import HtmlResponse

from forum_reader.definition.selectors import compiled
from forum_reader.reading import parse_body
from forum_reader.reading.found_values import matched_part
from forum_reader.reading.read_page import read_comments, read_list
from forums.sites import Site, UnreadablePage
from forums.sites.load import load_file
from redis_components.politeness.robots_cache import readable
from tests.attacks.hostile_pages import PAGES
from tests.support.cpu_time import least_cpu_s

URL = "http://forum.example/viewtopic.php?t=1"
LEAST_S, S_PER_MB = 3.0, 3.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    file = tmp_path_factory.mktemp("sites") / "s.toml"
    file.write_text('profile = "phpbb"\nbase_url = "http://forum.example"\nforums = ["2"]\n')
    return load_file(file)


@pytest.mark.parametrize(("make", "size"), PAGES.values(), ids=PAGES.keys())
def test_no_page_costs_more_than_its_size(site: Site, make: Callable[[int], str], size: int) -> None:
    response = HtmlResponse(URL, body=make(size), encoding="utf-8")
    read: list[str] = []

    def all_of_it() -> None:
        read.clear()
        for one in (read_comments, read_list):
            try:
                page = one(site, response, "2", 2)
            except UnreadablePage:
                continue
            for row in getattr(page, "comments", None) or getattr(page, "threads", ()):
                read.extend(value for name in row.__struct_fields__ if isinstance(value := getattr(row, name), str))

    most_s = LEAST_S + S_PER_MB * len(response.body) / 1e6
    assert least_cpu_s(all_of_it, most_s) < most_s
    assert sum(map(len, read)) <= 2 * (parse_body.MOST_TIMES * len(response.body) + parse_body.LEAST_OUTPUT)


def test_a_row_is_read_without_the_rows_within_it_whatever_the_site_file_says(site: Site) -> None:
    page = (
        '<body class="section-viewtopic"><div class="post" id="p1"><div class="content">one <b>1</b></div>'
        '<div class="post" id="p2"><div class="content">two<div class="post" id="p3"><div class="content">three</div></div> end'
        "</div></div></div>"
    )
    found = read_comments(site, HtmlResponse(URL, body=page, encoding="utf-8"), "2", 2).comments
    assert [(one.id, one.body, one.parent_id) for one in found] == [
        ("1", "one 1", None),
        ("2", "two end", None),
        ("3", "three", None),
    ]
    assert [one.body_html for one in found] == ["one <b>1</b>", "two end", "three"]


def test_what_is_around_a_row_stays_while_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        'profile = "generic"\nbase_url = "http://forum.example"\nforums = ["2"]\n[pages.comments]\nurl = "/t/{thread}"\n'
        'rows = ".row"\n[pages.comments.fields]\nid = "./@id"\nbody = ".text"\nauthor = "./ancestor::div[@data-by][1]/@data-by"\n'
    )
    page = (
        '<div data-by="ann"><div class="row" id="a"><p class="text">A</p><div data-by="bob"><div class="row" id="b">'
        '<p class="text">B</p></div></div></div></div>'
    )
    found = read_comments(load_file(file), HtmlResponse(URL, body=page, encoding="utf-8"), "2", 2).comments
    assert [(one.id, one.body, one.author) for one in found] == [("a", "A", "ann"), ("b", "B", "bob")]


@pytest.mark.parametrize("character", ["\x08", "\x1b", "\uffff", "&#8;", "&#x1f;"])
def test_a_control_character_beside_what_is_left_out_or_cut_spoils_no_page(tmp_path: Path, character: str) -> None:
    """lxml refuses to move a text with one, which its parser leaves in the page."""
    file = tmp_path / "s.toml"
    file.write_text(
        'profile = "generic"\nbase_url = "http://forum.example"\nforums = ["2"]\n[pages.comments]\nurl = "/t/{thread}"\n'
        'rows = ".row"\n[pages.comments.fields]\nid = "./@id"\nbody = { select = "./p", remove = "u" }\n'
    )
    page = (
        f'<div class="row" id="a"><p>A<u>x</u>1{character}</p><div class="row" id="b"><p>B{character}</p></div>'
        f"2{character}3</div>"
    )
    found = read_comments(load_file(file), HtmlResponse(URL, body=page, encoding="utf-8"), "2", 2).comments
    assert [(one.id, one.body[:2]) for one in found] == [("a", "A1"), ("b", found[1].body)]
    assert found[1].body.startswith("B")


def test_a_page_that_yields_many_times_itself_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        'profile = "generic"\nbase_url = "http://forum.example"\nforums = ["2"]\n[pages.comments]\nurl = "/t/{thread}"\n'
        'rows = ".row"\n[pages.comments.fields]\nid = "./@id"\nbody = "//p"\n'
    )
    page = "<p>" + "x" * 1000 + "</p>" + "".join(f'<i class="row" id="{n}"></i>' for n in range(2000))
    with pytest.raises(UnreadablePage, match="finds the same text again and again"):
        read_comments(load_file(file), HtmlResponse(URL, body=page, encoding="utf-8"), "2", 2)


def test_a_tree_that_the_parser_would_cut_short_is_refused(site: Site) -> None:
    page = '<body class="section-viewtopic">' + "<b>" * 3000 + '<div class="post" id="p1"></div>'
    with pytest.raises(UnreadablePage, match="nests deeper than 1,000 levels"):
        read_comments(site, HtmlResponse(URL, body=page, encoding="utf-8"), "2", 2)


@pytest.mark.parametrize("selector", ["//a[re:test(., '^(a|a)+$')]", "//a[re:test(., '^(a|a)+$', 'i')]"])
def test_a_regular_expression_in_xpath_is_interrupted(selector: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forum_reader.reading.parse_body.REGEX_S", 0.05)
    parse_body.begin(100)
    root = etree.HTML(f"<a>{'a' * 60}b</a>")
    with pytest.raises(UnreadablePage, match=r"regular expression \^\(a\|a\)\+\$ does not come to an end"):
        compiled("html", selector)(root)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("(re:test(//a[2], 'ZZ', 'i'))", [True]),
        ("(re:test(//a[2], 'ZZ'))", [False]),
    ],
)
def test_regular_expressions_in_xpath_find_what_lxml_found(selector: str, found: list[object]) -> None:
    root = etree.HTML("<a>x12y345</a><a>zz</a>")
    parse_body.begin(100)
    assert [getattr(one, "text", one) for one in compiled("html", selector)(root)] == found


def test_all_regular_expressions_of_a_page_share_their_time() -> None:
    budget = parse_body.begin(100)
    budget._regex_s = 0.0  # as after earlier texts
    with pytest.raises(UnreadablePage, match="does not come to an end"):
        matched_part("^(a|a)+$", "a" * 60 + "b")


def test_a_robots_txt_of_8_mb_costs_no_more_than_its_first_lines() -> None:
    rules = b"User-agent: *\nDisallow: /private\n" + b"".join(b"Disallow: /%x*z*q\n" % n for n in range(450_000))
    found: list[Protego] = []
    assert least_cpu_s(lambda: found.append(Protego.parse(readable(rules).decode())), 3) < 3
    assert not found[0].can_fetch("http://forum.example/private/1", "trawl")
    assert len(readable(rules)) <= 512 * 1024
    assert readable(rules).endswith(b"*z*q")
