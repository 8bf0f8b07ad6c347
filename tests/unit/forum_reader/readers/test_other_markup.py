"""Names and dates in markup of software that has no profile: small pages of our own making, after the forms of public ones."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forum_reader.page.records import PageKind, Reader
from forum_reader.readers.page_reader import read_page

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
POSTS = [
    ("ida", "2023-03-05T09:35", "The pump stopped again after two weeks, so we took it apart and found a worn seal."),
    ("Ole K", "2023-03-08T22:07", "Mine makes a noise when it is cold. I ordered another one from the shop in town."),
    ("風の子", "2023-03-09T12:14", "Has anybody tried the newer model with the metal housing? Plastic breaks in winter."),
    ("ida", "2023-03-10T06:09", "I have, since Tuesday. It has been quiet so far, and it takes less power than the old one."),
    ("x9", "2023-03-11T16:16", "Thank you, that is good enough for me. The neighbour will be glad about it as well."),
]


def _slash(n: int, name: str, when: datetime, text: str) -> str:
    return (
        f"<li class=comment><div id=comment_{n}><h4>Re: pumps (Score:{n % 5})</h4><div class=details><span class=by>by</span> "
        f"<a href=//s.example/~{n}>{name}</a> on {when:%A %B %d, %Y @%I:%M%p}</div><div class=b>{text}</div></div></li>"
    )


def _usenet(n: int, name: str, when: datetime, text: str) -> str:
    date = f"{when:%a, %d %b %Y %H:%M:%S} +0000"
    return f"<li><b>From:</b> {name} &lt;x{n}@s.example&gt;<br><b>Date:</b> {date}<br><b>Subject:</b> Re: p<pre>{text}</pre></li>"


def _titled(n: int, name: str, when: datetime, text: str) -> str:
    shown = ("2 years ago", "last year", "1 year ago")[n % 3]
    link = f"<a href=#c{n} title='{when:%d %b %Y %H:%M}'>{shown}</a>"
    return f"<article><aside><a href=/members/{n}>{name}</a><small>Level {n}</small></aside>{link}<div>{text}</div></article>"


def _relative_time(n: int, name: str, when: datetime, text: str) -> str:
    time = f"<relative-time datetime='{when:%Y-%m-%dT%H:%M:%S}Z'>{when:%b %d, %Y}</relative-time>"
    return (
        f"<div class=c><h3><a class=author href=/u{n}>{name}</a> <a href=#c{n}>{time}</a></h3><table><tr><td>{text}</table></div>"
    )


def _beside_date(n: int, name: str, when: datetime, text: str) -> str:
    head = f"<span class=w>{name}</span><span class=z>{when:%d.%m.%Y, %H:%M Uhr}</span>"
    return f"<div class=beitrag id=b{n}><div class=kopf>{head}</div><div class=q>{text}</div></div>"


def _signed(n: int, name: str, when: datetime, text: str) -> str:
    date = f"{when:%A, %d %B %Y %H:%M} (3 years ago)"
    return f"<div class=m><a name={n}></a><p>{text}</p><p>— {name}, {date} <a href=#{n}>link</a></p></div>"


def _year_and_name(n: int, name: str, when: datetime, text: str) -> str:
    user = f"<a href=/user/{n}><span>{name}</span></a>"
    date = f"posted {when:%Y-%b-%d, %I:%M %p} AEST"
    return f"<div id=r{n}><div class=u>{user}</div><div class=t>{text}</div><div class=d>{date}</div></div>"


def _pressed(n: int, name: str, when: datetime, text: str) -> str:
    shown = f"<span itemprop=datePublished content={when:%Y-%m-%dT%H:%M:%S}+00:00>{n % 3 + 1} years ago</span>"
    user = f"<a href=/member/{n}>{name}</a>"
    return f"<div class=x1 id=post{n}><div class=x2>{user}<button>{shown}</button></div><div class=x3>{text}</div></div>"


def _labelled(n: int, name: str, when: datetime, text: str) -> str:
    shown = f"<span class=x4 aria-label='{when:%d %B %Y %H:%M}'>{n % 3 + 1}y</span>"
    return f"<div class=x1><a href=/member/{n}>{name}</a>{shown}<div class=x3>{text}</div></div>"


def _named_within(n: int, name: str, when: datetime, text: str) -> str:
    user = f"<span class=display-name>{name}</span><span class=user-title>{9 * n} posts</span>"
    head = f"<a class=author-name href=/user/{n}>{user}</a><span class=on>{when:%B %d, %Y at %I:%M %p}</span>"
    return f"<li class=e id=e{n}><section>{head}</section><div>{text}</div></li>"


def _semicolons(n: int, name: str, when: datetime, text: str) -> str:
    about = f"<li><a href='index.php?action=profile;u={n}'>{name}</a><ul><li>Member</li><li>Posts: {3 * n}</li></ul></li>"
    return f"<div class=w id=w{n}><ul class=poster>{about}</ul><div class=a><b>{when:%d.%m.%Y %H:%M}</b><p>{text}</p></div></div>"


def _before_a_verb(n: int, name: str, when: datetime, text: str) -> str:
    head = f"<span class=k>{name}, modified {when:%d %b %Y %H:%M}.</span><i>Posts: {12 * n}</i>"
    return f"<div class=card id=c{n}><div class=x>{head}</div><div class=y>{text}</div></div>"


def _in_card(n: int, name: str, when: datetime, text: str) -> str:
    """Layout classes only; a rank below the name varies, too."""
    rank = "Moderator" if name == "ida" else "Member"
    head = f"<div class=d-flex><div><h6 class=mb-0>{name}</h6><small class=text-muted>{rank}</small></div></div>"
    head += f"<small class=text-muted>{when:%b %d, %Y %I:%M %p}</small>"
    return f"<div class='card mb-3' id=k{n}><div class='card-header d-flex'>{head}</div><div class=card-text>{text}</div></div>"


def _initials(n: int, name: str, when: datetime, text: str) -> str:
    head = f"<div class='flex h-10'>{name[:2].upper() if name.isascii() else '7W'}</div><p class='text-sm'>{name}</p>"
    return f"<div class='flex py-6' id=k{n}>{head}<p class='text-sm'>{when:%Y-%m-%d %H:%M}</p><div class=mt-2>{text}</div></div>"


POSTS_OF = (
    _in_card, _initials,
    _named_within, _semicolons, _before_a_verb, _pressed, _labelled, _signed, _year_and_name,
    _slash, _usenet, _titled, _relative_time, _beside_date,
)  # fmt: skip


@pytest.mark.parametrize("post", POSTS_OF)
def test_posts_are_whole(post: object) -> None:
    assert callable(post)
    rows = "".join(post(n, name, datetime.fromisoformat(at), text) for n, (name, at, text) in enumerate(POSTS, 11))
    seen = read_page(f"<html lang=en><title>Pumps</title><body><ul>{rows}</ul></body></html>", "https://s.example/t/3", now=NOW)
    assert seen.reader is Reader.LEARNED
    assert [(one.author, one.text) for one in seen.posts] == [(name, text) for name, _, text in POSTS]
    assert [f"{one.published:%Y-%m-%dT%H:%M}" for one in seen.posts if one.published] == [at for _, at, _ in POSTS]


@pytest.mark.parametrize(
    ("language", "form"), [("ar", "%d-%m-%Y, %I:%M %p"), ("en", "%d-%m-%Y, %I:%M %p"), ("en", "%m-%d-%Y, %I:%M %p")]
)
def test_a_profiles_dates_are_read_day_or_month_first_as_the_board_writes_them(language: str, form: str) -> None:
    """vBulletin 3 is delivered with the month first; no number here is above 12."""

    def post(n: int, name: str, when: datetime, text: str) -> str:
        head = f"<tr><td class=thead><a name=post{n}></a>{when:{form}}</td><td class=thead>#{n}</td></tr>"
        left = f"<td class=alt2><a class=bigusername href=member.php?u={n}>{name}</a></td>"
        right = f"<td class=alt1 id=td_post_{n}><div id=post_message_{n}>{text}</div></td>"
        return f"<table id=post{n}>{head}<tr>{left}{right}</tr></table>"

    rows = "".join(post(n, name, datetime.fromisoformat(at), text) for n, (name, at, text) in enumerate(POSTS, 41))
    page = f"<html lang={language}><meta name=generator content='vBulletin 3.8.7'><body>{rows}</body></html>"
    seen = read_page(page, "https://v.example/showthread.php?t=3", now=NOW)
    assert seen.reader is Reader.PROFILE
    assert [f"{one.published:%Y-%m-%dT%H:%M}" for one in seen.posts if one.published] == [at for _, at, _ in POSTS]


@pytest.mark.parametrize("post", [_usenet, _semicolons, _named_within])
def test_one_person_may_write_all_posts(post: object) -> None:
    assert callable(post)
    rows = "".join(post(n, "ida", datetime.fromisoformat(at), text) for n, (_, at, text) in enumerate(POSTS[:4]))
    rows = rows.replace("u=1", "u=0").replace("u=2", "u=0").replace("u=3", "u=0").replace("/user/1>", "/user/0>")
    page = f"<html lang=en><title>Pumps</title><body><h1>Pumps</h1><ul>{rows}</ul></body></html>"
    seen = read_page(page, "https://s.example/t/3", now=NOW)
    assert [(one.author, one.text) for one in seen.posts] == [("ida", text) for _, _, text in POSTS[:4]]


def test_a_sites_channels_in_social_networks_are_not_posts() -> None:
    """Where posts show no date, authors alone tell what is a post."""
    rows = "".join(
        f"<li class=x1><a class=x2 href=https://s.example/member/{n}><p class=x5>{name}</p></a><div class=x3>{text}</div></li>"
        for n, (name, _, text) in enumerate(POSTS, 11)
    )
    networks = (("YouTube", "www.youtube.com/user/"), ("TikTok", "www.tiktok.com/@"), ("X", "x.com/users/"))
    foot = "".join(f"<li class=x1><a class=x2 href=https://{at}pumps><p class=x5>{name}</p></a></li>" for name, at in networks)
    page = f"<html lang=en><title>Pumps</title><body><div><ul>{rows}</ul></div><div><ul>{foot}</ul></div></body></html>"
    seen = read_page(page, "https://s.example/t/3", now=NOW)
    assert [(one.author, one.text) for one in seen.posts] == [(name, text) for name, _, text in POSTS]


def test_a_label_behind_a_date_is_of_the_next_one() -> None:
    def column(n: int, name: str, at: str) -> str:
        date = f"<p class=d>{datetime.fromisoformat(at):%d. %B %Y}<br>{at[11:13]} h {at[14:]} min</p>"
        user = f"<div><a href=/profile/{n}>{name}</a></div>"
        return f"<div class=u>{date}{user}<div>Membre depuis :<br>{n} January 2012</div></div>"

    rows = "".join(
        f"<div class=s id=p{n}>{column(n, name, at)}<div class=c>{text}</div></div>"
        for n, (name, at, text) in enumerate(POSTS, 11)
    )
    seen = read_page(f"<html lang=en><title>Pumps</title><body><div>{rows}</div></body></html>", "https://s.example/t/3", now=NOW)
    assert [f"{one.published:%Y-%m-%dT%H:%M}" for one in seen.posts if one.published] == [at for _, at, _ in POSTS]


HEAD = "<div class=h>Posted by <a href=/u/3>ida</a> on 05 March 2023, 09:35</div>"


def test_a_thread_of_one_post_is_one_where_the_page_speaks_of_replies() -> None:
    post = f"<div class=post>{HEAD}<div class=post-body>{POSTS[0][2]}</div></div>"
    frame = "<html lang=en><title>Pumps</title><body><a href=/>Home</a><h1>Pumps</h1>{}<p>{}</p></body></html>"
    seen = read_page(frame.format(post, "No replies yet."), "https://s.example/t/3", now=NOW)
    assert [(one.author, one.text, one.published) for one in seen.posts] == [
        ("ida", POSTS[0][2], datetime(2023, 3, 5, 9, 35, tzinfo=UTC))
    ]
    assert seen.kind is PageKind.THREAD
    assert read_page(frame.format(post, "All about pumps."), "https://s.example/pumps", now=NOW).posts == ()


@pytest.mark.parametrize(
    "label",
    [
        *("Anmeldungsdatum", "Inscrit le", "Se unió", "Iscritto il", "Cadastrado em", "Lid sinds", "Medlem sedan", "Dołączył"),
        *(
            "Регистрация",
            "На сайте зарегистрирован",
            "Kayıt",
            "Tham gia",
            "注册于",
            "登録日",
            "가입",
            "Last post",
            "Letzter Beitrag",
        ),
    ],
)
def test_a_day_of_joining_and_a_last_reply_are_not_the_date_of_a_post(label: str) -> None:
    rows = "".join(
        f"<tr><td><p><a href=/user/{n}>{name}</a></p><p>{label}:<br>{n}.04.20{n - 2:02}</p></td>"
        f"<td><div><a href=/p/{n}/quote/>Reply</a> {at[8:10]}.{at[5:7]}.{at[:4]}</div><div>{text}</div></td></tr>"
        for n, (name, at, text) in enumerate(POSTS[:3], 11)
    )
    seen = read_page(f"<html><title>Pumps</title><body><table>{rows}</table></body></html>", "https://s.example/t/3", now=NOW)
    assert [f"{one.published:%Y-%m-%d}" for one in seen.posts if one.published] == [at[:10] for _, at, _ in POSTS[:3]]
