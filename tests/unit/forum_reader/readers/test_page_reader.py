"""`read_page`: posts of pages of unlike makes in several languages, without a site file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from forum_reader.errors import NotAPage
from forum_reader.page.records import PageKind, Reader
from forum_reader.readers.page_reader import read_page
from tests.support import thread_pages

FIXTURES = Path(__file__).parents[3] / "fixtures" / "forums"
URL = "https://forum.example/t/1"
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
LANGUAGES = ("en", "de", "ru", "zh")


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("skin", thread_pages.SKINS)
def test_every_post_is_read_whole(skin: str, language: str) -> None:
    posts = thread_pages.posts(language)
    page = read_page(thread_pages.SKINS[skin](posts, language), URL, now=NOW)
    assert page.kind is PageKind.THREAD
    assert [words(post.text) for post in page.posts] == [words(post.text) for post in posts]
    assert [post.author for post in page.posts] == [post.author for post in posts]
    assert [post.published for post in page.posts] == [post.at.replace(tzinfo=UTC) for post in posts]


@pytest.mark.parametrize("skin", ["classes", "table_rows", "two_columns", "definition_list", "nested", "mail", "json_ld"])
def test_ids_are_the_sites_own(skin: str) -> None:
    posts = thread_pages.posts()
    page = read_page(thread_pages.SKINS[skin](posts, "en"), URL, now=NOW)
    assert [post.id for post in page.posts] == [post.id for post in posts]


def test_an_answer_within_a_post_names_it_as_its_parent() -> None:
    posts = thread_pages.posts()
    page = read_page(thread_pages.nested(posts, "en"), URL, now=NOW)
    assert [post.parent for post in page.posts] == [post.parent for post in posts]


def test_how_it_was_read_is_said() -> None:
    posts = thread_pages.posts()
    assert read_page(thread_pages.plain_divs(posts, "en"), URL, now=NOW).reader is Reader.LEARNED
    assert read_page(thread_pages.json_ld(posts, "en"), URL, now=NOW).reader is Reader.SCHEMA_ORG


def test_a_reader_that_finds_other_posts_is_named() -> None:
    posts = thread_pages.posts()
    markup = thread_pages.classes(posts, "en")
    other = thread_pages.json_ld([posts[0]], "en")
    script = other[other.index("<script") : other.index("</script>") + len("</script>")]
    page = read_page(markup.replace("</head>", f"{script}</head>"), URL, now=NOW)
    assert len(page.posts) == len(posts)
    assert any("schema.org finds 1 post" in note for note in page.notes)


def phpbb_page(posts: list[thread_pages.Post], *, unread: str = "") -> str:
    """phpBB's markup; the post of the id `unread` is of a style that its profile does not know."""
    rows = "".join(
        f"""<div id="p{post.id}" class="{"entry" if post.id == unread else "post bg2"}"><dl class="postprofile">
        <dt><a class="username" href="./memberlist.php?u=7">{post.author}</a></dt></dl>
        <p class="author">» <time datetime="{post.at.isoformat()}+00:00">then</time></p>
        <div class="{"words" if post.id == unread else "content"}">{post.text}</div></div>"""
        for post in posts
    )
    head = '<link rel="stylesheet" href="./styles/prosilver/theme/stylesheet.css">'
    body = f'<div id="page-body"><a href="./viewforum.php?f=2">Lamps</a><h2 class="topic-title"><a>Lamps</a></h2>{rows}</div>'
    return f"<html lang=en><head>{head}</head><body id=phpbb class='nojs section-viewtopic'>{body}</body></html>"


def test_where_a_profile_reads_all_posts_nothing_is_learned() -> None:
    posts = thread_pages.posts()
    markup = phpbb_page(posts)
    page = read_page(markup, URL, now=NOW)
    assert (page.reader, [post.text for post in page.posts]) == (Reader.PROFILE, [post.text for post in posts])


def test_a_post_that_the_profile_leaves_out_is_noticed() -> None:
    posts = thread_pages.posts()
    page = read_page(phpbb_page(posts, unread=posts[2].id), URL, now=NOW)
    assert page.reader is Reader.LEARNED or any("learned finds" in note for note in page.notes)


