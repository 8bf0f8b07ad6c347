"""A thread of messages in the markup of several kinds of old boards: one message a page with its thread as a tree of titles below
it, or all messages of a thread nested on one page.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

WORDS = (
    "pump",
    "filter",
    "soil",
    "hum",
    "aerial",
    "roof",
    "water",
    "garden",
    "tile",
    "brick",
    "lamp",
    "wire",
    "valve",
    "belt",
    "pear",
)
NAMES = ("Ida", "Bob Marsh", "carla", "Dov K.")
FORM = "<form method=post><input name=name><textarea name=body></textarea><input type=submit></form>"


@dataclass
class Message:
    """A message of a thread. `answered`: the message that it answers."""

    number: int
    answered: Message | None
    title: str
    author: str
    at: datetime
    text: str
    answers: list[Message] = field(default_factory=list)

    @property
    def first(self) -> Message:
        return self if self.answered is None else self.answered.first

    @property
    def depth(self) -> int:
        return 0 if self.answered is None else self.answered.depth + 1

    def in_tree(self) -> Iterator[Message]:
        yield self
        for answer in self.answers:
            yield from answer.in_tree()


def words(number: int, count: int) -> str:
    return " ".join(WORDS[(number * k + k * k) % len(WORDS)] for k in range(1, count + 1)).capitalize()


def thread(size: int, number: int = 101) -> list[Message]:
    messages: list[Message] = []
    for n in range(size):
        answered = messages[n // 2 if n % 3 else 0] if messages else None
        title = words(number, 4) if answered is None else words(number, 3) if n % 4 == 3 else f"Re: {messages[0].title}"
        at = datetime(2026, 9, 1, 9, 2, tzinfo=UTC) + timedelta(hours=3 * n, minutes=17 * n)
        text = f"{words(number, 12 + number % 23)}.\n\n{words(number + 3, 9 + number % 5)}."
        messages.append(Message(number, answered, title, NAMES[number % 4], at, text))
        if answered is not None:
            answered.answers.append(messages[-1])
        number += 1
    return messages


def paragraphs(text: str) -> str:
    return "".join(f"<p>{one}</p>" for one in text.split("\n\n"))


def followups(one: Message) -> str:
    """The message is plain text behind its byline; only the answers to it are listed."""

    def row(m: Message) -> str:
        inner = "".join(map(row, m.answers))
        date = f"{m.at:%H:%M:%S %m/%d/%y}"
        return f'<li><a href="{m.number}.html">{m.title}</a> - <b>{m.author}</b> <i>{date}</i> ({len(m.answers)})<ul>{inner}</ul>'

    above = one.answered
    answered = (
        f'In Reply to: <a href="{above.number}.html">{above.title}</a> posted by {above.author} on {above.at:%B %d, %Y at %T}:<p>'
        if above
        else ""
    )
    return (
        f"<html><title>{one.title}</title><body><center><h1>{one.title}</h1></center><hr><center>[ <a href=#f>Follow Ups</a> ] "
        f"[ <a href=#p>Post Followup</a> ] [ <a href=../board.html>The board</a> ]</center><hr><p>Posted by "
        f"<a href=mailto:x@y.example>{one.author}</a> on {one.at:%B %d, %Y at %T}:<p>{answered}"
        f"{one.text.replace(chr(10) * 2, '<p>')}<br><br><hr><p><a name=f>Follow Ups:</a><br><ul>{''.join(map(row, one.answers))}"
        f"</ul><br><hr><p><a name=p>Post a Followup</a><p>{FORM}</body></html>"
    )


def classed(one: Message) -> str:
    """Parts have classes; the whole thread is listed, with a link to the whole of it; a link leads to the answered message."""

    def row(m: Message) -> str:
        title = (
            f"<span class=current>{m.title}</span>"
            if m is one
            else f'<a class=reply href="index.php?id={m.number}">{m.title}</a>'
        )
        whole = (
            ""
            if m.answered
            else f'<a href="index.php?mode=thread&amp;id={m.number}" title="Open whole thread"><img alt="[*]"></a>'
        )
        inner = f"<ul>{''.join(map(row, m.answers))}</ul>" if m.answers else ""
        name = f"<strong class=user>{m.author}</strong>"
        return f"<li>{title} - {name}, <span class=tail>{m.at:%Y-%m-%d, %H:%M} {whole}</span>{inner}</li>"

    above = one.answered
    link = f'<span class=op><a href="index.php?id={above.number}">@ {above.author}</a></span>' if above else ""
    return (
        f"<html lang=en><title>Garden - {one.title}</title><body><div id=top><h1><a href=index.php>Garden forum</a></h1><ul><li>"
        "<a href='index.php?mode=login'>log in</a></li><li><a href='index.php?mode=register'>register</a></li></ul></div>"
        f"<div class=posting><div class=header><h1>{one.title}</h1><p class=author>posted by "
        f"<span class=user>{one.author}</span>, {one.at:%A, %B %d, %Y, %H:%M} <i>(41 days ago)</i>{link}</p></div>"
        "<div class=wrapper><div class=body>"
        f"{paragraphs(one.text)}</div><div class=reply><a href='index.php?mode=posting&amp;id={one.number}'>Reply</a></div>"
        f"<div class=info>{one.number * 3} views</div></div></div><hr><p><strong>Complete thread:</strong></p>"
        f"<ul class=thread>{row(one.first)}</ul></body></html>"
    )


def in_tables(one: Message) -> str:
    """Author and date behind labels; the thread is a table."""
    rows = "".join(
        f'<tr><td style="padding-left:{15 * m.depth}px">'
        + (f"<b>{m.title}</b>" if m is one else f'<a href="read.php?1,{m.first.number},{m.number}">{m.title}</a>')
        + f"</td><td>{m.author}</td><td>{m.at:%m/%d/%Y %I:%M%p}</td></tr>"
        for m in one.first.in_tree()
    )
    return (
        f"<html><title>{one.title}</title><body><a href='list.php?1'>Garden</a> <a href='index.php'>Forum list</a>"
        f"<table class=msg><tr><td><h2>{one.title}</h2>Posted by: <a href='profile.php?1,{one.number % 4}'>{one.author}</a><br>"
        f"Date: {one.at:%B %d, %Y %I:%M%p}<br><br>{one.text.replace(chr(10), '<br>')}<br><br></td></tr></table>"
        f"Options: <a href='posting.php?1,{one.number}'>Reply</a> <a href='posting.php?1,{one.number},quote'>Quote</a>"
        f"<table><tr><th>Subject</th><th>Written By</th><th>Posted</th></tr>{rows}</table></body></html>"
    )


def in_rows_of_labels(one: Message) -> str:
    """Author and date stand in the rows of a table, their labels in cells; answers are a flat list."""
    rows = "".join(
        f"<p><a href='msg{m.number}.shtml'>{m.title}</a>, {m.author}, {m.at:%d %b %Y %H:%M}</p>"
        for m in one.first.in_tree()
        if m is not one
    )
    return (
        f"<html><title>{one.title}</title><body><h2>{one.title}</h2><table><tr><td>From:</td><td>{one.author}</td></tr>"
        f"<tr><td>Date:</td><td>{one.at:%d %b %Y %H:%M}</td></tr></table><div>{paragraphs(one.text)}</div>"
        f"<hr><h3>Messages in this thread</h3>{rows}<hr><a href=reply.cgi?{one.number}>Reply</a></body></html>"
    )


def indented(first: Message) -> str:
    """A spacer indents each message; a link leads to the answered one."""
    return f"<html><title>{first.title}</title><body><h1>{first.title}</h1>" + "".join(
        f"<table id=c_{m.number} class=row><tr><td><img src=s.gif width={40 * m.depth}></td><td><div class=head>"
        f"<a href='user?id={m.author.split()[0]}'>{m.author}</a> <span class=age title='{m.at:%Y-%m-%dT%H:%M:%S}'>"
        f"<a href='item?id={m.number}'>41 days ago</a></span>"
        + (f" | <a href='#c_{m.answered.number}'>parent</a>" if m.answered else "")
        + f"</div><div class=txt>{paragraphs(m.text)}</div><a href='reply?id={m.number}'>reply</a></td></tr></table>"
        for m in first.in_tree()
    )


def in_divs(first: Message) -> str:
    def nested(m: Message) -> str:
        link = f" <a href='#p{m.answered.number}'>@ {m.answered.author}</a>" if m.answered else ""
        return (
            f"<div class=wrap><div class=posting id=p{m.number}><h2>{m.title}</h2><p class=author>posted by <span class=user>"
            f"{m.author}</span>, {m.at:%A, %B %d, %Y, %H:%M}{link}</p><div class=body>{paragraphs(m.text)}</div>"
            f"<div class=reply><a href='?mode=posting&amp;id={m.number}'>Reply</a></div></div>"
            f"{''.join(map(nested, m.answers))}</div>"
        )

    return f"<html><title>{first.title}</title><body><h1>Garden</h1>{nested(first)}</body></html>"


def in_lists(first: Message) -> str:
    def nested(m: Message) -> str:
        inner = f"<ul>{''.join(map(nested, m.answers))}</ul>" if m.answers else ""
        head = f"<div class=meta><strong>{m.title}</strong> by <em>{m.author}</em> on {m.at:%d %B %Y %H:%M}</div>"
        return f"<li id=m{m.number}>{head}<div class=message>{paragraphs(m.text)}</div>{inner}</li>"

    return f"<html><title>{first.title}</title><body><h1>{first.title}</h1><ul class=tree>{nested(first)}</ul></body></html>"


def _tree(one: Message, author: str, form: str, href: str) -> str:
    def row(m: Message) -> str:
        title = f"<b>{m.title}</b>" if m is one else f'<a href="{href.format(m.number)}">{m.title}</a>'
        inner = f"<ul>{''.join(map(row, m.answers))}</ul>" if m.answers else ""
        return f"<li>{title}{author.format(m.author)}{m.at.strftime(form)}{inner}</li>"

    return f"<ul>{row(one.first)}</ul>"


def german(one: Message) -> str:
    """A tree in which each message names the thread's title again; the answered message is linked."""
    up = f'<a href="?nr={one.answered.number}">Antwort auf: {one.answered.title}</a>' if one.answered else ""
    return (
        f"<html lang=de><title>{one.title}</title><body><h2>{one.title}</h2><p>von <b>{one.author}</b>, "
        f"{one.at:%d.%m.%Y, %H:%M} Uhr</p>{up}"
        f"<div>{paragraphs(one.text)}</div><p><a href='?antwort={one.number}'>Antworten</a></p><h3>Gesamter Thread:</h3>"
        f"{_tree(one, ' von {}, ', '%d.%m.%Y, %H:%M', '?nr={}')}</body></html>"
    )


