"""Boards whose lists show posts, or look like posts: the file that is written reads everything, and does not look wrong."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from forum_reader.draft.draft_file import Draft, site_of_draft
from forum_reader.draft.draft_site import drafted
from tests.support.posts_on_lists import POSTS_ON_LISTS, PostsOnLists, TreesOfTitles

from .test_new_site import BASE, Stored, posts_of, threads_of


def expected(forum: PostsOnLists) -> list[list[tuple[str, str, str]]]:
    """Author, date and text of the posts of each thread; each message is a thread where a page has one."""
    threads = [[(one.author, f"{one.at:%Y-%m-%d %H:%M}", one.text) for one in thread.posts] for thread in forum.threads]
    return [[one] for thread in threads for one in thread] if isinstance(forum, TreesOfTitles) else threads


@pytest.mark.parametrize("kind", POSTS_ON_LISTS, ids=lambda kind: kind.__name__)
def test_everything_is_read_by_the_file_that_is_written(kind: type[PostsOnLists]) -> None:
    forum = kind()
    visitor = Stored(lambda path: forum.page(path.partition("#")[0]))
    made = asyncio.run(drafted(BASE + forum.start, visitor.get, partial(Draft, name="made")))
    assert (made.shown.wrong, made.problem, made.draft.profile) == (None, None, None)
    assert [thread.fault for thread in made.shown.threads if thread.fault] == []
    site = site_of_draft(made.draft)
    found, titles = [], []
    for board in made.draft.forums:
        for thread in threads_of(site, visitor, board.id):
            posts = posts_of(site, visitor, board.id, thread.id, thread.url)
            found.append(
                [(one.author, f"{one.created_at:%Y-%m-%d %H:%M}" if one.created_at else None, one.body) for one in posts]
            )
            titles.append(thread.title)
    assert sorted(found) == sorted(expected(forum))
    if forum.titled and kind is not TreesOfTitles:
        assert sorted(titles) == sorted(one.title for one in forum.threads)
