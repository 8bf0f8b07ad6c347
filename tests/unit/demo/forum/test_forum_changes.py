"""Edits, deletions and moves in the forum: what they leave behind, and what the truth says about them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from statistics import mean

import pytest
from scrapy.http import JsonResponse

from demo.forum.content import comment_hash, post_hash
from demo.forum.html_pages import HtmlPages
from demo.forum.json_pages import JsonPages
from demo.forum.words import Bodies, NoSuchPage, page_count
from demo.forum.world import BURST_S, DAY_S, Mix, Size, World, liveliness, popularity
from forum_reader.reading.page_records import ReadComment
from forum_reader.reading.read_page import read_comments, read_thread
from forums.sites import load_site

SIZE = Size(forums=3, threads=40, comments=6)
MIX = Mix(edit=0.2, delete=0.2, move=0.05, skew=1.0)


def changed(events: int = 600, mix: Mix = MIX, seed: int = 5) -> World:
    world = World(seed, SIZE)
    for _ in range(events):
        world.advance(mix)
    return world


@pytest.fixture(scope="module")
def world() -> World:
    return changed()


def test_the_same_events_give_the_same_content_and_the_same_history() -> None:
    one, other = changed(), changed()
    assert (one.post_hashes, one.comment_hashes) == (other.post_hashes, other.comment_hashes)
    assert vars(one.history) == vars(other.history)


def test_the_hashes_are_of_what_lives_and_of_nothing_else(world: World) -> None:
    assert {t.post.id: post_hash(t.post) for t in world.threads.values()} == world.post_hashes
    shown = [c for t in world.threads.values() for c in t.comments]
    assert {c.id: comment_hash(c) for c in shown if not c.deleted} == world.comment_hashes
    for kind, alive in (("posts", world.post_hashes), ("comments", world.comment_hashes)):
        assert not world.history.deleted[kind].keys() & alive.keys()  # type: ignore[index]


def test_each_version_of_what_was_edited_is_known_and_the_last_one_is_shown(world: World) -> None:
    edited = world.history.edited
    assert min(len(edited["posts"]), len(edited["comments"])) > 15
    for kind, alive in (("posts", world.post_hashes), ("comments", world.comment_hashes)):
        for piece, versions in edited[kind].items():  # type: ignore[index]
            assert versions[0][0] is None
            assert all(one != other for (_, one), (_, other) in pairwise(versions)), "each edit changes the content"
            assert alive.get(piece, versions[-1][1]) == versions[-1][1]


def test_what_was_deleted_is_gone_from_every_page(world: World) -> None:
    ways = {how for _, how, _ in world.history.deleted["comments"].values()}
    assert ways == {"vanished", "placeholder", "thread"}
    assert {404, 410} == set(world.gone.values())
    shown = {c.id: c for t in world.threads.values() for c in t.comments}
    for comment, (_, how, _) in world.history.deleted["comments"].items():
        if how == "placeholder" and comment in shown:  # its thread may have been deleted later
            assert (shown[comment].deleted, shown[comment].body, shown[comment].author) == (True, "[deleted]", "")
        else:
            assert comment not in shown or how == "placeholder"
    assert not world.history.deleted["posts"].keys() & world.threads.keys()


def test_every_thread_is_in_the_list_of_its_forum_alone_in_the_order_of_its_activity(world: World) -> None:
    listed = [(post, forum) for forum in world.forums.values() for post in forum.activity]
    assert len(listed) == len(world.threads) == len({post for post, _ in listed})
    assert all(world.threads[post].post.forum_id == forum.id for post, forum in listed)
    for forum in world.forums.values():
        times = [thread.last_reply_at for thread in forum.activity.values()]
        assert times == sorted(times)


def test_ids_are_never_given_twice(world: World) -> None:
    published = world.history.published
    assert min(len(published["posts"]), len(published["comments"])) > 20
    for kind, deleted in world.history.deleted.items():
        known = set(deleted) | set(world.post_hashes if kind == "posts" else world.comment_hashes)
        assert known >= published[kind].keys()


def test_the_pages_of_a_deleted_thread_say_so_and_the_others_can_be_read(world: World) -> None:
    as_json, as_html = JsonPages(world, Bodies()), HtmlPages(world, Bodies())
    for post, status in world.gone.items():
        for ask in (lambda: as_json.post(post), lambda: as_json.comments(post, "1"), lambda: as_html.thread(post, "1")):  # noqa: B023
            with pytest.raises(NoSuchPage, match=f"{post} was deleted") as gone:
                ask()
            assert gone.value.status == status
    for post in world.threads:
        as_json.comments(post, "1")
        as_html.thread(post, "1")


def test_the_site_file_of_the_demo_reads_edits_deletions_and_sticky_threads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(Path(__file__).parents[4] / "demo" / "sites"))
    site, pages = load_site("demo"), JsonPages(world, Bodies())
    read: dict[str, ReadComment] = {}
    for post, thread in world.threads.items():
        opening = read_thread(site, JsonResponse(site.url("thread", thread=post), body=pages.post(post)), post).post
        said = (opening.title, opening.body, opening.forum_id, opening.sticky)
        assert said == (thread.post.title, thread.post.body, thread.post.forum_id, thread.post.sticky)
        assert (opening.edited_at is None) == (thread.post.edited_at is None)
        for number in range(1, page_count(thread.reply_count) + 1):
            url, body = site.url("comments", thread=post, number=number), pages.comments(post, str(number))
            read |= {comment.id: comment for comment in read_comments(site, JsonResponse(url, body=body), post, number).comments}
    shown = [comment for thread in world.threads.values() for comment in thread.comments]
    assert {c.id: (c.body, c.deleted) for c in shown} == {c.id: (c.body, c.deleted) for c in read.values()}
    assert {c.id for c in shown if c.edited_at} == {c.id for c in read.values() if c.edited_at}
    assert all(c.author is None for c in read.values() if c.deleted)


def test_a_forum_with_a_clock_dates_by_it_and_its_history_is_as_much_nearer_as_it_lives_faster() -> None:
    now = 1_800_000_000.0
    world = World(5, SIZE, 60.0, lambda: now)
    oldest = min(thread.post.created_at for thread in world.threads.values())
    assert "2027-01-14T" <= oldest < "2027-01-15T08", "60 days at sixty times the speed are one"
    before = set(world.comment_hashes)
    now += 30
    world.advance()
    while set(world.comment_hashes) == before:
        world.advance()
    (new,) = set(world.comment_hashes) - before
    comment = next(c for t in world.threads.values() for c in t.comments if c.id == new)
    assert comment.created_at == "2027-01-15T08:00:30Z"
    assert world.forum_s == 1_800
    assert world.history.published["comments"] == {new: now}
    young = World(5, Size(forums=3, threads=40, comments=6, history_days=1), 60.0, lambda: now)
    assert min(thread.post.created_at for thread in young.threads.values()) > "2027-01-15T07:36", "a day is 24 minutes"


def test_liveliness_has_nights_and_bursts_and_a_mean_of_one() -> None:
    steps = [liveliness(3, BURST_S * number) for number in range(20 * DAY_S // BURST_S)]
    assert mean(steps) == pytest.approx(1, abs=0.1)
    by_hour = [mean(steps[hour * 4 + day * 96 + quarter] for day in range(20) for quarter in range(4)) for hour in range(24)]
    assert max(by_hour) > 4 * min(by_hour)
    assert max(steps) > 4
    assert liveliness(3, 5_000) == liveliness(3, 5_000)


def test_popularity_is_a_power_law_whose_ranks_move_on_each_day() -> None:
    assert popularity(3, 1.0, 0) == [1, 1 / 2, 1 / 3]
    assert popularity(3, 1.0, DAY_S) == [1 / 2, 1 / 3, 1]
    assert popularity(2, 0.0, 0) == [1, 1]


def test_html_has_the_traps_of_real_forums() -> None:
    world = World(5, Size(forums=1, threads=30, comments=30))
    pages = HtmlPages(world, Bodies())
    long = next(thread for thread in world.threads.values() if 40 < thread.reply_count <= 60)
    first, second, third = (pages.thread(long.post.id, str(number)).decode() for number in (1, 2, 3))
    repeated = f'<article class="comment" id="{long.comments[19].id}">'
    assert repeated in first
    assert repeated in second
    assert 'rel="next" href="#"' in third
    assert 'rel="next" href="#"' not in second
    assert any(f'class="views">{n / 1000:.1f}k<' in pages.thread(i, "1").decode() for i, n in views(world) if n >= 1_000)
    world.advance()
    assert "just now</time>" in pages.forum("f1", "1").decode()


def views(world: World) -> list[tuple[str, int]]:
    return [(thread.post.id, thread.views) for thread in world.threads.values()]