def japanese(one: Message) -> str:
    """Title, author and date stand in one line, each but the first behind its label."""
    head = f"<b>{one.title}</b> 投稿者：<b>{one.author}</b> 投稿日：{one.at:%Y年%m月%d日 %H時%M分} No.{one.number}"
    return (
        f"<html lang=ja><title>{one.title}</title><body><table border=1><tr><td>{head}</td></tr><tr><td><blockquote>"
        f"{one.text.replace(chr(10), '<br>')}</blockquote></td></tr></table><p>関連一覧ツリー</p>"
        f"{_tree(one, ' - {} ', '%Y/%m/%d %H:%M', 'tree.cgi?no={}')}{FORM}</body></html>"
    )


def in_terms(one: Message) -> str:
    """Author and date are descriptions of terms, without colons."""
    return (
        f"<html><title>{one.title}</title><body><dl><dt>Subject</dt><dd>{one.title}</dd><dt>Author</dt><dd>{one.author}</dd>"
        f"<dt>Posted</dt><dd>{one.at:%b %d %Y %H:%M}</dd></dl><div class=txt>{paragraphs(one.text)}</div>"
        f"{_tree(one, ' <small>{}</small> ', '%b %d %Y %H:%M', '/m/{}')}</body></html>"
    )


def french(one: Message) -> str:
    """The tree is a table whose arrows stand before the titles."""
    rows = "".join(
        f"<tr><td>{'&nbsp;&nbsp;' * m.depth}↳ "
        + (f"<strong>{m.title}</strong>" if m is one else f"<a href='/message-{m.number}.htm'>{m.title}</a>")
        + f"</td><td>{m.author}</td><td>{m.at:%d/%m/%Y à %Hh%M}</td></tr>"
        for m in one.first.in_tree()
    )
    return (
        f"<html lang=fr><title>{one.title}</title><body><div id=m><h1>{one.title}</h1><p class=i>Message de "
        f"{one.author} posté le {one.at:%d/%m/%Y à %Hh%M}</p>"
        f"<div class=t>{paragraphs(one.text)}</div></div><table><tr><th>Sujet</th><th>Auteur</th>"
        f"<th>Date</th></tr>{rows}</table></body></html>"
    )


def with_parents_in_attributes(first: Message) -> str:
    rows = "".join(
        f"<article id=m{m.number} data-parent-id='{m.answered.number if m.answered else ''}'><header>{m.author} · "
        f"<time datetime={m.at:%Y-%m-%dT%H:%M}Z>then</time></header><div class=txt>{paragraphs(m.text)}</div></article>"
        for m in first.in_tree()
    )
    return f"<html><title>{first.title}</title><body><h1>{first.title}</h1><div>{rows}</div></body></html>"


def in_blockquotes(first: Message) -> str:
    def nested(m: Message) -> str:
        return (
            f"<blockquote id=c{m.number}><b>{m.author}</b> ({m.at:%Y-%m-%d %H:%M})<div>{paragraphs(m.text)}</div>"
            f"<a href=/reply/{m.number}>reply</a>{''.join(map(nested, m.answers))}</blockquote>"
        )

    return f"<html><title>{first.title}</title><body><h1>{first.title}</h1><div>{nested(first)}</div></body></html>"
