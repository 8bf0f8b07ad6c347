"""Forums of software that nobody knows, of our own making: the same threads in markups, addresses and ids that have nothing in
common. Each is a function from a path to a page; `FORUMS` names them all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import ClassVar

LIST_PAGE, THREAD_PAGE = 12, 8
NAMES = ("ida", "walter", "grundig fan", "Maria", "old-oak", "Ben K", "tube_42")
TOPICS = (
    "humming radio", "slugs in spring", "best spade", "moss on the roof", "frost and figs", "compost smells", "bees in march",
    "old apple tree", "water barrel leaks", "seed exchange", "ladder advice", "wasps again", "lawn or meadow", "potato blight",
    "pond in the shade", "hedge law", "greenhouse glass", "mole hills", "rose black spot", "winter cover",
)  # fmt: skip
WORDS = (
    "try it with another one first and tell us what happens then", "mine has done so for years and nobody ever found out why",
    "it depends on the soil, the weather, and on how patient you are", "I would not do that before the end of the last frost",
    "there was a thread about just this some years ago, look for it", "thank you, that helped, and it was easier than I feared",
    "no, never, and whoever says so has not seen what came of it here", "a photo would help us to see what you mean by that",
)  # fmt: skip
START = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Post:
    """A post, with its id as its forum writes it."""

    id: str
    author: str
    at: datetime
    text: str


@dataclass(frozen=True)
class Thread:
    """A thread with its posts, the opening one first."""

    id: str
    board: str
    title: str
    posts: tuple[Post, ...]

    @property
    def last(self) -> Post:
        """Its newest post."""
        return self.posts[-1]


class UnknownForum:
    """Threads, newest activity first, and the pages of a make."""

    boards: ClassVar[tuple[str, ...]] = ("garden", "tools")
    numbered: ClassVar[bool] = True

    def __init__(self) -> None:
        self.threads = sorted((self._thread(n) for n in range(40)), key=lambda one: one.last.at, reverse=True)

    def of_board(self, board: str) -> list[Thread]:
        """Its threads, as its list has them."""
        return [thread for thread in self.threads if thread.board == board]

    def page(self, path: str) -> str | None:
        """The page at a path with its query; None where there is none."""
        raise NotImplementedError

    def thread_id(self, n: int, title: str) -> str:
        """As it stands in addresses."""
        return str(700 + 3 * n)

    def post_id(self, n: int, m: int) -> str:
        """As it stands in attributes."""
        return str(52_000 + 31 * n + m)

    def _thread(self, n: int) -> Thread:
        title = f"{TOPICS[n % len(TOPICS)].capitalize()} {('in the yard', 'by the house')[n // len(TOPICS)]}"
        count = (3, 1, 5, 11, 2, 19, 4)[n % 7] + (n % 3)
        posts = tuple(
            Post(
                id=self.post_id(n, m),
                author=NAMES[(n + m * (m + 1) // 2) % len(NAMES)],
                at=START + timedelta(days=2 * n % 61, hours=5 * m, minutes=7 * n + m),
                text=f"About {TOPICS[(n + m) % len(TOPICS)]}: {WORDS[(n + m) % 8]}, said {NAMES[m % 7]} "
                f"in the year {1900 + (n * 31 + m) % 97}.",
            )
            for m in range(count)
        )
        return Thread(self.thread_id(n, title), self.boards[n % len(self.boards)], title, posts)


def document(title: str, body: str) -> str:
    """A whole page."""
    nav = '<div><a href="/">Home</a> <a href="/login">Log in</a> <a href="/search">Search</a></div>'
    return (
        f'<!DOCTYPE html><html lang="en"><head><title>{title}</title></head><body>{nav}{body}'
        '<p>All times are UTC. <a href="/privacy">Privacy</a></p></body></html>'
    )


def piece(items: list, number: int, size: int) -> list:
    """The items of a page."""
    return items[(number - 1) * size : number * size]


def split(path: str) -> tuple[str, int]:
    """A path and the number of its page."""
    address, _, query = path.partition("?")
    rest = [one for one in query.split("&") if one and not one.startswith("page=")]
    number = next((int(one[5:]) for one in query.split("&") if one.startswith("page=")), 1)
    return address + ("?" + "&".join(rest) if rest else ""), number


def pager(address: str, number: int, count: int, size: int, word: str = "Next") -> str:
    """Links to the other pages."""
    pages = ceil(count / size)
    mark = "&amp;" if "?" in address else "?"
    links = [f'<a href="{address}{mark}page={n}">{n}</a>' for n in range(1, pages + 1) if n != number]
    if number < pages:
        links.append(f'<a class="go-next" href="{address}{mark}page={number + 1}">{word}</a>')
    return f'<div class="pages">{" ".join(links)}</div>' if pages > 1 else ""


class Tables(UnknownForum):
    """Tables: an index of boards, ids in queries, a post is two rows."""

    def page(self, path: str) -> str | None:
        address, number = split(path)
        if address == "/":
            rows = "".join(
                f'<tr><td><a href="show.cgi?board={b}">{b.capitalize()}</a><br>All about {b}</td>'
                f"<td>{len(self.of_board(b))}</td></tr>"
                for b in self.boards
            )
            return document("Yard talk", f"<h1>Yard talk</h1><table border=1>{rows}</table>")
        kind, _, key = address.removeprefix("/show.cgi?").partition("=")
        if kind == "board" and key in self.boards:
            return self._list(key, number)
        thread = next((one for one in self.threads if kind == "thread" and one.id == key), None)
        return self._thread_page(thread, number) if thread else None

    def _list(self, board: str, number: int) -> str:
        threads = self.of_board(board)
        rows = "".join(
            f'<tr class="r{n % 2}"><td><a href="show.cgi?thread={t.id}">{t.title}</a></td>'
            f'<td><a href="who.cgi?user={t.posts[0].author}">'
            f"{t.posts[0].author}</a></td><td>{len(t.posts) - 1}</td><td>{t.last.at:%d %b %Y %H:%M}</td></tr>"
            for n, t in enumerate(piece(threads, number, LIST_PAGE))
        )
        head = "<tr><th>Topic</th><th>By</th><th>Replies</th><th>Last</th></tr>"
        links = pager(f"/show.cgi?board={board}", number, len(threads), LIST_PAGE)
        return document(board, f'<h1>{board.capitalize()}</h1><table id="threads">{head}{rows}</table>{links}')

    def _thread_page(self, thread: Thread, number: int) -> str:
        rows = "".join(
            f'<tr class="head"><td><a name="p{p.id}"></a><a href="who.cgi?user={p.author}">{p.author}</a></td>'
            f"<td>{p.at:%d %b %Y %H:%M}</td></tr>"
            f'<tr class="said"><td colspan=2>{p.text}</td></tr>'
            for p in piece(list(thread.posts), number, THREAD_PAGE)
        )
        links = pager(f"/show.cgi?thread={thread.id}", number, len(thread.posts), THREAD_PAGE)
        up = f'<a href="show.cgi?board={thread.board}">{thread.board}</a>'
        return document(thread.title, f"<p>{up}</p><h1>{thread.title}</h1><table>{rows}</table>{links}")


class Hex(UnknownForum):
    """Nested divs with hashes for ids; the front page is the only list, and says "Older"."""

    boards = ("all",)

    def thread_id(self, n: int, title: str) -> str:
        return hashlib.sha1(f"t{n}".encode()).hexdigest()[:10]

    def post_id(self, n: int, m: int) -> str:
        return hashlib.sha1(f"p{n}.{m}".encode()).hexdigest()[:10]

    def page(self, path: str) -> str | None:
        address, number = split(path)
        if address == "/":
            rows = "".join(
                f'<div class="entry"><div class="subject"><a href="/thread/{t.id}">{t.title}</a></div><div class="info">'
                f'<span class="n">{len(t.posts)} posts</span> <time datetime="{t.last.at.isoformat()}">'
                f"some time ago</time></div></div>"
                for t in piece(self.threads, number, LIST_PAGE)
            )
            return document("Talk", f'<h1>Talk</h1><div id="entries">{rows}</div>{pager("/", number, 40, LIST_PAGE, "Older")}')
        thread = next((one for one in self.threads if address == f"/thread/{one.id}"), None)
        if thread is None:
            return None
        rows = "".join(
            f'<div class="box" id="m-{p.id}"><div class="top"><b class="nick">{p.author}</b> <time datetime="{p.at.isoformat()}">'
            f'some time ago</time> <a href="#m-{p.id}">link</a></div><div class="words"><p>{p.text}</p></div>'
            f'<div class="foot"><a href="/reply/{p.id}">Reply</a></div></div>'
            for p in piece(list(thread.posts), number, THREAD_PAGE)
        )
        links = pager(address, number, len(thread.posts), THREAD_PAGE, "Older")
        return document(f"{thread.title} - Talk", f"<h1>{thread.title}</h1><div>{rows}</div>{links}")


class Definitions(UnknownForum):
    """Definition lists: slugs for ids of threads and boards, names before their dates."""

    def thread_id(self, n: int, title: str) -> str:
        return title.lower().replace(" ", "-")

    def page(self, path: str) -> str | None:
        address, number = split(path)
        parts = address.strip("/").split("/")
        if address == "/":
            rows = "".join(f'<dt><a href="/talk/{b}/">{b.capitalize()} talk</a></dt><dd>All about {b}</dd>' for b in self.boards)
            return document("Yard", f'<h1>Yard</h1><dl class="boards">{rows}</dl>')
        if len(parts) == 2 and parts[1] in self.boards:
            threads = self.of_board(parts[1])
            rows = "".join(
                f'<dt class="topic"><a href="/talk/{t.board}/{t.id}/">{t.title}</a></dt><dd>{len(t.posts) - 1} answers, last on '
                f"<span>{t.last.at:%B %d, %Y, %H:%M}</span></dd>"
                for t in piece(threads, number, LIST_PAGE)
            )
            return document(parts[1], f"<h1>{parts[1]}</h1><dl>{rows}</dl>{pager(address, number, len(threads), LIST_PAGE)}")
        thread = next((one for one in self.threads if parts[1:] == [one.board, one.id]), None)
        if thread is None:
            return None
        rows = "".join(
            f'<dt id="c{p.id}"><strong>{p.author}</strong>, <i>{p.at:%B %d, %Y, %H:%M}</i></dt><dd>{p.text}</dd>'
            for p in piece(list(thread.posts), number, THREAD_PAGE)
        )
        up = f'<a href="/talk/{thread.board}/">{thread.board}</a>'
        links = pager(address, number, len(thread.posts), THREAD_PAGE)
        return document(thread.title, f"<p>{up}</p><h1>{thread.title}</h1><dl>{rows}</dl>{links}")


class Lists(UnknownForum):
    """Lists with an id and a title in addresses; classes say what things are, dates are written by day first."""

    def page(self, path: str) -> str | None:
        address, number = split(path)
        if address == "/":
            rows = "".join(
                f'<li class="board"><h3><a href="/b/{n}-{b}">{b.capitalize()} and more</a></h3></li>'
                for n, b in enumerate(self.boards, 1)
            )
            return document("Board", f'<h1>Board</h1><ul class="boards">{rows}</ul>')
        for n, board in enumerate(self.boards, 1):
            if address == f"/b/{n}-{board}":
                threads = self.of_board(board)
                rows = "".join(
                    f'<li class="topic"><a class="title" href="/topic/{t.id}-{t.title.lower().replace(" ", "-")}">{t.title}</a> '
                    f'<span class="by">by <a href="/user/{t.posts[0].author}">{t.posts[0].author}</a></span> '
                    f'<span class="views">{3 * len(t.posts) + 40} views</span> <span class="replies">{len(t.posts) - 1}</span> '
                    f'<a class="last" href="/topic/{t.id}-{t.title.lower().replace(" ", "-")}#post{t.last.id}">'
                    f"{t.last.at:%d.%m.%Y %H:%M}</a></li>"
                    for t in piece(threads, number, LIST_PAGE)
                )
                links = pager(address, number, len(threads), LIST_PAGE)
                return document(board, f'<h1>{board}</h1><ol class="topics">{rows}</ol>{links}')
        thread = next((one for one in self.threads if address.startswith(f"/topic/{one.id}-")), None)
        if thread is None:
            return None
        rows = "".join(
            f'<li class="post" data-post-id="{p.id}"><span class="user"><a href="/user/{p.author}">{p.author}</a></span>'
            f'<span class="when">{p.at:%d.%m.%Y %H:%M}</span><div class="content">{p.text}</div></li>'
            for p in piece(list(thread.posts), number, THREAD_PAGE)
        )
        n = 1 + self.boards.index(thread.board)
        up = f'<a href="/b/{n}-{thread.board}">{thread.board}</a>'
        links = pager(address, number, len(thread.posts), THREAD_PAGE)
        return document(thread.title, f'<p>{up}</p><h1>{thread.title}</h1><ol class="posts">{rows}</ol>{links}')


class ListsOfSpeakers(Lists):
    """Names are elements within elements that have a word more, as in a blog's comments: `ida says:`."""

    def page(self, path: str) -> str | None:
        found = super().page(path)
        user = r'<span class="user"><a [^>]*>([^<]*)</a></span>'
        speaker = r'<div class="comment-author vcard"> <b class="fn">\1</b> <span class="says">says:</span> </div>'
        return found and re.sub(user, speaker, found)


