"""Trial of a site file on its site (`trawl sites check`): one page of each kind is fetched, and its fields are judged."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from scrapy import Request
from scrapy.http import HtmlResponse

from forum_reader.definition.fields import NEEDED
from forum_reader.definition.pages import RowsPage
from forum_reader.draft.paging_links import second_page
from forum_reader.errors import UnreadablePage
from forum_reader.page import soft_block
from forum_reader.readers.file_faults import (
    faults_of_list,
    faults_of_next_page,
    faults_of_thread,
    is_by_creation,
    seen_without_file,
)
from forum_reader.reading import page_records
from forum_reader.reading.page_records import Asked, RecentPage
from forums.sites import isolated

from .http.fetch import FetchFailed, Visitor

if TYPE_CHECKING:
    from forum_reader.definition.site import Site
    from forum_reader.reading.page_records import FieldCount, ListedThread, MoreComments


class TriedField(msgspec.Struct, frozen=True, kw_only=True):
    """A field on a tried page: empty in `empty` of `rows` rows; `example` as it would be stored."""

    name: str
    rows: int
    empty: int
    example: str | None
    required: bool


class TriedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page that was tried. `problem`: why it is of no use, None where it is; `hint`: a possible fault."""

    kind: str
    url: str
    rows: int = 0
    what: str = ""
    next: str | None = None
    pages: int | None = None
    total: int | None = None
    fields: tuple[TriedField, ...] = ()
    problem: str | None = None
    hint: str | None = None