def test_signatures_edits_and_buttons_are_not_text() -> None:
    markup = thread_pages.classes(thread_pages.posts(), "en")
    page = read_page(markup, URL, now=NOW)
    text = " ".join(post.text for post in page.posts)
    assert "Never argue" not in text
    assert "Report" not in text


def test_the_note_of_an_edit_is_a_date_and_no_text() -> None:
    posts = thread_pages.posts()
    note = f"{posts[1].text}</p><span><b>Edited March 4, 2026 10:00 AM by Ida B</b></span><p>"
    page = read_page(thread_pages.classes(posts, "en").replace(posts[1].text, note), URL, now=NOW)
    assert page.posts[1].text == posts[1].text
    assert page.posts[1].edited == datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
    assert [post.edited for post in page.posts].count(None) == 5


def test_advertisements_between_posts_are_no_posts() -> None:
    posts = thread_pages.posts()
    advertised = [
        *posts[:2],
        thread_pages.Post(id="1", author="Advertisement", at=posts[1].at, text="Buy this lamp now."),
        *posts[2:],
    ]
    page = read_page(thread_pages.classes(advertised, "en"), URL, now=NOW)
    assert [post.author for post in page.posts] == [post.author for post in posts]


def test_a_post_shown_as_its_source_is_read_as_text() -> None:
    posts = thread_pages.posts()
    markup = thread_pages.classes(posts, "en").replace(posts[1].text, "&lt;p&gt;Try &lt;b&gt;another&lt;/b&gt; socket.&lt;/p&gt;")
    assert read_page(markup, URL, now=NOW).posts[1].text == "Try another socket."


def test_links_to_pages_of_the_thread_are_found() -> None:
    links = '<a href="/t/1?page=2">2</a> <a href="/t/1?page=3">3</a> <a href="/t/1?page=2" rel="next">Next</a>'
    markup = thread_pages.classes(thread_pages.posts(), "en").replace("<h1>", f"<div>{links}</div><h1>")
    page = read_page(markup, URL, now=NOW)
    assert page.next == "https://forum.example/t/1?page=2"
    assert page.pages == ("https://forum.example/t/1?page=2", "https://forum.example/t/1?page=3")


def test_a_list_of_threads_is_a_list() -> None:
    rows = "".join(
        f'<tr><td><a href="/thread/{n}-some-words">A thread about radios, number {n}</a></td>'
        f'<td><a href="/user/{n % 4}">name{n % 4}</a></td><td>{n}</td><td>2026-03-{n:02} 10:00</td></tr>'
        for n in range(1, 21)
    )
    page = read_page(thread_pages.page(f"<table>{rows}</table>", "en"), URL, now=NOW)
    assert page.kind is PageKind.LIST
    assert [row.url for row in page.rows] == [f"https://forum.example/thread/{n}-some-words" for n in range(1, 21)]


def test_a_page_of_prose_is_neither() -> None:
    page = read_page("<html><body><p>Just some words about this site.</p></body></html>", URL, now=NOW)
    assert page.kind is PageKind.OTHER
    assert page.posts == ()


def test_what_is_no_html_is_refused_by_name() -> None:
    with pytest.raises(NotAPage, match="no HTML"):
        read_page('{"posts": []}', URL, now=NOW)
    with pytest.raises(NotAPage, match="the page is empty"):
        read_page("", URL, now=NOW)


@pytest.mark.thorough
def test_a_thread_of_3000_posts_on_one_page() -> None:
    posts = "".join(
        f"<div class=post id=p{n}><b class=author>name{n % 7}</b> <time datetime=2026-03-{n % 28 + 1:02}T10:00>then</time>"
        f"<div class=text>This is what number {n} has to say about pears.</div></div>"
        for n in range(3000)
    )
    assert len(read_page(f"<html><body><h1>Pears</h1>{posts}</body></html>", URL, now=NOW).posts) == 3000


