"""Signs that a site file reads its site wrongly: its rows contradict each other, their list, or what the page shows to the
reader that has no site file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from forum_reader.page.records import PageKind, SeenPage
from forum_reader.reading.parse_body import content_type, is_text
from forum_reader.reading.read_page import SHARED

from .page_reader import read_page

if TYPE_CHECKING:
    from forum_reader.reading.page_records import CommentsPage, FieldCount, ListedThread, ListPage

_FEW = 4  # rows; of fewer, nothing is common
_MANY = 8  # rows, of which some have answers
_MOST = 50  # posts whose texts are compared
_NEAR = timedelta(days=2)  # time zones differ
_FRESH = timedelta(days=1)
_SLOW = timedelta(minutes=5)  # from the fetching of a page to its reading
_WORD = re.compile(r"\w+")
_NUMBERED = re.compile(r"\d{1,18}(?![\da-zA-Z])")
"""The id of a thread whose number comes first: `784-water-barrel`."""
_LONG = 20  # characters of a text that no other has by chance
_HEAD = 60  # characters of a text
_LEAST_WORDS = 5
_NEARLY_ALL = 0.7
_SAME = 0.7  # share of the words that two readings of a text have in common


def seen_without_file(response: Any) -> SeenPage | None:
    """Return the page as the reader without a site file reads it; None of a page in another format than HTML."""
    if not is_text(response) or content_type(response) != "text/html":
        return None
    return read_page(response.text, response.url, profiles=False)


def faults_of_list(page: ListPage, seen: SeenPage | None, *, by_activity: bool = False) -> Iterator[str]:
    """Yield the reasons why the threads of a list page are not those of the page."""
    yield from _rows_lost(page.fields, len(page.threads), "threads")
    titles = [_normal(one.title) for one in page.threads]
    yield from _lacking("threads", titles, "title")
    answered = [one for one in page.threads if one.reply_count != 0]
    for name in ("title", "last_activity"):
        empty = sum(not getattr(one, name) for one in answered)
        if name in page.fields and len(answered) >= _FEW and empty * 4 > len(answered) * 3:
            yield f"{empty} of {len(answered)} threads have no {name}: look at its selector"
    if "reply_count" in page.fields and len(titles) >= _MANY and all(one.reply_count is None for one in page.threads):
        yield f"none of {len(titles)} threads has a number in `reply_count`: look at its selector"
    if len(titles) >= _FEW and Counter(titles).most_common(1)[0][1] * 2 > len(titles):
        yield f"{Counter(titles).most_common(1)[0][1]} of {len(titles)} threads have the same title: look at `title`"
    if seen is None or seen.kind is not PageKind.LIST or len(seen.rows) < _FEW:
        return
    shown = {_normal(one.title) for one in seen.rows}
    if len(page.threads) * 2 < len(seen.rows):
        yield f"{len(page.threads)} threads were read where the page seems to list {len(seen.rows)}: look at `rows`"
    elif len(shown) >= _MANY and len(titles) < 2 * len(own := shown.intersection(titles)) < 2 * _NEARLY_ALL * len(shown) - 2:
        lost = next(one.title for one in seen.rows if _normal(one.title) not in own)
        yield f"{len(shown) - len(own)} of {len(shown)} threads of the page are not read, such as {lost!r:.80}: look at `rows`"
    elif any(titles) and not any(title in one and 2 * len(title) >= len(one) for one in shown for title in titles if title):
        yield f"no title of a thread is that of a row of the page, such as {seen.rows[0].title!r:.80}: look at `title`"
    if by_activity and len(page.threads) >= _FEW:
        last = [one.last_activity for one in page.threads if not one.sticky and one.last_activity is not None]
        if len(last) >= _FEW and len(set(last)) == 1 and not _is_from_an_age(last[0]):
            yield "all threads have the same `last_activity`: look at its selector"


def faults_of_thread(
    listed: ListedThread, page: CommentsPage, titles: set[str], seen: SeenPage | None, text: str
) -> Iterator[str]:
    """Yield the reasons why the posts of a thread's page are not those of the page. `titles`: of the threads of its list;
    `text`: of the page, empty where the page has another format than HTML.
    """
    posts = [one for one in (page.post, *page.comments) if one is not None and not one.deleted]
    bodies = [_normal(one.body) for one in posts]
    known = {one for title in titles if (one := _normal(title))}
    shown = {_normal(one.text) for post in seen.posts for one in (post, *post.comments)} if seen is not None else set()
    alone = {body for body in bodies[:1] if len(bodies) == 1 and _normal(text).count(body) == 1}  # a wall's post, without a title
    if (same := sum(body in known - shown - alone for body in bodies)) * 2 > len(bodies):  # an imageboard's titles are texts
        yield f"{same} of {len(bodies)} texts are titles of threads: look at `body`, and whether these are threads or boards"
    if (same := sum(bool(body) and body == _normal(one.author) for one, body in zip(posts, bodies, strict=True))) * 2 > len(
        posts
    ):
        yield f"{same} of {len(posts)} texts are the names of their authors: look at `body`"
    for name in ("author", "created_at", "body"):
        yield from _lacking("posts", [getattr(one, name) for one in posts], name)
    shared = sum(SHARED in one.id for one in page.comments)
    yield from _rows_lost(page.fields, len(page.comments) - shared + (page.post_id is not None), "posts")
    if shared * 4 > len(page.comments):
        yield f"{shared} of {len(page.comments)} posts have the id of another one: look at `id`"
    yield from _repeated(bodies)
    yield from _counted(listed, page, len(posts))
    title, whole = _normal(re.sub(r"(…|\.\.\.)\s*$", "", listed.title or "")), _normal(text)
    if title not in whole and (others := [one for one in known if title not in one and f" {one} " in whole]):
        yield f"the page has the title {others[0]!r:.80}, not that of its thread, {listed.title!r:.80}: look at `id` and `url`"
    if seen is not None and seen.kind is PageKind.LIST and len(seen.rows) >= _FEW and len(posts) < 2:
        yield f"the page seems to list {len(seen.rows)} threads: look at `rows` of the list, which may hold boards"
    yield from _turned(page)
    yield from _heading(listed, page, f" {whole} ")
    if seen is not None and seen.kind is PageKind.THREAD:
        yield from _compared(posts, seen)
        yield from _ends(listed, page, posts, seen)


def faults_of_next_page(page: CommentsPage, seen: SeenPage | None) -> Iterator[str]:
    """Yield the reasons why the posts of a thread's second page are not those of the page."""
    posts = [one for one in page.comments if not one.deleted]
    for name in ("author", "created_at", "body"):
        yield from _lacking("posts", [getattr(one, name) for one in posts], name)
    yield from _repeated([_normal(one.body) for one in posts])
    yield from _turned(page)
    if seen is not None and seen.kind is PageKind.THREAD:
        yield from _compared(posts, seen)