class Plain(UnknownForum):
    """No class and no id anywhere: a post has a name, a date and a text. Threads are known by letters and digits."""

    boards = ("all",)

    def thread_id(self, n: int, title: str) -> str:
        return "".join(
            "0123456789abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"[(7 * n + 13 * k * (n + 3)) % 58] for k in range(1, 6)
        ) + str(n)

    def page(self, path: str) -> str | None:
        address, number = split(path)
        if address == "/":
            rows = "".join(
                f'<li><a href="/x/{t.id}">{t.title}</a> '
                f"<small>{len(t.posts) - 1} replies, {t.last.at:%Y-%m-%d %H:%M}</small></li>"
                for t in piece(self.threads, number, LIST_PAGE)
            )
            more = f'<p><a href="/?page={number + 1}" rel="next">More</a></p>' if number * LIST_PAGE < len(self.threads) else ""
            return document("Plain talk", f"<h1>Plain talk</h1><ol>{rows}</ol>{more}")
        thread = next((one for one in self.threads if address == f"/x/{one.id}"), None)
        if thread is None:
            return None
        rows = "".join(
            f"<div><p><b>{p.author}</b> on <i>{p.at:%Y-%m-%d %H:%M}</i></p><p>{p.text}</p></div>" for p in thread.posts
        )
        return document(thread.title, f"<h2>{thread.title}</h2><div>{rows}</div>")