def rows_of(first: str, second: str) -> str:
    rows = "".join(
        f"""<li class="row"><a class="user" href="/user/{n % 4}">name{n % 4}</a> <i>2026-03-{n:02} 10:00</i>
        <div class="text">{first.format(n)} <span>{second.format(n)}</span></div></li>"""
        for n in range(1, 12)
    )
    return f"<html><body><ul>{rows}</ul><a href='/b?page=2'>2</a></body></html>"


def test_rows_with_an_author_and_a_date_whose_title_is_a_link_are_a_list() -> None:
    page = read_page(rows_of("<a href='/t/{0}'>How to mend radio number {0}</a>", "{} replies"), URL, now=NOW)
    assert (page.kind, len(page.rows)) == (PageKind.LIST, 11)


@pytest.mark.parametrize(
    "post", ["Look: <a href='/t/{}'>this</a>", "<a href='https://video.example/{0}'>https://video.example/{0}</a>"]
)
def test_short_posts_with_links_are_posts(post: str) -> None:
    page = read_page(rows_of(post, "that is radio number {}"), URL, now=NOW)
    assert (page.kind, len(page.posts)) == (PageKind.THREAD, 11)


def test_comments_on_a_question_or_an_answer_stand_below_it() -> None:
    beer = "Beer in a saucer drowns them in the night; the next morning there are none, and the salad is whole."
    markup = (FIXTURES / "stackexchange" / "comments-1.html").read_text().replace("Beer.", beer)
    page = read_page(markup, URL, now=NOW)
    told = [(post.number, post.id, post.text, [(one.id, one.author, one.text) for one in post.comments]) for post in page.posts]
    assert told == [
        (1, "41", "They eat everything.", [("55", "Cid", "Which slugs?")]),
        (2, "902", beer, [("56", "Ann", "Thanks"), ("57", "Cid", "How much beer?")]),
    ]


@pytest.mark.parametrize("has_answer", [True, False])
def test_comments_are_apart_from_answers_where_the_page_marks_both(has_answer: bool) -> None:
    def marked(kind: str, number: int, **more: object) -> dict[str, object]:
        text = f"{kind} number {number} says something of its own here."
        author, at = {"@type": "Person", "name": f"name{number}"}, f"2026-03-0{number}T10:00:00Z"
        named = {"@context": "https://schema.org", "@type": kind, "@id": f"#post-{number}", "author": author}
        return {**named, "text": text, "datePublished": at, **more}

    answers = [marked("Answer", 3, comment=[marked("Comment", 4)]), marked("Answer", 5)] if has_answer else []
    question = marked("Question", 1, comment=[marked("Comment", 2)], suggestedAnswer=answers)
    page = read_page(f'<script type="application/ld+json">{json.dumps(question)}</script><p>Lamps</p>', URL, now=NOW)
    expected = [("1", ["2"]), ("3", ["4"]), ("5", [])] if has_answer else [("1", []), ("2", [])]
    assert [(post.id, [one.id for one in post.comments]) for post in page.posts] == expected


BOARD = "https://forum.example/board"


def titled(count: int, address: str) -> str:
    """Rows with a title, an author, a date, and more text than the title has."""
    rows = "".join(
        f"""<div class="item"><h4><a href="{address.format(n)}">Radio number {n}</a></h4>
        <p>It hums as soon as the tubes are warm, and number {n} is louder than that before it.</p>
        <a href="/user/{n % 4}">name{n % 4}</a> <time datetime="2026-03-{n:02}T10:00:00Z">2026-03-{n:02}</time></div>"""
        for n in range(1, count + 1)
    )
    return thread_pages.page(f"<main>{rows}</main>", "en")


def test_rows_with_a_title_each_and_the_beginning_of_their_text_are_a_list() -> None:
    page = read_page(titled(12, "/t/{}"), BOARD, now=NOW)
    assert (page.kind, len(page.rows), page.posts) == (PageKind.LIST, 12, ())


