"""Talk pages of wikis: a comment ends with its signature, in the languages and the markup of several wikis."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote

import pytest

from forum_reader.page.records import PageKind
from forum_reader.readers.page_reader import read_page

NOW = datetime(2026, 11, 28, tzinfo=UTC)
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


class Comment(NamedTuple):
    """A comment with its paragraphs, `depth` levels below the first of its section."""

    depth: int
    author: str
    at: datetime
    paragraphs: list[str]


def words(number: int, count: int) -> str:
    return " ".join(WORDS[(number * k + k * k) % len(WORDS)] for k in range(1, count + 1)).capitalize() + "."


def sections() -> list[tuple[str, list[Comment]]]:
    found, number, at = [], 200, datetime(2026, 9, 1, 9, 0, tzinfo=UTC)
    for n, depths in enumerate(((0, 1, 2, 1, 0), (0,), (0, 1, 1, 2), (0, 1, 0, 1, 2, 3))):
        comments = []
        for depth in depths:
            author = ("Ida Berg", "Bob", "Größe", "203.0.113.9")[number % 4]
            paragraphs = [words(number + k, 10 + number % 9) for k in range(1 + number % 3)]
            comments.append(Comment(depth, author, at, paragraphs))
            number, at = number + 1, at + timedelta(hours=5, minutes=7)
        found.append((words(n + 50, 3)[:-1], comments))
    return found


class Wiki(NamedTuple):
    """Names of namespaces and links, and the form of a signature's date, in a language. `east`: hours of its zone."""

    user: str
    talk: str
    contributions: str
    date: str
    months: tuple[str, str]
    east: int = 0


