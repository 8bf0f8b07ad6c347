"""Discourse's newest posts, of which more came than a page shows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from scrapy.http import TextResponse

from forum_reader.reading.page_records import RecentPage
from forum_reader.reading.read_page import read_recent
from forums.records.stored import FrontRow, Marks
from forums.sites import Site, load_site
from forums.spiders.recent_messages import RecentPlan, plan_recent
from forums.state.database_state import ThreadRecord

START = datetime(2026, 1, 1, tzinfo=UTC)
SIZE = 50  # posts of a page
TOPICS = 10
KNOWN = 400  # posts, the newest one is 400


def posts_before(before: int, newest: int) -> list[dict]:
    """As Discourse answers: the newest first, of those with a lower id."""
    return [
        {
            "id": n, "topic_id": n % TOPICS, "category_id": 6, "post_number": 1 + n // TOPICS, "topic_title": "Hum",
            "username": f"ida{n % 7}", "cooked": f"<p>Post {n}</p>", "created_at": (START + timedelta(minutes=n)).isoformat(),
            "version": 1, "post_type": 1,
        }
        for n in range(min(before - 1, newest), max(0, min(before - 1, newest) - SIZE), -1)
    ]  # fmt: skip


def look(site: Site, newest: int) -> RecentPlan:
    """The plan of a look."""
    front = tuple(FrontRow(str(n), str(n % TOPICS), START + timedelta(minutes=n), "") for n in range(KNOWN, KNOWN - SIZE, -1))
    marks = Marks(scanned_at=START + timedelta(minutes=KNOWN), newest=START + timedelta(minutes=KNOWN), front=front)
    records = {
        str(topic): ThreadRecord(token="x", comments=39, listed=39, last_comment=str(KNOWN - (KNOWN - topic) % TOPICS))
        for topic in range(TOPICS)
    }
    body = json.dumps({"latest_posts": posts_before(999999, newest)}).encode()
    response = TextResponse(site.url("recent"), body=body, headers={"Content-Type": "application/json"})
    page: RecentPage = read_recent(site, response)
    at, watched = START + timedelta(days=9), frozenset({"6"})
    return plan_recent(marks, page.messages, records, at=at, has_next=page.next is not None, watched=watched)


@pytest.mark.parametrize("news", [20, 49, 50, 130])
def test_what_came_since_is_stored_from_the_page_or_read_in_its_threads(
    news: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "talk.toml").write_text('profile = "discourse"\nbase_url = "https://talk.example"\nforums = ["6"]\n')
    plan = look(load_site("talk"), KNOWN + news)
    stored = {one.id for direct in plan.direct for one in direct.messages}
    if news < SIZE:
        assert (plan.stopped, plan.fetch) == ("overlap", []), "no thread is read for it"
        assert stored == {str(n) for n in range(KNOWN + 1, KNOWN + news + 1)}
    else:
        assert (plan.stopped, stored, len(plan.fetch)) == ("limit", set(), TOPICS), "the lists find what came before"