def _turned(page: CommentsPage) -> Iterator[str]:
    """Yield a reason where comments, which are read from the oldest on, stand the other way round."""
    is_flat = all(one.parent_id is None for one in page.comments)
    dates = [one.created_at for one in page.comments if one.created_at is not None] if is_flat else []
    back = sum(after < before for before, after in pairwise(dates))
    if len(dates) > _FEW and back >= _NEARLY_ALL * (len(dates) - 1):
        yield "the posts are read from the newest to the oldest: look at `order`"


def _ends(listed: ListedThread, page: CommentsPage, posts: Sequence[Any], seen: SeenPage) -> Iterator[str]:
    """Yield a reason where the opening post of the page, or the first answer, is missing, or is read as the other one."""
    shown = [one for post in seen.posts for one in (post, *post.comments) if one.text]
    if not 1 < len(shown) <= _MOST or (page.post is not None and page.post.deleted):
        return
    title = _normal(listed.title)
    if (
        page.post
        and page.post.body
        and _normal(page.post.body) == title
        and title not in map(_normal, (one.text for one in shown))
    ):
        yield "the text of the opening post is its title: look at `body` of [pages.comments.post]"
    bodies = [_words(own.body) for own in posts]
    texts = [_words(one.text) for one in shown]
    is_read = [any(_in_common(own, other) >= _SAME for own in bodies) for other in texts]
    lost = is_read.index(False) if False in is_read[:2] else len(shown)
    is_one = sum(is_read) == len(shown) - 1 > 0 and len(posts) < len(shown) and not any(one.deleted for one in page.comments)
    if page.post is not None and lost < 2 and is_one and texts[lost].total() >= _LEAST_WORDS:
        yield f"a post of the page, {shown[lost].text!r:.80}, is not read: look at `rows` and `first_is_post`"
    replies = listed.reply_count
    is_whole = page.next is None and replies is not None and len(page.comments) == replies + 1
    if is_whole and not (page.post and page.post.body) and _in_common(_words(page.comments[0].body), texts[0]) >= _SAME:
        yield "the opening post is read as a comment: look at `first_is_post`"