class Trial:
    """Fetches the pages, as politely as a crawl."""

    def __init__(self, site: Site, visitor: Visitor) -> None:
        self._site = site
        self._visitor = visitor
        self.tried: list[TriedPage] = []
        self._titles: set[str] = set()

    async def run(self, forum: str | None, thread: str | None) -> list[TriedPage]:
        """Try the index where the file has one, a list page, an opening post, a page of comments."""
        if self._site.pages.index:
            index = await self._index()
            forum = forum or next(iter(self._site.forums), None) or (index.forums[0].id if index and index.forums else None)
        forum = forum or next(iter(self._site.forums), None)
        by_address = "url" in self._site.pages.comments.names  # known from the list only
        listed = await self._list(forum) if forum is not None and (thread is None or by_address) else []
        few = [one for one in listed[2:] if one.reply_count]  # a short thread has no next page: all its posts are counted
        threads = [*listed[:2], *few[-1:]] if thread is None else [one for one in listed if one.id == thread]
        if thread is not None and not threads:
            if by_address:
                problem = f"it is not on the first page of forum {forum}, and the file has its address from there: try another"
                self.tried.append(TriedPage(kind="comments", url=f"thread {thread}", problem=problem))
                return self.tried
            threads = [page_records.ListedThread(id=thread, token="")]
        if self._site.pages.recent:
            await self._recent()
        if threads and self._site.pages.thread:
            await self._thread(forum or "", threads[0])
        first = await self._comments(forum or "", threads[0]) if threads else None
        known = {comment.id for comment in first.comments} if first else set()
        for other in threads[1:] if known else ():
            await self._compare(forum or "", other, known)
        return self.tried

    async def _index(self) -> page_records.IndexPage | None:
        page: page_records.IndexPage | None = await self._read(self._site.url("index"), Asked(kind="index"))
        if page:
            self._note("index", page.forums, "forums", page)
        return page

    async def _list(self, forum: str) -> list[ListedThread]:
        """Return the forum's threads, the liveliest first."""
        address = self._site.list_url(forum)
        page: page_records.ListPage | None = await self._read(address, Asked(kind="list", forum=forum))
        if page is None:
            return []
        tokens = [count for name, count in page.fields.items() if name in ("token", "reply_count", "last_activity")]
        by_activity = self._site.pages.list.order == "activity"
        faults = [*faults_of_list(page, seen_without_file(self._response), by_activity=by_activity), self._no_next(page)]
        self._titles = {one.title for one in page.threads if one.title}
        if page.threads and all(count.empty == count.rows for count in tokens):
            faults.append("changed threads cannot be recognised: look at `reply_count` and `last_activity`, or set `token`")
        hint = 'the threads stand in the order of their creation: write `order = "created"` in [pages.list]'
        is_created = by_activity and is_by_creation([one for one in page.threads if not one.sticky])
        self._note("list", page.threads, f"threads of forum {forum}", page, hint if is_created else None, faults)
        await self._follow(page.next, Asked(kind="list", forum=forum, number=2), {one.id for one in page.threads})
        return sorted(page.threads, key=lambda one: -(one.reply_count or 0))

    async def _recent(self) -> None:
        """Try the page of newest messages; without it the site is watched by its lists."""
        page: RecentPage | None = await self._read(self._site.url("recent"), Asked(kind="recent"))
        if page:
            nothing = None if page.messages else "no rows: look at `rows`"
            self._note("recent", page.messages, "newest messages", page, nothing)
        else:
            last = self.tried[-1]
            hint = f"it is not there ({last.problem}): lists are scanned without it; `recent = false` in [pages] leaves it out"
            self.tried[-1] = msgspec.structs.replace(last, problem=None, hint=hint, what="newest messages")

    async def _thread(self, forum: str, thread: ListedThread) -> None:
        address = self._site.url("thread", forum=forum, thread=thread.id, url=thread.url)
        page = await self._read(address, Asked(kind="thread", thread=thread.id))
        if page:
            self._note("thread", [page.post], f"opening post of thread {thread.id}", page)

    async def _read_comments(self, forum: str, thread: ListedThread) -> page_records.CommentsPage | None:
        page: page_records.CommentsPage | None = await self._read(
            self._site.url("comments", forum=forum, thread=thread.id, url=thread.url),
            Asked(kind="comments", forum=forum, thread=thread.id, url=thread.url),
        )
        return page

    async def _comments(self, forum: str, thread: ListedThread) -> page_records.CommentsPage | None:
        page = await self._read_comments(forum, thread)
        if page is None:
            return None
        if page.post:
            fields = {name: _count(page.post, name) for name in msgspec.structs.asdict(page.post)}
            post = page_records.ThreadPage(
                post=page.post, fields={name: count for name, count in fields.items() if not count.empty}
            )
            self._note("post", [page.post], f"opening post of thread {thread.id}", post)
        own = {name: count for name, count in page.fields.items() if name in type(self._site.pages.comments.fields).model_fields}
        read = msgspec.structs.replace(page, fields=own)
        faults = [self._no_next(page) or self._of_board(page, forum), *self._faults(thread, page)]
        self._note("comments", page.comments, f"comments of thread {thread.id}", read, faults=faults)
        following = Asked(kind="comments", forum=forum, thread=thread.id, number=2, url=thread.url)
        if not faults[0]:
            await self._follow(page.next, following, {one.id for one in page.comments}, page.post_id)
        if page.left_out:
            await self._more(forum, thread, page.left_out[0])
        return page

    def _faults(self, thread: ListedThread, page: page_records.CommentsPage) -> list[str]:
        seen = seen_without_file(self._response)
        text = self._response.text if seen is not None else ""
        return list(faults_of_thread(thread, page, self._titles, seen, text))

    async def _follow(self, url: str | None, asked: Asked, ids: set[str], opening: str | None = None) -> None:
        """Try the next page: its rows are others, and are read as those of the first."""
        if url is None or not ids:
            return
        tried = len(self.tried)
        page = await self._read(url, asked)
        rows = () if page is None else page.threads if asked.kind == "list" else page.comments
        same = ids.intersection(one.id for one in rows)
        problem = "the next page has no rows: look at `next`"
        if len(same) * 2 > len(rows):
            problem = "the next page has the same rows: look at `next`, `url` and `id`"
        elif not rows and self._site.page_of(asked.kind, RowsPage).next is None:  # one behind the last may be empty, or none
            del self.tried[tried:]
            return
        faults = [problem] if page is not None and (same or not rows) and len(same) * 2 >= len(rows) else []
        if page is not None and asked.kind == "comments" and not faults:
            faults = list(faults_of_next_page(page, seen_without_file(self._response)))
            if self._site.pages.comments.repeats_post and page.post_id not in (None, opening):
                faults.append("the next page does not begin with the opening post: look at `repeats_post`")
        if faults:
            self.tried.append(TriedPage(kind=asked.kind, url=url, problem="; ".join(faults)))

    async def _more(self, forum: str, thread: ListedThread, left_out: MoreComments) -> None:
        """Try the first of the pages with comments that the thread's page leaves out."""
        asked = Asked(kind="more", forum=forum, thread=thread.id, url=thread.url, comment=left_out.comment, more=left_out.more)
        page: page_records.CommentsPage | None = await self._read(self._site.url(**asked.names), asked)
        if page:
            nothing = None if page.comments else "no rows: look at `rows` of [pages.more]"
            self._note("more", page.comments, f"comments that the page of thread {thread.id} leaves out", page, nothing)

    async def _compare(self, forum: str, thread: ListedThread, ids: set[str]) -> None:
        """Check that another thread's comments have other ids."""
        page = await self._read_comments(forum, thread)
        if page and (same := sorted(ids.intersection(comment.id for comment in page.comments))):
            problem = f"thread {thread.id} has a comment {same[0]}, too: an id must be of one comment of the site: look at `id`"
            self.tried.append(TriedPage(kind="comments", url=self._url, problem=problem))
        elif page and (faults := self._faults(thread, page)):
            self.tried.append(TriedPage(kind="comments", url=self._url, problem="; ".join(faults)))

    def _of_board(self, page: page_records.CommentsPage, forum: str) -> str | None:
        """Return a hint where the next page is one of the board, whose pages some threads have in the trail above them."""
        if page.next is None or not forum:
            return None
        board, own, following = (urlsplit(one).path for one in (self._site.list_url(forum), self._url, page.next))
        return f"the next page is one of the board: look at `next` ({page.next})" if following == board != own else None

    def _no_next(self, page: page_records.ListPage | page_records.CommentsPage) -> str | None:
        second = second_page(self._response) if page.next is None and isinstance(self._response, HtmlResponse) else None
        address = second.replace("{page}", "2") if second else None
        return f"no next page was found, but there is a link to {address}: look at `next`" if address else None

    async def _read(self, url: str, asked: Asked) -> Any:
        try:
            response = await self._visitor.get(self._site.asking(asked.kind, url))
            if response.status != 200:
                raise FetchFailed(f"answers with status {response.status}")
            response.request = Request(url)  # a redirect to a login is seen by what was requested
            if (wall := soft_block.verdict(response, self._site.page(asked.kind).answer)) is not None:
                raise FetchFailed(f"guests do not see it: {wall.reason}")
            self._response, self._url = response, response.url
            return await isolated.read_soon(self._site, response, asked)
        except (FetchFailed, UnreadablePage) as exc:
            self.tried.append(TriedPage(kind=asked.kind, url=url, problem=str(exc).removeprefix(f"{url}: ")))
            return None

    def _note(
        self,
        kind: str,
        rows: Sequence[Any],
        what: str,
        page: Any,
        hint: str | None = None,
        faults: Sequence[str | None] = (),
    ) -> None:
        fields = tuple(_field(kind, name, count, rows) for name, count in page.fields.items())
        dead = [field.name for field in fields if field.required and field.rows == field.empty]
        problem = f"{' and '.join(dead)} empty everywhere" if dead else "; ".join(filter(None, faults)) or None
        if not rows and kind in ("index", "list"):
            found = page.fields["id"].rows if "id" in page.fields else 0
            problem = f"{found} rows, but none has an id: look at `id`" if found else "no rows: look at `rows`"
            if kind == "list" and not found and len(self._site.forums) > 1:
                problem += ", or try another forum, if this one has no threads (--forum ID)"
        self.tried.append(
            TriedPage(
                kind=kind,
                url=self._url,
                rows=len(rows),
                what=what,
                next=getattr(page, "next", None),
                pages=getattr(page, "pages", None),
                total=getattr(page, "total", None),
                fields=fields,
                problem=problem,
                hint=hint,
            )
        )


def _field(kind: str, name: str, count: FieldCount, rows: Sequence[Any]) -> TriedField:
    values = (getattr(row, name, None) for row in rows)
    example = next((value for value in values if value not in (None, "")), None)
    shown = example.isoformat() if isinstance(example, datetime) else None if example is None else str(example)
    required = name in NEEDED.get(kind, ())
    return TriedField(name=name, rows=count.rows, empty=count.empty, example=shown, required=required)


def _count(record: Any, name: str) -> FieldCount:
    return page_records.FieldCount(rows=1, empty=int(getattr(record, name) in (None, "", False)))
