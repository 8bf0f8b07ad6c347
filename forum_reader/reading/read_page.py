"""Reads pages by a site file, for any software: rows in reading order, and the id of the comment that each of them answers.

Pure: a site, a response (HTML or JSON, fetched or stored) and a request give a record. Raises UnreadablePage where nothing of the
page matches the site file.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from forum_reader.definition.pages import IndexPageSpec, MorePageSpec, RecentPageSpec, RowsPage, ThreadPageSpec
from forum_reader.errors import UnreadablePage
from forum_reader.reading.parse_body import in_web_encoding

from .html_text import WORDS, parents_of
from .page_records import (
    AnyPage,
    Asked,
    CommentsPage,
    IndexPage,
    ListedForum,
    ListedThread,
    ListPage,
    MoreComments,
    ReadComment,
    ReadPost,
    RecentMessage,
    RecentPage,
    ThreadPage,
)
from .page_values import Ahead, Document, ahead, is_behind_the_end, not_too_many, own_number

if TYPE_CHECKING:
    from forum_reader.definition.pages import CommentRows
    from forum_reader.definition.site import Site
    from forum_reader.page.response import Response

_LONGEST_TOKEN = 200  # characters
_DIGEST = 8  # bytes
SHARED = "~"
"""Between the id that several posts of a page share and the number of the second and further ones."""
NO_SIGN = "None@None"
"""Token of a row that shows neither replies nor a date: by it no change can be seen."""
_REMOVED = re.compile(
    rf"\W*(?:{'|'.join(WORDS['removed'].values())})(?:{'|'.join(WORDS['more'].values())})?[^\w?]*", re.IGNORECASE
)
_LONGEST_PLACEHOLDER = 120  # characters
_DEEPEST = 500  # levels; a page that nests deeper is cut there


class Row(msgspec.Struct, frozen=True):
    """A row, and the id of the row around it."""

    node: Any
    parent_id: str | None


class Numbers:
    """Numbers of the posts of a page, by which answers refer to posts. They are removed from the rows' values."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._ids: dict[str, str] = {}
        self._answers: dict[str, str] = {}
        for values in rows:
            number, answers = values.pop("number", None), values.pop("parent_number", None)
            if number is not None and values["id"] is not None:
                self._ids.setdefault(number, values["id"])
            if answers is not None and values["id"] is not None:
                self._answers.setdefault(values["id"], answers)

    def answered(self, comment_id: str) -> str | None:
        """Return the id of the post that a row answers, by its number; None where that is unknown, or the row itself."""
        found = self._ids.get(self._answers.get(comment_id, ""))
        return None if found == comment_id else found


def rows_of(doc: Document, page: CommentRows) -> list[Row]:
    """Return all comments of a page."""
    found = doc.rows(page)
    if page.children is not None:
        return _of_json(doc, page, found)
    if page.nested:
        return _of_html(doc, page, found)
    return [Row(node, None) for node in found]


def nothing_of(what: str, fields: Any) -> UnreadablePage:
    """Return the error for a page without `what`, with the selectors that found nothing."""
    selectors = ", ".join(f"{name} = {' or '.join(field.select)}" for name, field in fields.declared if name in ("id", "body"))
    return UnreadablePage(f"has nothing of {what}: looked for {selectors}")


def _of_json(doc: Document, page: CommentRows, top: list[Any]) -> list[Row]:
    listed: list[Row] = []
    waiting: list[tuple[Any, str | None, int]] = [(node, None, 0) for node in reversed(top)]
    while waiting:
        node, parent_id, depth = waiting.pop()
        listed.append(Row(node, parent_id))
        if page.children is None or depth >= _DEEPEST:
            continue
        own_id = doc.peek(page.fields.id, node)
        for answers in doc.find(page.children, node):
            if isinstance(answers, list):
                waiting += [(answer, own_id, depth + 1) for answer in reversed(answers) if answer is not None]
    return not_too_many(listed)