WIKIS = {
    "en": Wiki("User", "talk", "Special:Contributions", "{0:%H:%M}, {0.day} {1} {0.year} (UTC)", ("September", "October")),
    "de": Wiki("Benutzer", "Diskussion", "Spezial:Beiträge", "{0:%H:%M}, {0.day}. {1}. {0.year} (CEST)", ("Sep", "Okt"), 2),
    "fr": Wiki(
        "Utilisateur", "discuter", "Spécial:Contributions", "{0.day} {1} {0.year} à {0:%H:%M} (CEST)", ("septembre", "octobre"), 2
    ),
    "es": Wiki("Usuario", "discusión", "Especial:Contribuciones", "{0:%H:%M} {0.day} {1} {0.year} (UTC)", ("sep", "oct")),
    "sv": Wiki(
        "Användare", "diskussion", "Special:Bidrag", "{0.day} {1} {0.year} kl. {0:%H.%M} (CEST)", ("september", "oktober"), 2
    ),
    "ru": Wiki("Участник", "обс.", "Служебная:Вклад", "{0:%H:%M}, {0.day} {1} {0.year} (UTC)", ("сентября", "октября")),
    "ja": Wiki("利用者", "会話", "特別:投稿記録", "{0.year}年{0.month}月{0.day}日 (火) {0:%H:%M} (UTC)", ("", "")),
    "zh": Wiki("用户", "留言", "特殊:用户贡献", "{0.year}年{0.month}月{0.day}日 (二) {0:%H:%M} (UTC)", ("", "")),
    "it": Wiki("Utente", "msg", "Speciale:Contributi", "{0:%H:%M}, {0.day} {1} {0.year} (CEST)", ("set", "ott"), 2),
    "pl": Wiki("Wikipedysta", "dyskusja", "Specjalna:Wkład", "{0:%H:%M}, {0.day} {1} {0.year} (CEST)", ("wrz", "paź"), 2),
    "pt": Wiki(
        "Usuário",
        "discussão",
        "Especial:Contribuições",
        "{0:%H}h{0:%M}min de {0.day} de {1} de {0.year} (UTC)",
        ("setembro", "outubro"),
    ),
    "nl": Wiki("Gebruiker", "overleg", "Speciaal:Bijdragen", "{0.day} {1} {0.year} {0:%H:%M} (CEST)", ("sep", "okt"), 2),
    "fi": Wiki(
        "Käyttäjä",
        "keskustelu",
        "Toiminnot:Muokkaukset",
        "{0.day}. {1} {0.year} kello {0:%H.%M} (EEST)",
        ("syyskuuta", "lokakuuta"),
        3,
    ),
    "cs": Wiki("Wikipedista", "diskuse", "Speciální:Příspěvky", "{0.day}. {0.month}. {0.year}, {0:%H:%M} (CEST)", ("", ""), 2),
    "uk": Wiki("Користувач", "обговорення", "Спеціальна:Внесок", "{0:%H:%M}, {0.day} {1} {0.year} (UTC)", ("вересня", "жовтня")),
    "ko": Wiki("사용자", "토론", "특수:기여", "{0.year}년 {0.month}월 {0.day}일 (화) {0:%H:%M} (KST)", ("", ""), 9),
    "ar": Wiki("مستخدم", "نقاش", "خاص:مساهمات", "{0:%H:%M}، {0.day} {1} {0.year} (ت ع م)", ("سبتمبر", "أكتوبر")),
    "he": Wiki("משתמש", "שיחה", "מיוחד:תרומות", "{0:%H:%M}, {0.day} {1} {0.year} (IDT)", ("בספטמבר", "באוקטובר"), 3),
    "fa": Wiki("کاربر", "بحث", "ویژه:مشارکت\u200cها", "{0.day} {1} {0.year}، ساعت {0:%H:%M} (UTC)", ("سپتامبر", "اکتبر")),
    "tr": Wiki("Kullanıcı", "mesaj", "Özel:Katkılar", "{0:%H.%M}, {0.day} {1} {0.year} (UTC)", ("Eylül", "Ekim")),
    "hu": Wiki(
        "Szerkesztő",
        "vita",
        "Speciális:Szerkesztő közreműködései",
        "{0.year}. {1} {0.day}., {0:%H:%M} (CEST)",
        ("szeptember", "október"),
        2,
    ),
    "vi": Wiki(
        "Thành viên", "thảo luận", "Đặc biệt:Đóng góp", "{0:%H:%M}, ngày {0.day} tháng {0.month} năm {0.year} (UTC)", ("", "")
    ),
    "ro": Wiki(
        "Utilizator", "discuție", "Special:Contribuții", "{0.day} {1} {0.year} {0:%H:%M} (EEST)", ("septembrie", "octombrie"), 3
    ),
    "ca": Wiki("Usuari", "disc.", "Especial:Contribucions", "{0:%H:%M}, {0.day} {1} {0.year} (CEST)", ("set", "oct"), 2),
    "th": Wiki("ผู้ใช้", "คุย", "พิเศษ:เรื่องที่เขียน", "{0:%H:%M}, {0.day} {1} {0.year} (+07)", ("กันยายน", "ตุลาคม"), 7),
}


def signature(wiki: Wiki, comment: Comment) -> str:
    date = wiki.date.format(comment.at, wiki.months[comment.at.month - 9])
    name, own = comment.author, quote(comment.author.replace(" ", "_"))
    if name[0].isdigit():  # a guest
        return f'<a href="/wiki/{quote(wiki.contributions)}/{own}">{name}</a> {date}'
    talk = f"/w/index.php?title={quote(wiki.user + '_' + wiki.talk)}:{own}&amp;action=edit&amp;redlink=1"
    return f'<a href="/wiki/{quote(wiki.user)}:{own}">{name}</a> (<a href="{talk}" class=new>{wiki.talk}</a>) {date}'


def section(wiki: Wiki, title: str, comments: list[Comment]) -> str:
    edit = "<span class=mw-editsection>[<a href='/w/index.php?title=Talk:X&amp;action=edit'>edit</a>]</span>"
    parts, depth = [f'<h2><span class=mw-headline id="{title}">{title}</span>{edit}</h2>'], 0
    for one in comments:
        parts += ["</dd></dl>"] * (depth - one.depth) + ["<dl><dd>"] * (one.depth - depth)
        parts += ["</dd><dd>"] if one.depth and one.depth <= depth else []
        depth = one.depth
        *whole, last = one.paragraphs
        last = f"{last} {signature(wiki, one)}\n"
        parts += [f"<p>{text}</p>" for text in (*whole, last)] if not depth else ["</dd>\n<dd>".join((*whole, last))]
    return "".join([*parts, *["</dd></dl>"] * depth])


