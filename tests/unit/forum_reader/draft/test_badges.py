"""Badges, levels and reputations within the elements of names: they are no part of a name in a site file that was learned."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from scrapy.http import HtmlResponse

from forum_reader.definition.page_requests import PageRequest
from forum_reader.draft.draft_file import Draft, site_of_draft
from forum_reader.draft.draft_site import drafted
from forum_reader.reading.read_page import read_comments, read_list
from tests.support.unknown_forums import LIST_PAGE, NAMES, THREAD_PAGE, Post, UnknownForum, document, pager, piece, split

BASE = "http://forum.example"
BADGES = {
    "a number behind": '{0} <span class="badge">{1}</span>',
    "in front, without a space": "<em>{1}</em>{0}",
    "a level and a reputation": '<span class="lv">Lv.{1}</span> <span>{0}</span> <i>({2})</i>',
    "posts": "{0} <small>{1} posts</small>",
}
POST = '<div class="{3}" id="m{2.id}"><div class="who">{0}</div><time datetime="{1}">then</time><p>{2.text}</p></div>'
ROW = (
    '<li class="t"><a href="/t/{0.id}">{0.title}</a> <span class="by">{1}</span> <b>{2}</b> <time datetime="{3}">then</time></li>'
)


class Badges(UnknownForum):
    """Names with a number in their links; `apart`: opening posts have another element around them."""

    def __init__(self, form: str, *, apart: bool) -> None:
        super().__init__()
        self._form, self._apart = form, apart

    def page(self, path: str) -> str | None:
        address, number = split(path)
        if address == "/":
            links = (f'<li><h3><a href="/b/{one}">{one.capitalize()}</a></h3><p>All about {one}</p></li>' for one in self.boards)
            return document("Yard", f"<h1>Yard</h1><ul>{''.join(links)}</ul>")
        if address.startswith("/b/"):
            threads = self.of_board(address[3:])
            rows = "".join(
                ROW.format(one, self._who(one.posts[0].author), len(one.posts) - 1, one.last.at.isoformat())
                for one in piece(threads, number, LIST_PAGE)
            )
            return document("Board", f"<h1>Board</h1><ul>{rows}</ul>{pager(address, number, len(threads), LIST_PAGE)}")
        thread = next((one for one in self.threads if address == f"/t/{one.id}"), None)
        if thread is None:
            return None
        posts = [self._post(one, is_first=one is thread.posts[0]) for one in piece(list(thread.posts), number, THREAD_PAGE)]
        first = f'<div class="top">{posts[0]}</div>' if self._apart and number == 1 else posts[0]
        rest = f"<div class=all>{''.join(posts[1:])}</div>"
        return document(
            thread.title, f"<h1>{thread.title}</h1>{first}{rest}{pager(address, number, len(thread.posts), THREAD_PAGE)}"
        )

    def _post(self, one: Post, *, is_first: bool) -> str:
        return POST.format(self._who(one.author), one.at.isoformat(), one, "lead" if self._apart and is_first else "msg")

    def _who(self, name: str) -> str:
        number = NAMES.index(name)
        return f'<a href="/u/{number}">{self._form.format(name, 7 * number + 3, 1200 - number)}</a>'


@pytest.mark.parametrize(
    ("form", "apart"), [*((form, False) for form in BADGES), ("a number behind", True)], ids=lambda value: str(value)
)
def test_the_number_of_a_badge_is_no_part_of_a_name_in_a_file(form: str, apart: bool) -> None:
    forum = Badges(BADGES[form], apart=apart)

    async def get(asked: str | PageRequest) -> HtmlResponse:
        url = asked if isinstance(asked, str) else asked.url
        page = forum.page(url.removeprefix(BASE))
        return HtmlResponse(url, status=200 if page else 404, body=(page or "no").encode(), encoding="utf-8")

    made = asyncio.run(drafted(f"{BASE}/", get, partial(Draft, name="made")))
    assert (made.draft.profile, made.shown.wrong) == (None, None)
    site = site_of_draft(made.draft)
    for thread in forum.threads[:12]:
        page = read_comments(site, asyncio.run(get(f"{BASE}/t/{thread.id}")), thread.id, None)
        posts = [one for one in (page.post, *page.comments) if one is not None]
        assert [one.author for one in posts] == [one.author for one in thread.posts[:THREAD_PAGE]]
    listed = read_list(site, asyncio.run(get(f"{BASE}/b/garden")), "garden").threads
    assert [one.author for one in listed] == [one.posts[0].author for one in forum.of_board("garden")[:LIST_PAGE]]
