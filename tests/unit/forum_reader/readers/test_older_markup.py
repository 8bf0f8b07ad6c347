"""`read_page`: pages of known software as older versions made them."""

from __future__ import annotations

from datetime import UTC, datetime

from forum_reader.page.records import SeenPage
from forum_reader.readers.page_reader import read_page


def seen(body: str, path: str) -> SeenPage:
    html = f"<html><head><title>Lamps</title></head>{body}</html>"
    return read_page(html, f"https://forum.example{path}", now=datetime(2026, 11, 22, 12, 0, tzinfo=UTC))


def test_questions_and_answers_of_an_older_stack_exchange_are_whole_with_their_comments() -> None:
    def post(kind: str, number: int, text: str, comment: str) -> str:
        cell = "post" if kind == "question" else "answer"
        return (
            f'<div id="{kind}-{number}" class="{kind}" data-{kind}id="{number}"><table><tr><td class="{cell}cell">'
            f'<div class="post-text"><p>{text}</p></div><table><tr><td class="post-signature"><div class="user-action-time">said '
            f'<span title="2012-07-02 23:4{number}:05Z" class="relativetime">Jul 2 \'12</span></div><div class="user-details">'
            f'<a href="/users/{number}/ida">ida{number}</a></div></td></tr></table></td></tr><tr><td><div><table>'
            f'<tr id="comment-{number}7" class="comment"><td class="comment-text"><span class="comment-copy">{comment}</span> – '
            f'<a href="/users/{number}7/bob" class="comment-user">bob</a> <span class="comment-date"><span title="2012-07-03 '
            f"00:0{number}:00Z\">Jul 3 '12</span></span></td></tr></table></div></td></tr></table></div>"
        )

    question = post("question", 1, "Is there a way to share memory between two processes?", "Which system is it?")
    answer = post("answer", 2, "A file in memory is one, and both can read it.", "That copies it.")
    page = seen(
        f'<body class="question-page"><div id="question-header"><h1><a href="/questions/1/shared">Shared</a></h1></div>'
        f'{question}<div id="answers">{answer}'
        f"</div><script>StackExchange.ready()</script></body>",
        "/questions/1/x",
    )
    assert [(post.author, [comment.author for comment in post.comments]) for post in page.posts] == [
        ("ida1", ["bob"]),
        ("ida2", ["bob"]),
    ]
    assert page.posts[0].text == "Is there a way to share memory between two processes?"