def _of_html(doc: Document, page: CommentRows, found: list[Any]) -> list[Row]:
    parents = parents_of(found)
    around = frozenset(parents.values())
    ids = {row: doc.peek(page.fields.id, row) for row in found if row in around}
    return [Row(row, ids.get(parents[row])) for row in found]


def read_index(site: Site, response: Response, number: int | None = 1, *, root: Any = None) -> IndexPage:
    """Read the forums that a page of the index lists. `number` and `root` as in `read_comments`."""
    page = site.page_of("index", IndexPageSpec)
    doc = Document(site, page, response, root)
    place = Asked(kind="index", number=own_number(doc, page) if number is None else number)
    rows = [] if is_behind_the_end(doc, page, place.number) else doc.rows(page)
    forums: dict[str, ListedForum] = {}
    for values in doc.values_of(rows, page.fields):
        if values["id"] is not None and values["id"] not in forums:
            forums[values["id"]] = ListedForum(**(values | {"name": values.get("name") or values["id"]}))
    return IndexPage(forums=tuple(forums.values()), next=_ahead(doc, place, rows).next, fields=doc.counts())


def read_list(site: Site, response: Response, forum: str, number: int | None = 1, *, root: Any = None) -> ListPage:
    """Read the threads of a list page, each once, in the page's order. `number` and `root` as in `read_comments`."""
    page = site.pages.list
    doc = Document(site, page, response, root)
    place = Asked(kind="list", forum=forum, number=own_number(doc, page) if number is None else number)
    rows = [] if is_behind_the_end(doc, page, place.number) else doc.rows(page)
    threads: dict[str, ListedThread] = {}
    for values in doc.values_of(rows, page.fields):
        if values["id"] is None or values["id"] in threads:
            continue
        values["token"] = _short(values.get("token") or _token(doc, values))
        threads[values["id"]] = ListedThread(**values)
    after = _ahead(doc, place, rows)
    return ListPage(threads=tuple(threads.values()), next=after.next, pages=after.pages, fields=doc.counts())


def read_thread(site: Site, response: Response, thread: str) -> ThreadPage:
    """Read the opening post of a thread. Raises UnreadablePage where the page has none."""
    page = site.page_of("thread", ThreadPageSpec)
    doc = Document(site, page, response)
    post = _post(doc.values(doc.root, page.fields), thread)
    if not post.body and not post.deleted and post.title is None:
        raise nothing_of("an opening post", page.fields)
    return ThreadPage(post=post, fields=doc.counts())


def read_comments(
    site: Site,
    response: Response,
    thread: str,
    number: int | None = 1,
    *,
    forum: str = "",
    url: str | None = None,
    opening: str = "",
    root: Any = None,
    classes: frozenset[str] | None = None,
    whole: bool = True,
) -> CommentsPage:
    """Read the comments of a page, the oldest first, answers after the post that they answer, and the opening post where it is
    on the page. `number` None: the page's own. `opening` as in `Asked`. `root` and `classes`: its tree and its classes, where
    these are known. `whole` = False: the next page, comments outside of the page and the HTML of posts are left out.
    """
    page = site.pages.comments
    doc = Document(site, page, response, root, thread=thread, classes=classes, with_html=whole)
    is_other = number is not None and is_behind_the_end(doc, page, number)
    number = own_number(doc, page) if number is None else number
    place = Asked(kind="comments", forum=forum, thread=thread, number=number, url=url)
    rows, read = ([], []) if is_other else _rows_with_values(doc, page)
    after = _ahead(doc, place, rows) if whole or page.order == "newest" else Ahead()
    is_forward = page.order == "oldest"
    if page.order == "newest":
        rows, read = rows[::-1], read[::-1]
    has_oldest = number == 1 if is_forward else after.next is None
    has_opening = page.first_is_post and has_oldest
    post = doc.values(doc.root, page.post) if page.post and (has_opening or number == 1) else None
    own: str | None = None  # the row's id of the opening post: an answer to it answers no comment
    if page.first_is_post and number == 1 and not rows:
        raise nothing_of("an opening post", page.fields)
    is_again = page.first_is_post and page.repeats_post and is_forward and not has_opening
    if (has_opening or is_again) and rows:
        own = read[0]["id"]
    if has_opening and rows:
        post = read[0] | {"id": thread} | {name: value for name, value in (post or {}).items() if value is not None}
    size = page.per_page - page.repeats_post if page.per_page and is_forward else None  # number of comments
    before = 0 if has_oldest and number == 1 else None if size is None else (number - 1) * size
    first = None if before is None else before + (0 if page.first_is_post else 1)
    comments = _comments(rows, read, opening=own or opening, first=first, skips=has_opening or is_again)
    return CommentsPage(
        comments=tuple(comments.values()),
        post=_post(post, thread) if post and (own is not None or post.get("body") or post.get("deleted")) else None,
        post_id=own,
        next=after.next,
        pages=after.pages,
        total=after.total,
        left_out=_left_out(doc, page, read) if whole else (),
        fields=doc.counts(),
        has_numeric_dates=doc.has_numeric_dates,
    )