def page(wiki: Wiki) -> str:
    contents = "".join(f'<li><a href="#{title}"><span>{n}</span> {title}</a></li>' for n, (title, _) in enumerate(sections(), 1))
    return (
        "<html><title>Talk:Garden - Wiki</title><body><div id=content><h1>Talk:Garden</h1><div class=mw-parser-output>"
        "<table><tr><td>This is the talk page for discussing improvements to <b>Garden</b>.</td></tr></table>"
        f"<div id=toc class=toc role=navigation><h2>Contents</h2><ul>{contents}</ul></div>"
        f"{''.join(section(wiki, *one) for one in sections())}</div></div><div id=nav><ul><li>"
        "<a href='/wiki/Special:Recent'>Recent</a></li><li><a href='/wiki/User:Ida_Berg'>Ida</a></li></ul></div>"
        "<ul><li>This page was last edited on 3 October 2026, at 12:33.</li></ul></body></html>"
    )


@pytest.mark.parametrize("language", WIKIS)
def test_a_comment_ends_with_its_signature(language: str) -> None:
    wiki = WIKIS[language]
    seen = read_page(page(wiki), "http://wiki.example/wiki/Talk:Garden", now=NOW)
    assert seen.kind is PageKind.THREAD
    assert [(post.author, post.text, post.published, post.section) for post in seen.posts] == [
        (one.author, "\n\n".join(one.paragraphs), one.at - timedelta(hours=wiki.east), title)
        for title, comments in sections()
        for one in comments
    ]


def _with_bars(html: str) -> str:
    """Give each section a bar with figures and each comment a link for answers."""
    bar = "<div class=bar><span>3 comments</span><span>2 people in discussion</span></div></div>"
    html = re.sub(
        r"<h2><span class=mw-headline[^>]*>([^<]*)</span>.*?</h2>", rf"<div class='mw-heading mw-heading2'><h2>\1</h2>{bar}", html
    )
    return html.replace("(UTC)", '(UTC)<span class="links"><a class="replylink" role="button" href="">reply</a></span>')


@pytest.mark.parametrize(
    "change",
    [
        _with_bars,
        lambda html: html.replace("<h2>", "<hr><h2>"),
        lambda html: re.sub(
            r'<a href="(/wiki/User:[^"]*)">([^<]*)</a>', r'<span style="color:red"><a href="\1"><b>\2</b></a></span>', html
        ),
    ],
    ids=["bars", "rules", "styled names"],
)
def test_what_stands_around_comments_is_no_text(change: Callable[[str], str]) -> None:
    seen = read_page(change(page(WIKIS["en"])), "http://wiki.example/wiki/Talk:Garden", now=NOW)
    assert [(post.author, post.text, post.section) for post in seen.posts] == [
        (one.author, "\n\n".join(one.paragraphs), title) for title, comments in sections() for one in comments
    ]


def test_an_indented_comment_answers_the_one_above_it() -> None:
    posts = read_page(page(WIKIS["en"]), "http://wiki.example/wiki/Talk:Garden", now=NOW).posts
    ids = [post.id for post in posts]
    assert len(set(ids)) == len(ids)
    answered = [ids.index(post.parent) if post.parent else None for post in posts]
    assert answered == [None, 0, 1, 0, None, None, None, 6, 6, 8, None, 10, None, 12, 13, 14]
    assert posts[0].author_url == "http://wiki.example/wiki/User:Ida_Berg"


