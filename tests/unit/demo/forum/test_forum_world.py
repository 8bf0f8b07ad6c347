"""The forum's content: repeatable, well-formed, and true to what is said about it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from demo.forum.content import Thread, comment_hash, post_hash
from demo.forum.world import MAX_DEPTH, Size, World

SIZE = Size(forums=3, threads=60, comments=6)
PINNED_POSTS = {"p1": "bf11efca324c6c5e2793e200434834d7dadb9266"}
PINNED_COMMENTS = {
    "c1": "78fa9224083d97656c92e0ae5b5f3ad2d809ef61",
    "c2": "9643a1c5bfd2ee4ed9158b23351b585406fd5993",
    "c3": "df4401e0905c47bb239353de0c0f9e943c9deb0e",
    "c4": "c2d2e4292b29aa2e3971b49e53a200c81c5fc50d",
    "c5": "259b529eda0b39c6ce58f75ee57e254c1aca907f",
    "c6": "26df4266852605b1935e5385a6dc503db2242da5",
    "c7": "7ac09bd8e438274e05fff7049195bd7861b56a4d",
    "c8": "6621238dc6402a4c2250f7cbd52d16de0349a4be",
    "c9": "cf22170ac33bb5d2461241e2ef4bf395f25ce015",
    "c10": "130cdf666b67e543155668d79505c5eed329ee32",
    "c11": "3edfac05165de3eee7fa4b1e61fc72b6d8e78d5b",
    "c12": "84f45b6982f2155465ba09b89bd141e72918694c",
}


def _grown(seed: int = 5, events: int = 0) -> World:
    world = World(seed, SIZE)
    for _ in range(events):
        world.advance()
    return world


@pytest.fixture(scope="module")
def world() -> World:
    return _grown(events=300)


def test_the_same_seed_and_number_of_events_give_the_same_content() -> None:
    one, other = _grown(events=150), _grown(events=150)

    assert one.post_hashes == other.post_hashes
    assert one.comment_hashes == other.comment_hashes
    assert [list(f.activity) for f in one.forums.values()] == [list(f.activity) for f in other.forums.values()]


def test_another_seed_gives_other_content() -> None:
    assert _grown(seed=5).post_hashes != _grown(seed=6).post_hashes


def test_this_seed_gives_this_content_on_every_machine() -> None:
    # A change here means that every run that somebody wrote down by its seed can no longer be repeated.
    world = World(1, Size(forums=1, threads=1, comments=3))
    for _ in range(3):
        world.advance()

    assert world.post_hashes == PINNED_POSTS
    assert world.comment_hashes == PINNED_COMMENTS


def test_events_add_to_the_content_and_change_nothing_that_is_there() -> None:
    before = _grown()
    posts, comments = dict(before.post_hashes), dict(before.comment_hashes)

    for _ in range(200):
        before.advance()

    assert before.revision == 200
    assert posts.items() <= before.post_hashes.items()
    assert comments.items() <= before.comment_hashes.items()
    added = len(before.post_hashes) - len(posts), len(before.comment_hashes) - len(comments)
    assert sum(added) == 200
    assert 5 <= added[0] <= 45, "about one event in ten opens a thread"


def test_every_hash_belongs_to_the_piece_it_names(world: World) -> None:
    assert {t.post.id: post_hash(t.post) for t in world.threads.values()} == world.post_hashes
    assert {c.id: comment_hash(c) for t in world.threads.values() for c in t.comments} == world.comment_hashes


def test_every_parent_is_an_older_comment_of_the_same_thread(world: World) -> None:
    nested = 0
    for thread in world.threads.values():
        depths: dict[str, int] = {}
        for comment in thread.comments:
            assert comment.post_id == thread.post.id
            assert comment.depth == (0 if comment.parent_id is None else depths[comment.parent_id] + 1) <= MAX_DEPTH
            nested += comment.depth > 1
            depths[comment.id] = comment.depth
    assert nested > 100, "replies to replies are common"


def test_comments_are_oldest_first_and_none_is_older_than_its_post(world: World) -> None:
    for thread in world.threads.values():
        times = [thread.post.created_at, *(c.created_at for c in thread.comments)]
        assert times == sorted(times)


def test_comment_counts_follow_a_power_law_of_the_wanted_mean() -> None:
    world = World(2, Size(forums=5, threads=400, comments=8))
    counts = sorted(t.reply_count for t in world.threads.values())

    assert 6 <= sum(counts) / len(counts) <= 10
    assert counts[len(counts) // 2] < 6, "half of the threads are short"
    assert counts[-1] > 100, "some are very long"
    assert counts[0] == 0


def test_a_forum_shows_sticky_threads_first_and_then_the_newest_reply_first(world: World) -> None:
    for forum in world.forums.values():
        ordered = forum.ordered()
        assert ordered == sorted(ordered, key=_place, reverse=True)
        assert ordered[0].post.sticky
        assert len(ordered) == len(forum.activity)


def test_no_two_events_happen_at_the_same_time() -> None:
    world = _grown()
    before = set(world.comment_hashes), set(world.post_hashes)
    for _ in range(100):
        world.advance()

    times = [c.created_at for t in world.threads.values() for c in t.comments if c.id not in before[0]]
    times += [t.post.created_at for t in world.threads.values() if t.post.id not in before[1]]
    assert all(earlier < later for earlier, later in pairwise(sorted(times)))


def test_replies_go_mostly_to_threads_that_were_active_lately(world: World) -> None:
    forum = next(iter(world.forums.values()))
    ranks = []
    for _ in range(300):
        newest_first = [t.post.id for t in reversed(forum.activity.values())]
        revision = forum.revision
        world.advance()
        top = next(reversed(forum.activity))
        if forum.revision != revision and top in newest_first:
            ranks.append(newest_first.index(top))
    assert sum(rank < 12 for rank in ranks) > len(ranks) * 0.6
    assert max(ranks) > 20, "an old thread comes back now and then"


def test_an_empty_forum_comes_to_life_with_a_thread() -> None:
    world = World(1, Size(forums=1, threads=0, comments=0))

    world.advance()

    assert list(world.post_hashes) == ["p1"]
    assert not world.comment_hashes


def test_titles_hold_what_html_must_escape_and_signs_beyond_ascii() -> None:
    titles = "".join(t.post.title for t in World(1, Size(forums=2, threads=200, comments=0)).threads.values())

    assert set("<>&\"'") <= set(titles)
    assert any(ord(sign) > 0xFFFF for sign in titles), "an emoji"


def _place(thread: Thread) -> tuple[bool, str, int]:
    return thread.post.sticky, thread.last_reply_at, int(thread.post.id[1:])
