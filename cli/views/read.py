"""What `trawl read` shows on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from forum_reader.page.records import SeenPage, SeenPost

from .output import console, counted

_WIDTH = 80
_LINES = 3  # of a post
_ROWS = 15  # of a list
_HOW = {
    "profile": "by the profile of the software",
    "schema.org": "by the page's marks for search engines (schema.org)",
    "learned": "learned from the structure that they repeat",
}


def show(page: SeenPage, *, full: bool) -> None:
    """A page on standard output."""
    to = console()
    width = min(_WIDTH, to.width)
    _line(to, f"{page.kind.value}  {page.title or page.url}", width, style="bold")
    if page.software:
        software = page.software
        version = f" {software.version}" if software.version else ""
        _line(to, f"software: {software.name}{version}, {software.score:.0%} sure (profile {software.profile})", width)
    else:
        _line(to, "software: not recognised", width)
    if page.reader:
        comments = sum(len(post.comments) for post in page.posts)
        posts = counted(len(page.posts), "post") + (f" with {counted(comments, 'comment')} on them" if comments else "")
        _line(to, f"{posts}, {_HOW[page.reader.value]}; confidence {page.confidence:.0%}", width)
    for other, share in page.agreement.items():
        _line(to, f"{other} agrees on {share:.0%} of them", width)
    for note in page.notes if page.posts else ():
        _line(to, f"but: {note}", width, style="yellow")
    for post in page.posts:
        to.print()
        _post(to, post, width, full=full)
        for comment in post.comments:
            _post(to, comment, width, full=full)
    if not page.posts and page.rows:
        _line(to, f"{counted(len(page.rows), 'link')} of the same kind:", width)
        for row in page.rows[:_ROWS]:
            to.print(Text("  " + " ".join(row.title.split())), no_wrap=True, overflow="ellipsis", width=width)
            to.print(Text("    " + row.url, style="dim"), no_wrap=True, overflow="ellipsis", width=width)
        if len(page.rows) > _ROWS:
            _line(to, f"  and {len(page.rows) - _ROWS} more", width)
    if page.next:
        to.print()
        to.print(Text(f"next page: {page.next}"), soft_wrap=True)
    if not page.posts and not page.rows:
        why = "; ".join(page.notes) or "give the address of a thread or of a board; what to write by hand: docs/sites.md"
        _line(to, f"No posts and no list were found: {why}.", width)


def _post(to: Console, post: SeenPost, width: int, *, full: bool) -> None:
    when = f"{post.published:%Y-%m-%d %H:%M}" if post.published else "no date"
    parts = [f"#{post.number}" if post.number else "  comment", post.author or "no author", when]
    parts += [f"id {post.id}"] if post.id else []
    parts += [f"answers {post.parent}"] if post.parent else []
    parts += [f"edited {post.edited:%Y-%m-%d %H:%M}"] if post.edited else []
    _line(to, " · ".join(parts), width, style="cyan")
    lines = [
        piece
        for line in post.text.splitlines()
        for piece in (one.plain.rstrip() for one in Text(line).wrap(to, width - 4) or [Text()])
        if piece or full
    ]
    shown = lines if full else lines[:_LINES]
    for line in shown:
        to.print(Text(f"    {line}"), soft_wrap=True)
    if len(lines) > len(shown):
        to.print(Text(f"    … {len(lines) - len(shown)} more lines", style="dim"))
    if not lines:
        to.print(Text("    (no text)", style="dim"))


def _line(to: Console, text: str, width: int, style: str = "") -> None:
    to.print(Text(text, style=style), width=width)
