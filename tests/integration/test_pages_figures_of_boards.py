"""Figures of boards, delays and alerts on the pages, compared with queries of the database, with up to 10,000 boards."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import redis
from sqlalchemy import func, select

from forums.state.alerts import Alert, Alerts
from forums.state.database_state import BOUNDS_S
from forums.state.keys import ForumState, ForumStates
from forums.storage import Database
from forums.storage.schema.tables import comments, forums, posts, scans
from forums.writer.store import store
from monitoring.forums import pages
from monitoring.forums.data import ForumRows
from monitoring.pages import views
from monitoring.pages.views import Reading
from monitoring.source import Source
from redis_components.keys import CrawlKeys
from redis_components.server.printable import span
from tests.integration.test_pages_figures import database as database
from tests.integration.test_pages_figures import write
from tests.support.items import comment, forum, post, scan, wire

SITES, EVERY_S = 3, 3000.0
STALE_S = 2 * EVERY_S


def seen(redis_url: str) -> Reading:
    """What a request reads, after a restart of the exporter."""
    source, rows = Source(redis_url, {}), ForumRows()
    rows.read()
    view = source.look()
    return Reading(client=source.client, source="redis", view=view, rows=lambda: rows)


def figure(html: str, name: str) -> str:
    found = re.search(rf"<dt>{name}</dt><dd>([^<]*)</dd>", html)
    return found[1] if found else ""


def cells(html: str, first: str) -> list[str]:
    """The cells of the table's row that begins with that text."""
    row = next(one for one in re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL) if re.match(rf"<th>(<a [^>]*>)?{first}<", one))
    return [re.sub(r"<[^>]*>", "", one) for one in re.findall(r"<td.*?</td>", row, re.DOTALL)]


@pytest.mark.parametrize("boards", [300, 10_000])
def test_figures_of_boards_are_the_databases(redis_url: str, redis_client: redis.Redis, database: Database, boards: int) -> None:
    now = datetime.now(UTC).timestamp()
    items, states, dues = [], dict[str, ForumState](), dict[str, float]()
    for number in range(boards):
        site, board = f"site{number % SITES}", f"b{number}"
        is_stale, has_gap = number % 7 == 0, number % 11 == 0
        at = now - (3 * EVERY_S if is_stale else 60.0)
        ended = datetime.fromtimestamp(at, UTC).isoformat()
        report = {"started_at": ended, "finished_at": ended, "outcome": "gap" if has_gap else "complete"}
        items += [forum(board, site=site, threads=number), scan(board, site=site, **report)]
        items += [post(f"p{number}-{n}", site=site, forum_id=board) for n in range(number % 3)]
        states[f"{site}/{board}"] = ForumState(scanned_at=at, tried_at=at, gap_at=at if has_gap else None)
        dues[f"{site}/{board}"] = at + EVERY_S
    for begin in range(0, len(items), 2000):
        write(database, 1, *items[begin : begin + 2000])
    ForumStates(redis_client).write(states)
    ForumStates(redis_client).store_dues(dues, now, whole=True)
    with database.engine.connect() as connection:
        last = connection.execute(select(scans.c.site, scans.c.finished_at, scans.c.outcome)).all()
        threads = Counter(connection.execute(select(posts.c.forum_id).where(posts.c.site == "site1")).scalars())
        claimed = {
            one.id: one.threads
            for one in connection.execute(select(forums.c.id, forums.c.threads).where(forums.c.site == "site1"))
        }
    bound = datetime.fromtimestamp(now - STALE_S, UTC)
    open_gaps = Counter(one.site for one in last if one.outcome == "gap")
    stale = Counter(one.site for one in last if one.finished_at < bound)
    fresh = sum(one.outcome == "complete" and one.finished_at >= bound for one in last)
    shown = seen(redis_url)
    assert figure(views.overview(shown, is_known=True), "fresh boards") == f"{fresh:,} of {len(last):,}"
    overview, one_site = pages.sites(shown), pages.site(shown, "site1")
    for number in range(SITES):
        name = f"site{number}"
        assert cells(overview, name)[1:4] == [
            f"{sum(one.site == name for one in last):,}",
            f"{stale[name]:,}",
            f"{open_gaps[name]:,}",
        ]
    assert figure(one_site, "threads stored") == f"{threads.total():,}"
    assert len(claimed) == len(range(1, boards, SITES))
    for board in (*list(claimed)[:3], *list(claimed)[-3:]):
        assert cells(one_site, board)[4:6] == [f"{threads[board]:,}", f"{claimed[board]:,}"], board


def test_the_delay_is_that_of_the_stored_rows_of_all_sites(redis_url: str, redis_client: redis.Redis, database: Database) -> None:
    now = datetime.now(UTC)

    def ago(seconds: float) -> str:
        return (now - timedelta(seconds=seconds)).isoformat()

    delays = {"demo": (3, 4, 9, 70, 500), "other": (20, 25, 25, 40, 40, 4000)}
    for site, seconds in delays.items():
        write(database, 1, scan(site=site, started_at=ago(6 * 3600), finished_at=ago(6 * 3600)))
        made = [
            post(site=site, created_at=ago(7 * 3600), fetched_at=ago(0)),
            *(comment(f"c{n}", site=site, created_at=ago(at), fetched_at=ago(0)) for n, at in enumerate(seconds)),
        ]
        redis_client.rpush(
            CrawlKeys.for_spider("forum_detail").item_stream(), *(json.dumps(json.loads(wire(one))) for one in made)
        )
    store(redis_client, ["forum_detail"])
    with database.engine.connect() as connection:
        first = dict(connection.execute(select(scans.c.site, func.min(scans.c.started_at)).group_by(scans.c.site)).all())
        rows = [
            (one.first_seen_at - one.created_at).total_seconds()
            for table in (posts, comments)
            for one in connection.execute(select(table.c.site, table.c.created_at, table.c.first_seen_at))
            if one.created_at >= first[one.site]
        ]
    assert len(rows) == sum(map(len, delays.values())), "a row that is older than the first scan could not be read in time"
    middle = sorted(rows)[(len(rows) - 1) // 2]
    bound = next(bound for bound in BOUNDS_S if middle <= bound)
    assert figure(views.overview(seen(redis_url), is_known=True), "from published to stored") == f"half within {span(bound)}"


def test_each_alert_is_on_the_page_and_none_that_was_removed(
    redis_url: str, redis_client: redis.Redis, database: Database
) -> None:
    write(database, 1, post())
    alerts = Alerts(redis_client)
    made = [alerts.put(1, Alert(match=f"word{n}", to="stdout", site="demo" if n else "")) for n in range(3)]
    alerts.remove(made[1])
    html = pages.events(seen(redis_url))
    assert re.findall(r">(word\d)<", html) == ["word0", "word2"]
    assert cells(html, str(made[0]))[:3] == ["word0", "all", "stdout"]
    assert cells(html, str(made[2]))[1] == "demo"