def read_more(site: Site, response: Response, place: Asked) -> CommentsPage:
    """Read the comments of a page that a thread's pages leave out; those without a parent on it answer `place.comment`."""
    page = site.page_of("more", MorePageSpec)
    doc = Document(site, page, response, thread=place.thread)
    rows, read = ([], []) if is_behind_the_end(doc, page, place.number) else _rows_with_values(doc, page)
    comments = _comments(rows, read, opening=None, first=None, skips=False)
    answered = place.comment if place.comment != place.thread else None  # an answer to the opening post answers no comment
    return CommentsPage(
        comments=tuple(
            msgspec.structs.replace(one, parent_id=one.parent_id or answered or None)
            for one in comments.values()
            if one.id != place.comment  # some pages begin with the answered comment
        ),
        next=_ahead(doc, place, rows).next,
        left_out=_left_out(doc, page, read),
        fields=doc.counts(),
    )


def _rows_with_values(doc: Document, page: CommentRows) -> tuple[list[Row], list[dict[str, Any]]]:
    rows = rows_of(doc, page)
    return rows, list(doc.values_of([row.node for row in rows], page.fields))


def _comments(
    rows: list[Row], read: list[dict[str, Any]], *, opening: str | None, first: int | None, skips: bool
) -> dict[str, ReadComment]:
    """Return the rows' comments, each once. `first`: the first row's place in the thread; `skips`: it is the opening post."""
    numbers = Numbers(read)
    comments: dict[str, ReadComment] = {}
    for at, (row, values) in enumerate(zip(rows, read, strict=True)):
        if values["id"] is None or (opening and values["id"] == opening and not skips):
            continue
        answered = row.parent_id or values.get("parent_id") or numbers.answered(values["id"])
        body = values.get("body") or ""
        given = {
            "body": body,
            "deleted": bool(values.get("deleted")) or is_placeholder(body),
            "parent_id": None if answered == opening else answered,
            "position": values.get("position") or (None if first is None else first + at),
        }
        kept = {name: value for name, value in values.items() if name != "load_more"}
        _add(comments, ReadComment(**(kept | given)))
    if skips and opening:
        comments.pop(opening, None)  # what the page repeats of it is left out, too
    return comments


def _add(comments: dict[str, ReadComment], one: ReadComment) -> None:
    """Add a comment, unless it is there: a page may repeat a post, whole or in part. Another post with the same id gets
    another one.
    """
    id_, times = one.id, 1
    while (known := comments.get(id_)) is not None:
        is_same = known.created_at is not None and (known.author, known.created_at) == (one.author, one.created_at)
        if is_same or known.body in one.body or one.body in known.body:
            return
        times += 1
        id_ = f"{one.id}{SHARED}{times}"
    comments[id_] = one if id_ == one.id else msgspec.structs.replace(one, id=id_)


def _left_out(doc: Document, page: CommentRows, read: list[dict[str, Any]]) -> tuple[MoreComments, ...]:
    """Return the ways to comments that are not on a page, each once."""
    of_rows = [MoreComments(more=values["load_more"], comment=values["id"] or "") for values in read if values.get("load_more")]
    of_page = [MoreComments(more=address) for address in doc.addresses(page.load_more)]
    return tuple({one.more + "\0" + one.comment: one for one in [*of_page, *of_rows]}.values())