def _heading(listed: ListedThread, page: CommentsPage, whole: str) -> Iterator[str]:
    """Yield a reason where title or author of the opening post are something else."""
    post, title = page.post, _normal(listed.title)
    if post is None or not title:
        return
    if _normal(post.author) == title:
        yield "the author of the opening post is its title: look at `author` of [pages.comments.post]"
    is_text = _normal(post.body).startswith(title[:_HEAD])  # of a wall's post, which has no title
    if post.title and not is_text and f" {title} " in whole and not set(_normal(post.title).split()) & set(title.split()):
        yield f"the title of the thread is {listed.title!r:.80} in the list, and {post.title!r:.80} on its page: look at `title`"


def _counted(listed: ListedThread, page: CommentsPage, posts: int) -> Iterator[str]:
    replies, last = listed.reply_count, listed.last_activity
    if page.next is not None or page.left_out:
        return
    if replies is not None and len(page.comments) < replies * 0.9 - 1:
        yield (
            f"the list has {replies} replies, this page has {len(page.comments)}, and there is no next page: look at `next`, "
            "`rows` and `reply_count`"
        )
    elif replies is not None and posts > replies * 1.2 + 3:
        yield f"the list has {replies} replies, this page has {posts} posts: look at `rows` and `reply_count`"
    newest = max((one.created_at for one in page.comments if one.created_at is not None), default=None)
    if last is not None and newest is not None and newest - last > _NEAR:
        yield f"the newest post is of {newest:%Y-%m-%d}, and `last_activity` of the list is {last:%Y-%m-%d}: look at both"


def _rows_lost(fields: dict[str, FieldCount], kept: int, what: str) -> Iterator[str]:
    count = fields.get("id")
    if count is None or count.rows < _FEW:
        return
    if kept * 2 < count.rows:
        yield f"{count.rows} rows give {kept} {what}: the others have no id or that of another row: look at `rows` and `id`"


def _lacking(what: str, values: Sequence[Any], name: str) -> Iterator[str]:
    """Yield a reason where a field is empty in many rows, but not in all."""
    empty = sum(not value for value in values)
    if len(values) >= _FEW and len(values) / 3 <= empty < len(values):
        yield f"{empty} of {len(values)} {what} have no {name}, the others have one: look at its selector"


def _repeated(bodies: list[str]) -> Iterator[str]:
    long = [body for body in bodies if len(body) >= _LONG]
    if len(long) < 2:
        return
    text, times = Counter(long).most_common(1)[0]
    if times * 2 > len(long):
        yield f"{times} of {len(long)} posts have the same text, {text!r:.60}: look at `body`"
        return
    for body in long:
        if sum(other != body and other in body for other in long) >= max(1, len(long) - 1):
            yield "the text of one post holds the texts of the others: look at `rows` and `body`"
            return


