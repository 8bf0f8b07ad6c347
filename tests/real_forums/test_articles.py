"""Articles of real news software are stored once each, and stay right after they have changed. As `test_real_forums.py`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from tests.real_forums.articles import MezzanineArticles, Pelican, WordPressArticles
from tests.real_forums.software import Software, Topic, Truth
from tests.real_forums.watching import Watch, differences

KINDS: list[type[Software]] = [WordPressArticles, MezzanineArticles, Pelican]
ONLY = os.environ.get("ONLY", "").split()


def articles(topics: Mapping[str, Topic]) -> Truth:
    """By the last part of their path; without the list that they were found on, since an article may be on several."""
    return Truth(
        topics={id_.rpartition("/")[2]: replace(one, forum_id="", replies=None) for id_, one in topics.items()}, comments={}
    )


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("no_process_left")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if not ONLY or kind.name in ONLY], ids=lambda kind: kind.__name__)
def test_articles_are_stored_once_and_stay_right(
    kind: type[Software], tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kind(tmp_path / "site") as site:
        site.populate()
        watch = Watch(site, tmp_path / "trawl", redis_url, redis_client)
        for name, value in watch.environment.items():
            monkeypatch.setenv(name, value)
        first = articles(site.truth().topics)
        assert len(first.topics) >= 200
        watch.scan(deep=True)
        stored = watch.stored().seen
        assert (differences(first, articles(stored.topics)), watch.dead()) == ([], [])
        assert len(stored.topics) == len(first.topics), "an article that is on two lists is one"

        read = len(watch.asked_for())
        watch.scan()
        again = [
            page for page in watch.asked_for()[read:] if page.endswith((".html", "/")) and not page.endswith(("feed/", "atom/"))
        ]
        assert again == [], "nothing has changed"

        site.change()
        second = articles(site.truth().topics)
        watch.scan()
        late = differences(second, articles(watch.stored().seen.topics), most=10_000)
        assert [line for line in late if "missing" in line] == []
        watch.check()
        stored_now = watch.stored()
        assert differences(second, articles(stored_now.seen.topics)) == []
        gone = {id_.rpartition("/")[2] for id_ in stored_now.gone_topics}
        assert gone >= first.topics.keys() - second.topics.keys()
        print(f"\n{kind.__name__}: {len(first.topics)} articles, then {len(second.topics)}; by checks only: {len(late)}")  # noqa: T201
