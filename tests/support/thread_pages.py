"""Thread pages of our own making, after the markup of many kinds of forum software: the same posts in skins that have nothing
in common.

Each skin is a function of the posts; `SKINS` names them all. What surrounds the posts (navigation, a sidebar of recent threads,
user details, buttons, signatures) is what readers take for posts or for text when they are wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from html import escape

MONTHS = {
    "en": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    "de": ["Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember"],
    "ru": ["января", "февраля", "марта", "апреля", "мая", "июня", "июля", "августа", "сентября", "октября", "ноября", "декабря"],
}
NAV = '<div class="nav"><ul>' + "".join(f'<li><a href="/forum/{n}">Section {n}</a></li>' for n in range(1, 9)) + "</ul></div>"
SIDEBAR = '<div class="sidebar"><h3>Recent</h3><ul>' + "".join(
    f'<li><a href="/thread/{n}">Another thread number {n}</a> by <a href="/user/{n}">someone{n}</a> <span>'
    f'{n + 2} May 2026</span></li>'
    for n in range(1, 6)
) + "</ul></div>"  # fmt: skip
FOOTER = '<div class="footer"><p>All times are UTC. Powered by a program that nobody knows. <a href="/help">Help</a></p></div>'


@dataclass(frozen=True)
class Post:
    """What stands in a post."""

    id: str
    author: str
    at: datetime
    text: str
    parent: str | None = None


_TEXTS = {
    "en": (
        "My old radio hums when the lamp beside it is on. Has anybody an idea what that may be?",
        "Try another socket first, and look whether it still hums.",
        "It does, and louder. The lamp has a dimmer, could that be it?",
        "Yes! Dimmers cut the wave, and a radio hears that. Put a filter between them.",
        "Thanks, that was it.",
        "Glad to hear. Mark the thread as solved, please.",
    ),
    "de": (
        "Mein altes Radio brummt, wenn die Lampe daneben an ist. Hat jemand eine Idee, woran das liegt?",
        "Nimm erst einmal eine andere Steckdose und schau, ob es dann noch brummt.",
        "Ja, sogar lauter. Die Lampe hat einen Dimmer, kann es das sein?",
        "Genau. Dimmer schneiden die Welle an, und ein Radio hört das. Da hilft ein Filter.",
        "Danke, das war es.",
        "Schön. Bitte das Thema als gelöst markieren.",
    ),
    "ru": (
        "Старое радио гудит, когда рядом горит лампа. Кто знает, в чём причина?",
        "Попробуйте другую розетку и посмотрите, гудит ли оно по-прежнему.",
        "Гудит, и даже громче. У лампы есть регулятор яркости, может быть, дело в нём?",
        "Да, регулятор режет волну, и радио это слышит. Поставьте фильтр.",
        "Спасибо, помогло.",
        "Хорошо. Отметьте тему как решённую.",
    ),
    "zh": (
        "我的老收音机在旁边的灯亮着的时候会嗡嗡响，有人知道是什么原因吗？",
        "先换一个插座试试，看看还响不响。",
        "还是响，而且更大声。灯上有调光器，会不会是它的问题？",
        "对，调光器会切断波形，收音机能听到。中间加一个滤波器就好了。",
        "谢谢，问题解决了。",
        "很好，请把帖子标记为已解决。",
    ),
}  # fmt: skip
_AUTHORS = {
    "en": ("walter", "Ida B", "walter", "grundig_fan", "walter", "Ida B"),
    "de": ("walter", "Ida B", "walter", "röhrenfreund", "walter", "Ida B"),
    "ru": ("Валентин", "маша", "Валентин", "радиолюбитель", "Валентин", "маша"),
    "zh": ("老王", "小李同学", "老王", "无线电爱好者", "老王", "小李同学"),
}


def posts(language: str = "en") -> list[Post]:
    """Six posts of three authors, some days apart."""
    days = (3, 3, 5, 14, 14, 27)
    return [
        Post(
            id=str(48_100 + 7 * n),
            author=author,
            at=datetime(2026, 3, day, 8 + n, 10 + n),
            text=text,
            parent=None if n in (0, 1, 3) else str(48_100 + 7 * (n - 1)),
        )
        for n, (author, text, day) in enumerate(zip(_AUTHORS[language], _TEXTS[language], days, strict=True))
    ]


def written(at: datetime, language: str) -> str:
    """A date as people write it in a language."""
    if language == "zh":
        return f"{at.year}年{at.month}月{at.day}日 {at:%H:%M}"
    month = MONTHS[language][at.month - 1]
    if language == "en":
        return f"{month[:3]} {at.day}, {at.year} {at:%I:%M %p}"
    return f"{at.day}{'.' if language == 'de' else ''} {month} {at.year}, {at:%H:%M}"


def page(body: str, language: str, head: str = "") -> str:
    """A whole page around the posts."""
    title = "Radio hums"
    return (
        f'<!DOCTYPE html><html lang="{language}"><head><title>{title} - Some Forum</title>{head}</head>'
        f"<body>{NAV}<h1>{title}</h1>{body}{SIDEBAR}{FOOTER}</body></html>"
    )


def classes(items: list[Post], language: str) -> str:
    """Blocks with names of classes that say what they are, and a signature and a note of an edit."""
    rows = "".join(
        f'<div class="post" id="post-{p.id}"><div class="post-author"><a class="username" href="/members/{n % 3}/">'
        f"{escape(p.author)}</a>"
        f'<div class="userinfo">Member since 2019<br>Posts: {100 + n % 3}</div></div><div class="post-main">'
        f'<a class="date" href="#post-{p.id}">'
        f'{written(p.at, language)}</a><div class="post-content"><p>{escape(p.text)}</p></div>'
        f'<div class="signature">Never argue with a radio, whoever you may be.</div>'
        f'<div class="buttons"><a href="/quote/{p.id}">Quote</a> <a href="/report/{p.id}">Report</a></div></div></div>'
        for n, p in enumerate(items)
    )
    return page(f'<div class="posts">{rows}</div>', language)


def plain_divs(items: list[Post], language: str) -> str:
    """No class and no id says anything; names are not links."""
    rows = "".join(
        f"<div><div><b>{escape(p.author)}</b> <i>{written(p.at, language)}</i></div><div>{escape(p.text)}</div></div>"
        for p in items
    )
    return page(f"<div>{rows}</div>", language)


def table_rows(items: list[Post], language: str) -> str:
    """Two rows of a table for each post: who and when, then the text."""
    rows = "".join(
        f'<tr><td><a name="msg{p.id}"></a><a href="/mark/{p.id}">x</a><a href="/user/{n % 3}">{escape(p.author)}</a>: '
        f"{written(p.at, language)}</td></tr><tr><td>{escape(p.text)}<p>1 Like</p></td></tr>"
        for n, p in enumerate(items)
    )
    return page(f"<table>{rows}</table>", language)


def two_columns(items: list[Post], language: str) -> str:
    """As boards of 2003: a row with the author at the left, the text at the right, and a row of buttons below."""
    rows = "".join(
        f'<tr class="row{n % 2 + 1}"><td><a name="{p.id}"></a><span class="name"><b>{escape(p.author)}</b></span><br>'
        f'<span class="details">Joined: 11 Feb 2004<br>Location: far away</span></td><td><span class="small">Posted: '
        f'{written(p.at, language)}</span><hr><span class="body">{escape(p.text)}</span></td></tr>'
        f'<tr class="row{n % 2 + 1}"><td><a href="#top">Back to top</a></td><td><a href="/pm">PM</a></td></tr>'
        for n, p in enumerate(items)
    )
    return page(f'<table class="lines">{rows}</table>', language)


def definition_list(items: list[Post], language: str) -> str:
    """A `dt` and a `dd` for each post."""
    rows = "".join(
        f'<dt id="c{p.id}"><a href="/people/{n % 3}">{escape(p.author)}</a> <span>{written(p.at, language)}</span>'
        f"</dt><dd><p>{escape(p.text)}</p></dd>"
        for n, p in enumerate(items)
    )
    return page(f"<dl>{rows}</dl>", language)


def nested(items: list[Post], language: str) -> str:
    """An answer stands within what it answers."""

    def one(p: Post) -> str:
        answers = "".join(one(other) for other in items if other.parent == p.id)
        return (
            f'<div class="comment" id="comment-{p.id}"><p class="tagline"><a class="author"'
            f' href="/u/{escape(p.author)}">{escape(p.author)}</a> '
            f'<time datetime="{p.at.isoformat()}Z">a while ago</time></p><div class="md"><p>{escape(p.text)}</p></div>'
            f'<ul class="buttons"><li><a href="/r/{p.id}">reply</a></li></ul><div class="child">{answers}</div></div>'
        )

    return page("".join(one(p) for p in items if p.parent is None), language)


def question(items: list[Post], language: str) -> str:
    """The opening post is made otherwise than the answers."""
    first = items[0]
    answers = "".join(
        f'<li class="answer" id="answer-{p.id}"><div class="text">{escape(p.text)}</div><div class="by">'
        f'<a href="/users/{n}/x">{escape(p.author)}</a>, <span>{written(p.at, language)}</span></div></li>'
        for n, p in enumerate(items[1:])
    )
    body = (
        f'<section class="asked"><header><a href="/users/9/x">{escape(first.author)}</a> <span>'
        f"{written(first.at, language)}</span></header>"
        f'<div class="statement"><p>{escape(first.text)}</p></div></section><h2>5</h2><ol class="answers">{answers}</ol>'
    )
    return page(body, language)


def mail(items: list[Post], language: str) -> str:
    """An archive of a mailing list that shows a thread on one page."""
    rows = "".join(
        f'<pre id="m{p.id}"><b>From: {escape(p.author)} @ <span>{p.at:%Y-%m-%d %H:%M} UTC</span>'
        f"</b>\n\n{escape(p.text)}\n</pre><hr>"
        for p in items
    )
    return page(rows, language)


def microdata(items: list[Post], language: str) -> str:
    """Marks for search engines in the markup, around elements without dates that people could read."""
    rows = "".join(
        f'<div itemprop="comment" itemscope itemtype="https://schema.org/Comment" id="p{p.id}">'
        f'<meta itemprop="datePublished" content="{p.at.isoformat()}Z">'
        f'<span itemprop="author" itemscope itemtype="https://schema.org/Person"><span itemprop="name">'
        f"{escape(p.author)}</span></span>"
        f'<div itemprop="text">{escape(p.text)}</div></div>'
        for p in items[1:]
    )
    first = items[0]
    body = (
        f'<div itemscope itemtype="https://schema.org/DiscussionForumPosting"><meta itemprop="datePublished"'
        f' content="{first.at.isoformat()}Z">'
        f'<span itemprop="author" itemscope itemtype="https://schema.org/Person"><span itemprop="name">'
        f"{escape(first.author)}</span></span>"
        f'<div itemprop="text">{escape(first.text)}</div>{rows}</div>'
    )
    return page(body, language)


def json_ld(items: list[Post], language: str) -> str:
    """The posts stand in a script only, as on a page that a browser has to build."""

    def one(p: Post, kind: str) -> dict[str, object]:
        return {
            "@type": kind, "text": p.text, "datePublished": p.at.isoformat() + "Z",
            "author": {"@type": "Person", "name": p.author},
            "url": f"https://forum.example/t/1#post-{p.id}",
        }  # fmt: skip

    data = one(items[0], "DiscussionForumPosting") | {
        "@context": "https://schema.org",
        "comment": [one(p, "Comment") for p in items[1:]],
    }
    script = f'<script type="application/ld+json">{json.dumps(data, ensure_ascii=False)}</script>'
    return page('<div id="app">Loading</div>', language, script)


SKINS: dict[str, Callable[[list[Post], str], str]] = {
    skin.__name__: skin
    for skin in (classes, plain_divs, table_rows, two_columns, definition_list, nested, question, mail, microdata, json_ld)
}