class Marked(UnknownForum):
    """A question around its answers, and comments within those: three kinds of posts, marked for search engines."""

    boards = ("all",)

    def page(self, path: str) -> str | None:
        address, number = split(path)
        if address == "/":
            rows = "".join(
                f'<article><a href="/q/{t.id}">{t.title}</a> <i>{len(t.posts) - 1} posts</i> '
                f"<b>{t.last.at:%Y-%m-%d %H:%M}</b></article>"
                for t in piece(self.threads, number, LIST_PAGE)
            )
            return document("Asked", f"<h1>Asked</h1>{rows}{pager('/', number, 40, LIST_PAGE)}")
        thread = next((one for one in self.threads if address == f"/q/{one.id}"), None)
        if thread is None:
            return None
        asked, *others = thread.posts
        answers = "".join(
            f'<div class="answer" id="a{others[n].id}" {_item("Answer")}>{_said(others[n])}<ul>'
            + "".join(f'<li class="remark" id="r{p.id}" {_item("Comment")}>{_said(p)}</li>' for p in others[n + 1 : n + 3])
            + "</ul><form><h4>Your remark on this answer</h4><p>Tell us only what helps others.</p></form></div>"
            for n in range(0, len(others), 3)
        )
        question = f'<div class="asked"><h1 itemprop="name">{thread.title}</h1>{_said(asked)}</div>'
        return document(thread.title, f'<div {_item("Question")}>{question}<section class="all">{answers}</section></div>')