@pytest.mark.parametrize("address", ["#post-{}", "/user/{}", "/t/all"])
def test_links_of_posts_to_themselves_or_one_page_or_people_are_no_titles(address: str) -> None:
    page = read_page(titled(12, address), BOARD, now=NOW)
    assert (page.kind, len(page.posts)) == (PageKind.THREAD, 12)


PERMALINKS = {
    "to an anchor of the post": '<a name="m{0}"></a><a href="/t/1.msg{0}#m{0}">{1}</a>',
    "to an anchor before the post": '<a href="/comment/{0}#p{0}">{1}</a>',
    "numbered": '<a href="/reply/{0}">Reply #{0} –</a>',
}


@pytest.mark.parametrize("link", PERMALINKS.values(), ids=PERMALINKS)
def test_links_of_posts_to_themselves_with_a_text_each_are_no_titles(link: str) -> None:
    posts = thread_pages.posts()
    rows = "".join(
        f"""<a id="p{n}"></a><div class="post"><h3>{link.format(n, post.text[:20])}</h3>
        <a href="/user/{post.author}">{post.author}</a> <i>{post.at:%Y-%m-%d %H:%M}</i>
        <div class="body">{post.text}</div></div>"""
        for n, post in enumerate(posts, 31)
    )
    page = read_page(thread_pages.page(f"<main>{rows}</main>", "en"), URL, now=NOW)
    assert [words(post.text) for post in page.posts] == [words(post.text) for post in posts]


@pytest.mark.parametrize(
    ("where", "link"),
    [
        ("than that", "than <a class='word' href='/lexicon/part-{}'>part {}</a> "),
        ("</div>", "<p class='likes'><a href='/posts/{}/likes'>ida, ole, x{} and 8 others</a></p></div>"),
    ],
)
def test_links_in_the_sentences_of_posts_and_below_them_are_no_titles(where: str, link: str) -> None:
    parts = titled(12, "#post-{}").split(where)
    page = "".join(part + (link.format(n, n) if n < len(parts) else "") for n, part in enumerate(parts, 1))
    seen = read_page(page, BOARD, now=NOW)
    assert (seen.kind, len(seen.posts)) == (PageKind.THREAD, 12)


def test_boards_above_the_threads_of_a_board_are_no_threads() -> None:
    boards = "".join(
        f"""<div class="sub"><h4><a href="/forum/{name}">{name}</a></h4><p>What there is to say of such radios in general</p>
        <a href="/user/{n}">name{n}</a> <time datetime="2026-03-2{n}T10:00:00Z">2026-03-2{n}</time></div>"""
        for n, name in enumerate(("Tubes", "Aerials", "Batteries"))
    )
    page = read_page(titled(9, "/forum/{}-radio").replace("<main>", f"<main>{boards}"), BOARD, now=NOW)
    assert [row.url for row in page.rows] == [f"https://forum.example/forum/{n}-radio" for n in range(1, 10)]


@pytest.mark.parametrize("link", ["/category/{}", "/forumdisplay.php?fid={}", "/forum-{}.htm", "/i.php?a=forum&f={}"])
def test_four_boards_are_an_index(link: str) -> None:
    boards = "".join(
        f"<li><b><a href='{link.format(n)}'>Board number {n}</a></b><p>What there is to say of such radios, {n} in all</p></li>"
        for n in range(4)
    )
    page = read_page(f"<html><body><h1>Boards</h1><ul>{boards}</ul></body></html>", BOARD, now=NOW)
    assert (page.kind, len(page.rows)) == (PageKind.INDEX, 4)


def test_the_date_in_a_bubble_is_read() -> None:
    posts = thread_pages.posts()
    rows = "".join(
        f"""<div class="post" id="post-{post.id}"><a href="/profile/{post.author}/">{post.author}</a>
        <span data-content="{post.at:%d %b %Y, %H:%M}">9 months ago</span><div class="body">{post.text}</div></div>"""
        for post in posts
    )
    page = read_page(thread_pages.page(rows, "en"), URL, now=NOW)
    assert [post.published for post in page.posts] == [post.at.replace(second=0, tzinfo=UTC) for post in posts]
