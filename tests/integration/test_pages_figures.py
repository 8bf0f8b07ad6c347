"""Figures and posts of the pages, compared with queries of the database: in the first minute, of a new site, after a restart."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from sqlalchemy import Engine, event, func, select, update

from fleet_operations.overview.samples import History, Sample
from forums.storage import Database, parse
from forums.storage.engine import WRITING
from forums.storage.schema.tables import comments, events, posts
from forums.storage.write.remove_site import remove_rows
from monitoring.api.access import Tokens
from monitoring.app import create_app
from monitoring.forums import data, pages
from monitoring.forums import search as pages_search
from monitoring.forums.data import EVENTS_SHOWN, ForumRows
from monitoring.pages import views
from monitoring.pages.views import NotThere, Reading
from monitoring.source import Source
from tests.integration.test_pages_login import ACT, ELSEWHERE, READ, Browser
from tests.support.items import at, comment, post, wire
from tests.unit.monitoring.metrics.test_metrics import VIEW

BASE = (time.time() // 3600 - 1) * 3600  # the hour before, whole: the charts have a day
ATOM = "{http://www.w3.org/2005/Atom}"
EVIL = "<script>alert('x')</script>"


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Database]:
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path}/trawl.db")
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path))
    with Database.from_url() as opened:
        yield opened


def write(database: Database, second: float, *items: dict[str, Any]) -> None:
    """Store items, so many seconds after BASE."""
    with database.engine.connect() as connection:
        before = connection.execute(select(func.max(events.c.seq))).scalar() or 0
    assert database.write([parse(wire(one)) for one in items]) == []
    stored_at = datetime.fromtimestamp(BASE + second, UTC)
    with database.engine.connect().execution_options(**WRITING) as connection, connection.begin():
        connection.execute(update(events).where(events.c.seq > before).values(stored_at=stored_at))


def moment(second: float) -> str:
    """A time, in seconds after BASE."""
    return datetime.fromtimestamp(BASE + second, UTC).isoformat()


def stored(database: Database, site: str | None = None) -> int:
    with database.engine.connect() as connection:
        tables = (select(func.count()).select_from(one).where(site is None or one.c.site == site) for one in (posts, comments))
        return sum(connection.execute(query).scalar() or 0 for query in tables)


def reading(client: redis.Redis, database: Database, second: float, rows: ForumRows, *samples: Sample) -> Reading:
    rows.add(database)
    view = replace(VIEW, now=BASE + second)
    return Reading(client=client, source="redis", view=view, rows=lambda: rows, history=lambda: History(day=samples))


def searched(shown: Reading, **given: Any) -> str:
    return pages_search._page(shown, pages_search.search(pages_search.Asked(**given), threading.Event()))


def label(html: str) -> str:
    found = re.search(r'aria-label="(Posts and comments: [^"]*)"', html)
    assert found
    return found[1]


def test_figures_are_the_databases_from_the_first_minute_of_a_new_site_and_after_a_restart(
    redis_client: redis.Redis, database: Database
) -> None:
    write(database, 5, *(post(f"p{n}") for n in range(130)), *(comment(f"c{n}") for n in range(40)))
    rows = ForumRows()
    first = views.overview(reading(redis_client, database, 20, rows), is_known=True)
    assert stored(database) == 170
    assert label(first) == "Posts and comments: this minute 170, highest 170 a minute", "without a single sample"
    assert "170 posts and comments since" in first
    write(database, 65, *(post(f"n{n}", site="new") for n in range(30)))
    write(database, 70, post("p1", body="edited", fetched_at=at(20)))
    samples = Sample(at=BASE + 61, stored=3), Sample(at=BASE + 121, stored=3)
    later = reading(redis_client, database, 130, rows, *samples)
    restarted = reading(redis_client, database, 130, ForumRows(), *samples)
    assert stored(database) == 200
    for one in (later, restarted):
        shown = views.overview(one, is_known=True)
        assert label(shown) == "Posts and comments: this minute 0, highest 170 a minute"
        assert "<dd>200</dd>" in shown, "an edit is no new row"
        assert one.rows().steps(60, BASE + 130) == [(BASE + 60, 170.0), (BASE + 120, 30.0), (BASE + 130, 0.0)]
        assert one.rows().steps(60, BASE + 130, "new") == [(BASE + 120, stored(database, "new")), (BASE + 130, 0.0)]
        assert "this hour 200, highest 200 an hour" in views.history(one)
    with Database.from_url() as other:
        with other.engine.connect().execution_options(**WRITING) as connection, connection.begin():
            connection.execute(events.delete())
        rows.add(other)
    assert rows.since(0) == 0, "another database"


def test_a_removed_site_leaves_no_figure_and_one_that_is_there_again_has_its_own(
    redis_client: redis.Redis, database: Database
) -> None:
    rows = ForumRows()

    def figures(second: float) -> tuple[int, int, list[tuple[float, float]]]:
        one = reading(redis_client, database, second, rows).rows()
        return rows.since(BASE), stored(database), one.steps(60, BASE + second, "other")[:1]

    write(database, 1, *(post(f"p{n}") for n in range(3)), *(post(f"o{n}", site="other") for n in range(5)))
    assert figures(59) == (8, 8, [(BASE + 59, 5.0)])
    remove_rows(database, "other")
    assert figures(60) == (3, 3, [])
    write(database, 62, post("o1", site="other"))
    assert figures(70) == (4, 4, [(BASE + 70, 1.0)])
    remove_rows(database, "other")
    write(database, 75, *(post(f"o{n}", site="other", fetched_at=at(60)) for n in range(2)))
    assert figures(80) == (5, 5, [(BASE + 80, 2.0)]), "removed and there again between two readings"


def test_the_events_page_shows_the_newest_first_also_after_a_transaction_of_thousands(
    redis_client: redis.Redis, database: Database
) -> None:
    write(database, 1, *(post(f"p{n:04}") for n in range(1500)))
    write(database, 2, post("last", title="The newest one"))
    found = pages.events(reading(redis_client, database, 3, ForumRows()))
    titles = re.findall(r"(The newest one|Title of p\d+)</a>", found)
    assert titles == ["The newest one", *(f"Title of p{n:04}" for n in range(1499, 1499 - EVENTS_SHOWN + 1, -1))]


def test_the_newest_posts_are_for_those_who_may_read(redis_client: redis.Redis, database: Database) -> None:
    write(database, 1, post("p1", title=EVIL), comment("c1", body="an answer", created_at=moment(5), fetched_at=moment(6)))
    shown = reading(redis_client, database, 200, ForumRows())
    html = views.overview(shown, is_known=True)
    assert '<a href="/thread/demo/p1#c1">' in html
    assert "an answer" in html
    assert "3 min ago" in html
    assert EVIL not in html
    assert "an answer" not in views.overview(shown, is_known=False)
    old = (comment(f"old{n}", body=f"of {n} years ago", created_at=at(-n * 525_600)) for n in range(1, 100))
    last = (post(f"q{n}", created_at=moment(-60 * n), fetched_at=moment(0)) for n in range(20))
    write(database, 2, *old, *last, comment("c2", body="the newest", created_at=moment(10), fetched_at=moment(12)))
    for second in (3, 4):  # a first reading of history
        write(database, second, *(comment(f"older{second}-{n}", created_at=at(-600_000)) for n in range(600)))
    html = views.overview(reading(redis_client, database, 200, ForumRows()), is_known=True)
    assert re.findall(r"(the newest|Title of q\d+)", html) == ["the newest", *(f"Title of q{n}" for n in range(18))]
    assert '<a href="/search?within=1h">22 published in the last hour</a>, 1,322 stored' in html
    assert "1 years ago" not in html, "those of the last hour, else a dozen"


def test_a_thread_has_its_posts_in_order_with_edits_deletions_and_originals(
    redis_client: redis.Redis, database: Database
) -> None:
    answers = [comment(f"c{n:03}", created_at=at(n), url="javascript:alert(1)") for n in range(150)]
    write(database, 1, post("p1", body="first text"), *answers)
    write(database, 2, post("p1", body=EVIL, fetched_at=at(20)), comment("c005", deleted=True, fetched_at=at(20)))
    shown = reading(redis_client, database, 3, ForumRows())
    html = pages.thread(shown, "demo", "p1", 1)
    assert re.findall(r'id="(c\d+|p1)"', html) == ["p1", *(f"c{n:03}" for n in range(100))]
    assert "150 replies stored, 2 by the site" in html
    assert '<a href="http://127.0.0.1/post/p1" rel="noreferrer noopener">original</a>' in html
    assert html.count("original</a>") == 1, "a stored javascript: is no link"
    assert html.count(">deleted</span>") == html.count(">edited</span>") == 1
    assert "first text" in html
    assert EVIL not in html
    rest = pages.thread(shown, "demo", "p1", 2)
    assert re.findall(r'id="(c\d+|p1)"', rest) == [f"c{n:03}" for n in range(100, 150)]
    with pytest.raises(NotThere):
        pages.thread(shown, "demo", "p2", 1)


def test_a_search_has_an_address_as_a_feed_for_those_who_may_read(
    redis_url: str, redis_client: redis.Redis, database: Database
) -> None:
    evil = post("p2", title=f"radio {EVIL}", body="\x1b[2J\ud800 radio".encode("utf-8", "ignore").decode(), url="javascript:x")
    write(database, 1, post("p1", body="a radio"), comment("c1", body="the radio hums"), evil, post("p3", body="none"))
    app: Any = create_app(Source(redis_url, {"books": 1}), tokens=Tokens(read=READ, act=ACT))
    program = Browser(app=app, client=ELSEWHERE)
    basic = f"Basic {base64.b64encode(f'me:{READ}'.encode()).decode()}"
    code, text, headers = program.ask("GET", "/search?q=radio&format=rss", authorization=basic)
    assert (code, headers["content-type"]) == (200, "application/rss+xml")
    items = ElementTree.fromstring(text).findall("channel/item")
    with database.engine.connect() as connection:
        has = [select(one.c.id).where(one.c.body.contains("radio")) for one in (posts, comments)]
        ids = {row.id for query in has for row in connection.execute(query)}
    assert {(one.findtext("guid") or "").rpartition("/")[2] for one in items} == ids == {"p1", "c1", "p2"}
    assert [one.findtext("link") for one in items].count(None) == 1, "javascript: is no link"
    assert {one.findtext("pubDate") for one in items} == {"Thu, 01 Jan 2026 00:00:00 +0000", "Thu, 01 Jan 2026 00:01:00 +0000"}
    code, text, headers = program.ask("GET", "/search?q=author:bob&format=json", authorization=basic)
    assert [one["content_text"] for one in json.loads(text)["items"]] == ["the radio hums"]
    assert program.ask("GET", "/search?q=x&since=soon&format=rss", authorization=basic)[0] == 503
    assert program.ask("GET", "/search?q=radio&format=xls", authorization=basic)[0] == 422
    for header in ("", "Bearer wrong-token-of-24-letters"):
        assert program.ask("GET", "/search?q=radio&format=rss", **({"authorization": header} if header else {}))[0] == 303
    assert program.ask("GET", "/act/pause", authorization=f"Bearer {ACT}")[0] == 303, "a header never acts"
    page = program.ask("GET", "/search?q=radio", authorization=basic)[1]
    assert 'href="/search?q=radio&amp;format=rss"' in page
    assert '<a href="/thread/demo/p1#c1">' in page
    assert "3 posts and comments" in page
    assert "the <mark>radio</mark> hums" in page
    assert EVIL not in page
    code, text, headers = program.ask("GET", "/search?q=radio&format=atom", authorization=basic)
    assert (code, headers["content-type"]) == (200, "application/atom+xml")
    entries = ElementTree.fromstring(text).findall(f"{ATOM}entry")
    ids = {f"urn:trawl:demo/{one}" for one in ("post/p1", "comment/c1", "post/p2")}
    assert {one.findtext(f"{ATOM}id") for one in entries} == ids
    assert [one.find(f"{ATOM}link") for one in entries].count(None) == 1
    assert all(one.findtext(f"{ATOM}updated") and one.findtext(f"{ATOM}author/{ATOM}name") for one in entries)


def test_words_are_marked_where_they_are_found() -> None:
    marked = pages_search.marked
    assert marked("Together, the THE <the>", "the") == "Together, <mark>the</mark> <mark>THE</mark> &lt;<mark>the</mark>&gt;"
    assert marked("Grafikkarte 新显卡", "*karte 显卡") == "Grafik<mark>karte</mark> 新<mark>显卡</mark>"
    assert marked("C++ \u202e", "c++") == "<mark>C++</mark> \\u202e"


def test_a_search_of_board_and_time_has_pages_and_leads_to_an_alert(redis_client: redis.Redis, database: Database) -> None:
    many = [comment(f"c{n:03}", body="hum radio", created_at=at(n), fetched_at=at(200)) for n in range(120)]
    write(database, 1, post("p1", title="On <radio>", body="x"), post("p9", forum_id="f9", body="radio"), *many)
    shown = reading(redis_client, database, 3, ForumRows())

    page = partial(searched, shown)
    last = page(q="radio", board="f1", page=3)
    assert "121 posts and comments, page 3 of 3" in last
    assert re.findall(r"#(c\d+)", last) == [f"c{n:03}" for n in range(19, -1, -1)]
    assert "On &lt;<mark>radio</mark>&gt;" in last
    assert "page=2" in last
    oldest = page(q="radio", order="old", since="2026-01-01", until="2026-01-01")
    assert re.findall(r"#([cp]\d+)\"", oldest)[0] == "c000"
    assert 'href="/act/alert?match=radio+and+author%3A%22bob%22&amp;site=demo"' in page(q="radio author:bob", site="demo")
    assert "since &#39;yesterday&#39;: must be a day such as 2026-01-31" in page(q="radio", since="yesterday")
    assert "There is no such page" in page(q="radio", page=9)
    assert "Nothing that is stored" in page(q="radio", board="none")


def test_answers_stand_below_what_they_answer(redis_client: redis.Redis, database: Database) -> None:
    parents = {"c1": None, "c2": None, "c3": "c1", "c4": "c3", "c5": "away", "c6": "c7", "c7": "c6", "c8": "c1"}
    items = [comment(one, parent_id=parent, created_at=at(n)) for n, (one, parent) in enumerate(parents.items())]
    write(database, 1, post("p1"), *items)
    html = pages.thread(reading(redis_client, database, 3, ForumRows()), "demo", "p1", 1)
    found = re.findall(r'id="(c\d)"(?: style="--depth: (\d)")?', html)
    expected = [("c1", ""), ("c3", "1"), ("c4", "2"), ("c8", "1"), ("c2", ""), ("c5", ""), ("c6", ""), ("c7", "1")]
    assert found == expected, "a parent that is away, and a circle"


def test_a_tree_of_any_depth_is_cut_into_pages(redis_client: redis.Redis, database: Database) -> None:
    chain = [comment(f"c{n:04}", parent_id=f"c{n - 1:04}" if n else None, created_at=at(n)) for n in range(1500)]
    write(database, 1, post("p1"), *chain)
    html = pages.thread(reading(redis_client, database, 3, ForumRows()), "demo", "p1", 15)
    assert re.findall(r'id="(c\d+)" style="--depth: 8"', html) == [f"c{n:04}" for n in range(1400, 1500)]


def test_the_threads_of_each_board_and_month_are_the_databases_also_after_moves(
    redis_client: redis.Redis, database: Database
) -> None:
    days = [datetime(2025 + n // 12, n % 12 + 1, 5, tzinfo=UTC).isoformat() for n in range(14)]
    write(database, 1, *(post(f"p{n}", forum_id=f"f{n % 2}", created_at=days[n % 14]) for n in range(60)))
    moved = [post(f"p{n}", forum_id="f9", created_at=days[(n + 1) % 14], fetched_at=at(20)) for n in range(5)]
    write(
        database,
        2,
        *moved,
        post("p7", forum_id="f1", deleted=True, fetched_at=at(21)),
        post("p8", forum_id="f0", created_at=None),
    )
    found = data.of_site(database, "demo")
    with database.engine.connect() as connection:
        rows = connection.execute(select(posts.c.forum_id, posts.c.created_at, posts.c.first_seen_at)).all()
    expected = Counter((row.forum_id, f"{row.created_at or row.first_seen_at:%Y-%m}") for row in rows)
    counted = {(board, month): number for board, months in found.months.items() for month, number in months.items() if number}
    assert counted == expected
    assert found.threads == dict(Counter(row.forum_id for row in rows))
    html = pages.site(reading(redis_client, database, 3, ForumRows()), "demo")
    assert "Threads by the month" in html
    assert f"'{datetime.fromtimestamp(BASE, UTC):%Y-%m}'" in html


def test_no_page_and_no_search_reads_the_whole_of_a_table_that_grows(redis_client: redis.Redis, database: Database) -> None:
    write(database, 1, *(post(f"p{n}", body="radio") for n in range(30)), *(comment(f"c{n}", post_id=f"p{n}") for n in range(30)))
    write(database, 2, comment("c1", body="a radio", fetched_at=at(20), parent_id="c2"), post("q1", site="other", body="radio"))
    shown = reading(redis_client, database, 3, ForumRows())
    asked: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        asked.append((statement, parameters))

    makers = {
        "overview": lambda: views.overview(shown, is_known=True),
        "site": lambda: pages.site(shown, "demo"),
        "thread": lambda: pages.thread(shown, "demo", "p1", 1),
        "events": lambda: pages.events(shown),
        "history": lambda: views.history(shown),
        **{
            f"search {given}": lambda given=given: searched(shown, **given)
            for given in (
                {"q": "radio"},
                {"author": "bob"},
                {"q": "radio", "site": "demo", "board": "f1", "since": "2026-01-01"},
                {"within": "30d"},
                {"site": "demo"},
            )
        },
    }
    event.listen(Engine, "before_cursor_execute", note)
    try:
        read = {name: (len(asked), make(), len(asked)) for name, make in makers.items()}
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert all(end > begin for name, (begin, _, end) in read.items() if name != "history")
    whole = re.compile(
        r"SCAN (posts|comments|revisions|events|checks|search_rows)\b(?! USING INDEX ix_(?:posts|comments)_published)"
    )
    with sqlite3.connect(str(database.engine.url.database)) as connection:
        plans = {
            sql: connection.execute(f"EXPLAIN QUERY PLAN {sql}", given).fetchall() for sql, given in asked if "SELECT" in sql
        }
    assert [sql for sql, plan in plans.items() if any(whole.match(step) for *_, step in plan)] == []
    assert len(plans) > 15


def test_the_last_events_are_read_without_the_hundred_large_transactions_before_them(
    redis_client: redis.Redis, database: Database
) -> None:
    for second in range(30):
        write(database, second, *(comment(f"c{second}-{n}") for n in range(EVENTS_SHOWN)))
    sizes: list[int] = []
    with database.engine.connect() as connection:
        raw: Any = connection.connection.driver_connection
        raw.text_factory = lambda text: sizes.append(len(text)) or text.decode()
        largest = connection.execute(select(func.max(func.length(events.c.changes)))).scalar() or 0
        sizes.clear()
    assert len(data.events_of(database)) == EVENTS_SHOWN
    assert 0 < sum(sizes) < 15 * largest
