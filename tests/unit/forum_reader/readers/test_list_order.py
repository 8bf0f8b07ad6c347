"""Lists in the order in which their threads were made, against those in the order of the last activity."""

from __future__ import annotations

import asyncio
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

from scrapy.http import HtmlResponse

from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import PageRequest
from forum_reader.page.records import PageKind, SeenLink, SeenPage
from forum_reader.readers.file_faults import faults_of_list, is_by_creation
from forum_reader.reading.page_records import ListedThread, ListPage
from forums.sites.check import Trial
from forums.sites.http.fetch import Visitor

SEEN = SeenPage(
    url="http://x/f", kind=PageKind.LIST, rows=tuple(SeenLink(url=f"http://x/t/{n}", title=f"Thread {n}") for n in range(6))
)


def test_a_list_in_the_order_of_creation_is_known_by_dates_or_numbers() -> None:
    def rows(created: list[int], active: list[int], ids: list[int] | None = None) -> list[ListedThread]:
        return [
            ListedThread(
                id=str(ids[n]) if ids else f"t{n}", token="", created_at=None if ids else day(one), last_activity=day(other)
            )
            for n, (one, other) in enumerate(zip(created, active, strict=True))
        ]

    def day(number: int) -> datetime:
        return datetime(2026, 11, number, tzinfo=UTC)

    falling, mixed = [9, 8, 7, 6, 5, 4], [9, 20, 8, 21, 5, 28]
    assert is_by_creation(rows(falling, mixed))
    assert is_by_creation(rows(falling, mixed, ids=[90, 80, 70, 60, 50, 40])), "by the threads' numbers"
    assert not is_by_creation(rows(falling, falling))
    assert not is_by_creation(rows(mixed, falling))
    assert not is_by_creation(rows(falling, mixed, ids=[9, 80, 7, 60, 5, 40]))


class Created(Visitor):
    """A list in the order in which its threads were made, each of three posts."""

    async def get(self, url: str | PageRequest) -> HtmlResponse:
        address = url if isinstance(url, str) else url.url
        if "/f" in address:
            days = (9, 20, 8, 21, 5, 28, 11)
            rows = (
                f"<li><a href=/t/{90 - n}-door>Thread {90 - n}</a> <i>2</i> <b>2025-11-{day:02}</b></li>"
                for n, day in enumerate(days)
            )
        else:
            rows = (f"<li id=p{address[-7:-5]}{n}><u>ann</u> <b>2025-11-0{n}</b><p>{'word ' * n}</p></li>" for n in (1, 2, 3))
        body = f"<html><body><ol>{''.join(rows)}</ol></body></html>"
        return HtmlResponse(address, body=body.encode(), headers={"Content-Type": "text/html"})


def test_check_names_a_list_in_the_order_of_creation() -> None:
    fields = "[pages.list.fields]\nid = './a/@href'\ntitle = 'a'\nreply_count = 'i'\nlast_activity = 'b'\n"
    comments = "[pages.comments.fields]\nid = './@id'\nauthor = 'u'\ncreated_at = 'b'\nbody = 'p'\n"
    text = (
        "base_url = 'http://x'\nforums = ['f']\n[pages.list]\nurl = '/{forum}'\nrows = 'li'\n"
        + fields.replace("'./a/@href'", "{select = './a/@href', regex = '/t/(.+)'}")
        + "[pages.comments]\nurl = '/t/{thread}'\nrows = 'li'\nfirst_is_post = true\n" + comments
    )  # fmt: skip
    for order, hint in (("activity", 'write `order = "created"`'), ("created", None)):
        table = tomllib.loads(text)
        table["pages"]["list"]["order"] = order
        listed, *others = asyncio.run(Trial(site_of(load.read(Path("mine.toml"), table)), Created()).run(None, None))
        assert (listed.problem, [one.problem for one in others]) == (None, [None] * len(others))
        assert hint in (listed.hint or "") if hint else listed.hint is None


def test_one_activity_of_all_threads_is_a_fault_unless_the_forum_is_new() -> None:
    def faults(age: timedelta) -> list[str]:
        at = datetime.now(UTC) - age
        rows = tuple(ListedThread(id=f"t{n}", token="", title=f"Thread {n}", last_activity=at) for n in range(6))
        return list(faults_of_list(ListPage(threads=rows), SEEN, by_activity=True))

    assert faults(timedelta(days=9, hours=5)) == ["all threads have the same `last_activity`: look at its selector"]
    assert faults(timedelta(minutes=1)) == [], "each row shows `1 minute ago`"
    assert faults(timedelta(days=396)) == [], "or `13 months ago`"