def test_names_that_are_signed_in_other_words_are_those_of_the_users_pages() -> None:
    html = (
        "<html><body><div><h2>Soil</h2><p>It is too wet here. <small>&mdash;&#160;Preceding unsigned comment added by "
        "<a href='/wiki/User:Ida_Berg'>Ida Berg</a> (<a href='/wiki/User_talk:Ida_Berg'>talk</a> &bull; "
        "<a href='/wiki/Special:Contributions/Ida_Berg'>contribs</a>) 12:34, 5 June 2020 (UTC)</small></p><dl><dd>Not at all, "
        "see <a href='/wiki/Help:Soil'>the help</a>: <ul><li>sand,</li><li>clay. <a href='/wiki/User:Bob'>The <b>Great</b> B</a> "
        "<sup><a href='/wiki/User_talk:Bob'>write me</a></sup> 13:00, 6 June 2020 (UTC)</li></ul></dd></dl>"
        "<p>Nobody signed this.</p></div></body></html>"
    )
    seen = read_page(html, "http://wiki.example/wiki/Talk:Garden", now=NOW)
    assert [(post.author, post.text) for post in seen.posts] == [
        ("Ida Berg", "It is too wet here."),
        ("Bob", "Not at all, see the help:\n\nsand,\nclay."),
        (None, "Nobody signed this."),
    ]


DASHES = {
    "camel case": (
        "<h2>Soil</h2><p>It is far too wet here in spring. -- <a href='/IdaBerg'>IdaBerg</a> <span>2020-06-05 12:34:11</span></p>"
        "<ul><li>Not at all, the sand is below. -- <a href='/BobMarsh'>BobMarsh</a> <span>2020-06-06 13:00:11</span></li></ul>"
    ),
    "names in italics": (
        "<h2>Soil</h2><p>It is far too wet here in spring. — <em><a href='mailto:i@x.example'>IdaBerg</a> 2020/06/05 12:34"
        "</em></p>"
        "<p>Not at all, the sand is below. — <em>BobMarsh 2020/06/06 13:00</em></p>"
    ),
    "on a line of their own": (
        "<p>It is far too wet here in spring. <br>-- <a href='/bin/view/Main/IdaBerg'>IdaBerg</a> - 05 Jun 2020</p>"
        "<p>Not at all, the sand is below. <br>-- Main.BobMarsh - 06 Jun 2020</p>"
    ),
}


@pytest.mark.parametrize("form", DASHES)
def test_names_behind_dashes_sign_too(form: str) -> None:
    html = f"<html><title>Garden talk</title><body><h1>GardenTalk</h1><div id=page>{DASHES[form]}</div></body></html>"
    posts = read_page(html, "http://wiki.example/GardenTalk", now=NOW).posts
    assert [(post.author, post.text) for post in posts] == [
        ("IdaBerg", "It is far too wet here in spring."),
        ("BobMarsh", "Not at all, the sand is below."),
    ]
    assert [post.published.date().isoformat() for post in posts if post.published] == ["2020-06-05", "2020-06-06"]


def test_characters_that_xml_forbids_cost_no_page() -> None:
    html = page(WIKIS["en"]).replace(". ", ".&#8; \x1b").replace("Ida Berg<", "Ida\x0b Berg&#2;<")
    posts = read_page(html.replace("User:Ida", "User:&#1;Ida"), "http://wiki.example/wiki/Talk:Garden", now=NOW).posts
    assert len(posts) == sum(len(comments) for _, comments in sections())
    assert posts[1].author == "Bob"
    assert not any(sign in f"{post.text}{post.author}" for post in posts for sign in "\x08\x1b\x0b\x02")


def test_a_written_line_between_comments_is_of_none() -> None:
    written = [one for _, comments in sections() for one in comments]
    comments = [one._replace(author=f"Ida {n}" if one.author[0].isdigit() else one.author) for n, one in enumerate(written)]
    parts = (
        "".join(f"<p>{text}</p>" for text in one.paragraphs) + f"<p>-- {one.author} {one.at:%Y-%m-%d %H:%M} UTC</p>"
        for one in comments
    )
    page = read_page(f"<h1>Comments on pumps</h1><div>{'<p>----</p>'.join(parts)}</div>", "http://wiki.example/Comments", now=NOW)
    assert [one.text for one in page.posts] == ["\n\n".join(one.paragraphs) for one in comments]
