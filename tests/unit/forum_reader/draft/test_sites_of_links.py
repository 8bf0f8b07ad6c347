"""Lists of links to other sites, with a link to the comments of each; pages and headings with numbers in their texts."""

from __future__ import annotations

import re

import pytest
from parsel import Selector
from scrapy.http import HtmlResponse

from forum_reader.draft.address_shape import shape_of
from forum_reader.draft.link_groups import link_groups
from forum_reader.draft.list_wrapper import learn_list
from forum_reader.draft.page_sample import opened
from forum_reader.draft.paging_links import next_selector

URL = "https://links.example/"
TITLES = ["Pumps in winter", "A new seal", "The quiet motor", "Metal or plastic"]


def test_titles_of_links_to_elsewhere_are_those_of_their_comments() -> None:
    rows = "".join(
        f"<li class=story><a class=u-url href=https://other.example/{n}>{title}</a> <a href=/~ida{n}>ida{n}</a>"
        f"<span class=label><a href=/s/a{n}f>{f'{n} comments' if n else 'no comments'}</a></span></li>"
        for n, title in enumerate(TITLES)
    )
    page = opened(HtmlResponse(URL, body=f"<title>Links</title><ol>{rows}</ol>".encode(), encoding="utf-8"))
    assert page is not None
    group = link_groups(page)[0]
    assert group.titles == TITLES
    assert group.urls == [f"{URL}s/a{n}f" for n in range(4)]
    shape = shape_of(group.urls)
    assert shape is not None
    learned = learn_list(group, shape, [])
    assert learned is not None
    fields = learned["fields"]
    assert (fields["title"], fields["url"]) == ("a.u-url", "span.label > a")


def test_rows_of_alternating_classes_are_of_one_group() -> None:
    rows = "".join(
        f"<tr class=color{n % 3}-{('odd', 'even')[n % 2]}><td><a href=/ticket/{n}>{title}</a></td></tr>"
        for n, title in enumerate(TITLES)
    )
    page = opened(HtmlResponse(URL, body=f"<table>{rows}</table>".encode(), encoding="utf-8"))
    assert page is not None
    assert [group.titles for group in link_groups(page)] == [TITLES]


@pytest.mark.parametrize("address", ["/board/area/{name}/", "/area/{name}/{size}", "/area/{size}-{name}"])
def test_a_board_or_a_thread_may_be_named_help(address: str) -> None:
    names = ("news", "help-wanted", "off-topic")
    links = [address.format(name=name, size=len(name)) for name in names]
    boards = "".join(f"<tr><td><a href={link}>{name}</a></td></tr>" for link, name in zip(links, names, strict=True))
    menu = "".join(f"<li><a href=/{name}/>{name}</a></li>" for name in ("start", "help", "wares"))
    page = opened(HtmlResponse(URL, body=f"<ul>{menu}</ul><table>{boards}</table>".encode(), encoding="utf-8"))
    assert page is not None
    assert [group.titles for group in link_groups(page)] == [["news", "help-wanted", "off-topic"], ["start", "wares"]]


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("/2026/11/{}/", ("new-seal", "{url}")),
        ("/blog/2026/11/{}", ("new-seal", "{url}")),
        ("/2026/{}-5", ("new-seal-5", "{url}")),
        ("/area/2026/{}", ("new-seal", "{url}")),
        ("/area/26/{}", ("", "/area/26/{id}")),
        ("/area/area/{}/", ("new-seal", "/area/area/{id}/")),
        ("/my-area/area/{}/", ("new-seal", "/my-area/area/{id}/")),
    ],
)
def test_the_year_of_an_address_is_another_one_in_other_years(form: str, wanted: tuple[str, str]) -> None:
    shape = shape_of([f"https://yard.example{form.format(name)}" for name in ("pumps", "quiet-motor", "metal-or-plastic")])
    assert shape is not None
    older = re.search(shape.pattern, form.format("new-seal").replace("26/", "25/").replace("/11/", "/8/"))
    assert (older[1] if older else "", shape.template) == wanted


@pytest.mark.parametrize(
    ("back", "on"), [("<< Page {}", "Page {} >>"), ("« {}", "{} »"), ("Newer ({})", "Older ({})"), ("前の{}件", "次の{}件")]
)
def test_a_next_link_with_a_number_is_found_on_all_pages(back: str, on: str) -> None:
    def page(own: int) -> Selector:
        links = [f"<a href=/page/{own - 1}>{back.format(own - 1)}</a>"] * (own > 1)
        links += [f"<a href=/page/{own + 1}>{on.format(own + 1)}</a>"] * (own < 3)
        return Selector(f"<body><p>{' | '.join(links)}</p></body>")

    found = next_selector(page(1).root, URL, f"{URL}page/2")
    assert found is not None
    assert [page(own).xpath(found).xpath("@href").getall() for own in (1, 2, 3)] == [["/page/2"], ["/page/3"], []]


@pytest.mark.parametrize(
    ("form", "link", "another"),
    [
        ("/2026/11/{}/", "/2026/11/quiet-motor-in-the-cellar/", True),
        ("/ticket/{id}", "/ticket/3", True),  # which the list has
        ("/2026/11/{}/", "/2026/11/pumps-in-winter/page/2/", False),
        ("/ticket/{id}", "/ticket/1?page=2", False),
        ("/{}-{id}.html", "/pumps-in-winter-1-2.html", False),
        ("/ticket/{id}", "/wiki", False),
    ],
)
def test_a_link_to_the_next_thread_is_none_to_the_next_page(form: str, link: str, another: bool) -> None:
    names = ("pumps-in-winter", "a-new-seal", "metal-or-plastic")
    urls = [f"{URL}{form.format(name, id=number)[1:]}" for number, name in enumerate(names, 1)]
    shape = shape_of(urls)
    assert shape is not None
    assert shape.is_of_another(f"{URL}{link[1:]}", urls[0]) is another