def _compared(posts: Sequence[Any], seen: SeenPage) -> Iterator[str]:
    """Yield the fields in which most posts differ from what the page shows."""
    shown = [one for post in seen.posts for one in (post, *post.comments)]
    if len(shown) < _FEW or seen.confidence < 0.5:
        return
    if not len(shown) * 0.7 <= len(posts) <= len(shown) * 1.5 + 1:
        yield f"{len(posts)} posts were read where the page seems to have {len(shown)}: look at `rows`"
        return
    texts = [_words(other.text) for other in shown[:_MOST]]
    bodies = [_words(own.body) for own in posts[:_MOST]]
    with_names = sum(_begins_with(own.body, own.author) for own in posts)
    if _most(with_names, len(posts)) and not _most(sum(_begins_with(one.text, one.author) for one in shown), len(shown)):
        yield "the texts begin with their authors: look at `body`"
    if _most(sum(all(_in_common(own, other) < _SAME for other in texts) for own in bodies), len(bodies)):
        yield f"the texts are not those that the page shows, such as {shown[0].text!r:.80}: look at `body`"
    authors = Counter(_normal(other.author) for other in shown if other.author)
    if _most(len(posts) - (authors & Counter(_normal(own.author) for own in posts)).total(), len(posts)) and authors:
        yield f"the authors are not those that the page shows, such as {next(iter(authors))!r:.80}: look at `author`"
    dates = sorted(other.published for other in shown if other.published is not None)
    own_dates = sorted(own.created_at for own in posts if own.created_at is not None)
    if len(dates) == len(own_dates) == len(shown):
        if len(set(own_dates)) == 1 < len(set(dates)) or _most(
            sum(not _are_near(own, other) for own, other in zip(own_dates, dates, strict=True)), len(dates)
        ):
            yield f"the dates are not those that the page shows, such as {dates[0]:%Y-%m-%d %H:%M}: look at `created_at`"
    elif len(dates) == len(shown) and not own_dates:
        yield f"no post has a date, and the page shows {dates[0]:%Y-%m-%d %H:%M}: look at `created_at`"


def _are_near(own: datetime, other: datetime) -> bool:
    """Return True if two dates are near, or would be with day and month of the other one in the other order."""
    turned = other.replace(month=other.day, day=other.month) if other.day <= 12 else other
    return min(abs(own - other), abs(own - turned)) <= _NEAR


def _most(wrong: int, of: int) -> bool:
    return wrong * 3 > of * 2


def _in_common(one: Counter[str], other: Counter[str]) -> float:
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def _begins_with(text: str, name: str | None) -> bool:
    return name is not None and len(name) > 1 and name.lower() in text[:_HEAD].lower()


def _normal(text: str | None) -> str:
    return " ".join(_WORD.findall((text or "").lower()))


def _is_from_an_age(date: datetime) -> bool:
    """Return True if a date may come from an age ("1 minute ago", "13 months ago"), which all rows of a new or an imported forum
    may have: it is of the last day, or of another one at this time of the day.
    """
    age = datetime.now(UTC) - date
    return age < _FRESH or age % _FRESH < _SLOW or -age % _FRESH < _SLOW


def is_by_creation(threads: Sequence[ListedThread]) -> bool:
    """Return True if a list is in the order in which its threads were made, by their dates or numbers, and not in that of their
    last activity.
    """
    rows = [one for one in threads if not one.sticky]
    activity = [one.last_activity for one in rows]
    if sum(one is not None for one in activity) <= _FEW or _falls(activity):
        return False
    return _falls([one.created_at for one in rows]) or _falls(
        [int(number[0]) if (number := _NUMBERED.match(one.id)) else None for one in rows]
    )


def _falls(values: Sequence[Any]) -> bool:
    """Return True if values stand from the highest to the lowest, but for a tenth of them."""
    steps = [after > before for before, after in pairwise(one for one in values if one is not None)]
    return len(steps) >= _FEW and sum(steps) * 10 <= len(steps)