def _item(kind: str) -> str:
    return f'itemscope itemtype="https://schema.org/{kind}"'


def _said(post: Post) -> str:
    return (
        f'<p>0 votes <time itemprop="dateCreated" datetime="{post.at.isoformat()}">{post.at:%B %d}</time> '
        f'<span itemprop="author" {_item("Person")}><a href="/user/{post.author}">'
        f'<span itemprop="name">{post.author}</span></a></span></p>'
        f'<div itemprop="text"><p>{post.text}</p></div>'
    )


class Articles(UnknownForum):
    """An article of several elements above its comments, with a line of author and date; names head the dates of comments."""

    boards = ("all",)

    def thread_id(self, n: int, title: str) -> str:
        return title.lower().replace(" ", "-")

    def page(self, path: str) -> str | None:
        address, number = split(path)
        if address == "/":
            rows = "".join(
                f'<h2><a href="/log/{t.id}/">{t.title}</a></h2><p>{len(t.posts) - 1} comments</p>'
                f"<p>{t.last.at:%Y-%m-%d %H:%M}</p>"
                for t in piece(self.threads, number, LIST_PAGE)
            )
            return document("Log", f"<h1>Log</h1><div>{rows}</div>{pager('/', number, 40, LIST_PAGE)}")
        thread = next((one for one in self.threads if address == f"/log/{one.id}/"), None)
        if thread is None:
            return None
        written, *others = thread.posts
        rows = "".join(
            f'<div class="remark" id="remark-{p.id}"><h4>{p.author} <small>{p.at:%Y-%m-%d %H:%M}</small></h4>'
            f"<p>{p.text}</p></div>"
            for p in others
        )
        line = f'<h6 class="line">By <a href="/author/{written.author}/">{written.author}</a> {written.at:%Y-%m-%d %H:%M}</h6>'
        text = f'<p>(<a href="#remarks">{len(others)} comments</a>)</p><p>{written.text}</p><div class="share">Share this</div>'
        article = f'<div class="middle">{line}{text}<div id="remarks"><h3>Comments</h3>{rows}</div><div>Write one</div></div>'
        return document(thread.title, f"<h1>{thread.title}</h1>{article}")


FORUMS: dict[str, Callable[[], UnknownForum]] = {
    "tables": Tables,
    "hex": Hex,
    "definitions": Definitions,
    "lists": Lists,
    "lists of speakers": ListsOfSpeakers,
    "plain": Plain,
    "marked": Marked,
    "articles": Articles,
}
