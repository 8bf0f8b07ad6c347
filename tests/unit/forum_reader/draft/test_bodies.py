"""The text of a post among other things of its element, in markup without classes."""

from __future__ import annotations

from scrapy.http import HtmlResponse

from forum_reader.draft.page_sample import OpenedPage, opened
from forum_reader.draft.thread_wrapper import learn_comments


def test_a_date_in_the_cell_of_the_text_is_not_of_the_text() -> None:
    names = ("ida", "walter", "Ben K", "Maria")
    rows = "".join(
        f'<tr bgcolor="#eee"><td><b>{names[n]}</b><br>Member</td><td><font size=1>Posted: {n + 3} Nov 2026 08:1{n}</font><hr>'
        f"My radio number {n} hums when it rains, and stops when it is dry again.</td></tr>"
        for n in range(4)
    )
    page = opened(HtmlResponse("http://f.example/t/7", body=f"<h1>Radios</h1><table>{rows}</table>".encode(), encoding="utf-8"))
    assert page is not None
    table = learn_comments([page])
    assert table is not None
    assert table["fields"]["body"] == {"select": "./td[2]", "remove": ["./font[1]"]}


def test_a_question_among_its_answers_is_the_opening_post() -> None:
    """Also where it has another class than they have, and one of the threads has a single answer."""
    names = ("ida", "walter", "Ben K", "Maria", "old-oak")

    def page(number: int, count: int) -> OpenedPage:
        posts = "".join(
            f'<div class="{"answer" if n else "question-body"}" id="p{number}{n}"><div class="prose">What I know of radio '
            f"{number} is this, said for the {n}th time and no more.</div><i>2026-11-{n + 1:02} 08:10</i> "
            f'<a href="/u/{names[n % 5][:2]}">{names[n % 5]}</a></div>'
            for n in range(count)
        )
        body = f"<h1>Radio {number}</h1><div class=posts>{posts}</div>".encode()
        found = opened(HtmlResponse(f"http://f.example/q/{number}", body=body, encoding="utf-8"))
        assert found is not None
        return found

    table = learn_comments([page(1, 12), page(2, 2)])
    assert table is not None
    assert table["first_is_post"] or "body" in table["post"]


def test_a_copy_for_quotes_that_only_its_id_names_is_not_of_the_text() -> None:
    names = ("ida", "walter", "Ben K", "Maria")
    text = "My radio hums when it rains, and stops when it is dry again, said in the year 190"
    rows = "".join(
        f'<div class="post" id="p{n}7"><a class="user" href="/user/{n}">{name}</a> <i>2026-11-0{n + 1} 08:10</i>'
        f'<div class="message"><div id="copy-of-{n}7" style="display: none;">'
        f"<blockquote>Quote from {name}: {text}{n}</blockquote></div>"
        f"<p>{text}{n}</p></div></div>"
        for n, name in enumerate(names)
    )
    page = opened(HtmlResponse("http://f.example/t/7", body=f"<h1>Radios</h1><div>{rows}</div>".encode(), encoding="utf-8"))
    assert page is not None
    table = learn_comments([page])
    assert table is not None
    assert table["fields"]["body"] == {"select": "div.message", "remove": ['div[id^="copy-of-"]']}


def test_a_box_that_several_threads_have_is_no_thread() -> None:
    news = "".join(
        f'<li class="news"><h4><a class="user" href="/user/{n}">name{n}</a></h4>'
        f"<p>What the news of today say is this, for the {n}th time and no more.</p><small>2026-11-0{n + 1} 08:10</small></li>"
        for n in range(7)
    )

    def page(number: int, count: int) -> OpenedPage:
        posts = "".join(
            f'<div class="post" id="p{number}{n}"><b>name{n}</b> <i>2026-11-0{n + 1} 08:10</i>'
            f"<p>What I know of radio {number} is said for the {n}th time.</p></div>"
            for n in range(count)
        )
        body = f"<h1>Radio {number}</h1><div>{posts}</div><ul>{news if count < 3 else ''}</ul>"
        found = opened(HtmlResponse(f"http://f.example/q/{number}", body=body.encode(), encoding="utf-8"))
        assert found is not None
        return found

    table = learn_comments([page(1, 4), page(2, 1), page(3, 4), page(4, 1)])
    assert table is not None
    assert table["rows"] == "div.post"
