"""A forum of unknown software, in which what leads to threads stands in many places: index, boxes, relative links."""

from __future__ import annotations

import re
from math import ceil

from tests.support.unknown_forums import LIST_PAGE, THREAD_PAGE, Thread, UnknownForum, document


class Newest(UnknownForum):
    """Boards with their newest thread each, titles cut; links relative to a base, with session ids and offsets; pages have but
    numbers, opening posts no id, threads a box with others.
    """

    def page(self, path: str) -> str | None:
        address, _, query = path.partition("?")
        parts = re.sub(r";jsessionid=\w+", "", address).strip("/").removeprefix("./").split("/")
        start = int(dict(one.split("=") for one in query.split("&") if one).get("start", 0))
        if parts == [""]:
            return self._index()
        if parts[0] == "board" and parts[1] in self.boards:
            return self._list(parts[1], start)
        thread = next((one for one in self.threads if one.id == parts[0]), None)
        return self._thread_page(thread, start) if thread else None

    def _link(self, thread: Thread, more: str = "") -> str:
        return f"./{thread.id}/{thread.title.lower().replace(' ', '-')};jsessionid=9A{thread.id}{more}"

    def _document(self, title: str, body: str) -> str:
        return document(title, body).replace("<head>", '<head><base href="http://forum.example/">')

    def _index(self) -> str:
        newest = [(board, self.of_board(board)[0]) for board in self.boards]
        rows = "".join(
            f'<tr><td class="name"><h3><a href="board/{b}">{b.capitalize()} talk</a></h3>All about {b}</td><td class="newest">'
            f'<a href="{self._link(t, "?start=0")}">{t.title[:12]}..</a><br>{t.last.author}, {t.last.at:%d %b %Y %H:%M}</td></tr>'
            for b, t in newest
        )
        return self._document("Yard talk", f'<h1>Yard talk</h1><table class="boards">{rows}</table>')

    def _list(self, board: str, start: int) -> str:
        threads = self.of_board(board)
        rows = "".join(
            f'<tr class="topic"><td><a class="subject" href="{self._link(t)}">{t.title}</a></td>'
            f'<td class="n">{len(t.posts) - 1} replies {3 * len(t.posts) + 40} views</td>'
            f'<td class="last"><a href="who/{t.last.author}">{t.last.author}</a> <i>{t.last.at:%d %b %Y %H:%M}</i></td></tr>'
            for t in threads[start : start + LIST_PAGE]
        )
        links = self._pager(f"board/{board}", start, len(threads), LIST_PAGE)
        return self._document(board, f"<h1>{board.capitalize()}</h1><table>{rows}</table>{links}")

    def _pager(self, address: str, start: int, count: int, size: int) -> str:
        links = (
            f'<li class="active"><a>{n + 1}</a></li>'
            if n * size == start
            else f'<li><a href="{address}?start={n * size}">{n + 1}</a></li>'
            for n in range(ceil(count / size))
        )
        return f'<div class="pagination"><ul>{"".join(links)}</ul></div>' if count > size else ""

    def _thread_page(self, thread: Thread, start: int) -> str:
        marks = {p.id: f'class="message reply" id="message-{p.id}"' for p in thread.posts[1:]}
        first = 'class="message"'
        heads = {thread.posts[0].id: "<h4>Message</h4>"}
        posts = "".join(
            f'<div {marks.get(p.id, first)}><p class="by">By <a href="who/{p.author}">{p.author}</a> on '
            f'<i>{p.at:%d %b %Y %H:%M}</i></p><div class="said">{heads.get(p.id, "")}<p>{p.text}</p></div></div>'
            for p in thread.posts[start : start + THREAD_PAGE]
        )
        near = "".join(f'<li><a href="{self._link(t)}">{t.title}</a></li>' for t in self.threads[:6])
        up = f'<p><a href="board/{thread.board}">{thread.board}</a></p>'
        pages = self._pager(self._link(thread), start, len(thread.posts), THREAD_PAGE)
        body = f"<h1>Yard talk</h1>{up}<h2>{thread.title}</h2>{posts}{pages}<ul class='near'>{near}</ul>"
        return self._document(thread.title, body)
