"""Discourse's newest posts, of which more came than a page shows: `/posts.json?before=` leads back to what was known."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from scrapy.http import TextResponse

from forum_reader.reading.page_records import RecentPage
from forum_reader.reading.read_page import read_recent
from forums.records.stored import FrontRow, Marks
from forums.sites import Site, load_site
from forums.spiders.recent_messages import RecentPlan, RecentState, plan_recent
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


def look(site: Site, newest: int) -> tuple[list[str], RecentPlan, set[str], int]:
    """The addresses that a look asks for, its last plan, the ids that it stores, and the threads that it has read."""
    front = tuple(FrontRow(str(n), str(n % TOPICS), START + timedelta(minutes=n), "") for n in range(KNOWN, KNOWN - SIZE, -1))
    marks = Marks(scanned_at=START + timedelta(minutes=KNOWN), newest=START + timedelta(minutes=KNOWN), front=front)
    state = RecentState(started_at=START + timedelta(days=9), limit=20, marks=marks)
    records = {
        str(topic): ThreadRecord(token="x", comments=39, listed=39, last_comment=str(KNOWN - (KNOWN - topic) % TOPICS))
        for topic in range(TOPICS)
    }
    asked, stored, read, url = [], set(), 0, site.url("recent")
    while True:
        asked.append(url)
        before = int(parse_qs(urlsplit(url).query).get("before", ["999999"])[0])
        body = json.dumps({"latest_posts": posts_before(before, newest)}).encode()
        response = TextResponse(url, body=body, headers={"Content-Type": "application/json"})
        page: RecentPage = read_recent(site, response, len(asked))
        plan = plan_recent(state, page.messages, records, has_next=page.next is not None, watched=frozenset({"6"}))
        stored |= {one.id for direct in plan.direct for one in direct.messages if one.id}
        read += len(plan.fetch)
        state = plan.state
        if plan.stopped is not None or page.next is None:
            return asked, plan, stored, read
        url = page.next


@pytest.mark.parametrize("news", [20, 49, 50, 130])
def test_what_came_since_is_stored_from_one_page_or_read_in_its_threads_from_the_pages_that_lead_back_to_it(
    news: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    (tmp_path / "talk.toml").write_text('profile = "discourse"\nbase_url = "https://talk.example"\nforums = ["6"]\n')
    asked, plan, stored, read = look(load_site("talk"), KNOWN + news)
    assert plan.stopped == "overlap"
    if news < SIZE:
        assert read == 0, "no thread is read for it"
        assert stored == {str(n) for n in range(KNOWN + 1, KNOWN + news + 1)}
    else:
        assert (stored, read >= TOPICS) == (set(), True)
    assert len(asked) == 1 + news // SIZE
    assert all("before=" in url for url in asked[1:])