def _post(values: dict[str, Any], thread: str) -> ReadPost:
    known = {name: values[name] for name in ReadPost.__struct_fields__ if values.get(name) is not None}
    return ReadPost(**({"id": thread} | known | ({"deleted": True} if is_placeholder(known.get("body", "")) else {})))


def _short(token: str) -> str:
    """Return a token as it is stored with each thread: a digest of a long one, as of a row that shows posts."""
    return token if len(token) <= _LONGEST_TOKEN else blake2b(token.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _token(doc: Document, values: dict[str, Any]) -> str:
    """Return reply count and last activity; without a relative date ("2 hours ago"), which differs at each reading and would
    mark each thread as changed.
    """
    count, last = values.get("reply_count"), values.get("last_activity")
    if last is not None and "last_activity" in doc.moving and count is not None:
        return f"{count}@"
    return f"{count}@{last.isoformat() if last else None}"


def _ahead(doc: Document, place: Asked, rows: list[Any]) -> Ahead:
    return ahead(doc, doc.site.page_of(place.kind, RowsPage), place, len(rows))


def read_recent(site: Site, response: Response, number: int = 1) -> RecentPage:
    """Read the messages of a page, each once. Raises UnreadablePage."""
    page = site.page_of("recent", RecentPageSpec)
    doc = Document(site, page, response)
    place = Asked(kind="recent", number=number)
    rows = [] if is_behind_the_end(doc, page, place.number) else doc.rows(page)
    rows_values = list(doc.values_of(rows, page.fields))
    numbers = {(one["thread"], one["number"]): one for one in rows_values if one.get("number") is not None}
    messages: dict[str, RecentMessage] = {}
    for values in rows_values:
        if values["thread"] is not None:
            message = _message(values, numbers)
            messages.setdefault(message.mark, message)
    return RecentPage(messages=tuple(messages.values()), next=ahead(doc, page, place, len(rows)).next, fields=doc.counts())


def _message(values: dict[str, Any], numbers: dict[tuple[str, str], dict[str, Any]]) -> RecentMessage:
    known = {name: values[name] for name in RecentMessage.__struct_fields__ if values.get(name) is not None}
    created, edited = values.get("created_at"), values.get("edited_at")
    if (own := values.get("id")) is not None:
        mark = f"{own}"
    else:
        mark = f"{values['thread']} {values.get('token') or values.get('reply_count')} {created and created.isoformat()}"
    state = (values.get("body") or "", edited.isoformat() if edited else "", str(bool(values.get("deleted"))))
    answered = numbers.get((values["thread"], values.get("parent_number") or ""))
    parent = values.get("parent_id") or (answered or {}).get("id")
    if answered is not None and answered.get("opening"):
        parent = None
    return RecentMessage(
        **known
        | {
            "mark": mark,
            "digest": blake2b("\x1f".join(state).encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest(),
            "parent_id": parent,
            "has_unknown_parent": values.get("parent_number") is not None and parent is None and answered is None,
        }
    )


def is_placeholder(text: str) -> bool:
    """Return True if a text is no more than what forums show in the place of a deleted post."""
    return 0 < len(text) <= _LONGEST_PLACEHOLDER and _REMOVED.fullmatch(text) is not None


def read(site: Site, response: Response, asked: Asked) -> AnyPage:
    """Read the page as its kind. Raises UnreadablePage."""
    response = in_web_encoding(response)
    if asked.kind == "index":
        return read_index(site, response, asked.number)
    if asked.kind == "list":
        return read_list(site, response, asked.forum, asked.number)
    if asked.kind == "recent":
        return read_recent(site, response, asked.number)
    if asked.kind == "thread":
        return read_thread(site, response, asked.thread)
    if asked.kind == "more":
        return read_more(site, response, asked)
    return read_comments(site, response, asked.thread, asked.number, forum=asked.forum, url=asked.url, opening=asked.opening)
