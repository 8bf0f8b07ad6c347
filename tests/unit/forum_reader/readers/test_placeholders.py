"""What forums show in the place of a deleted post is a deletion; what a person writes about deletions is a post."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from scrapy.http import HtmlResponse

from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.reading.page_records import CommentsPage
from forum_reader.reading.read_page import read_comments

FILE = """
base_url = "http://x"
forums = ["f"]
[pages.list]
url = "/f"
rows = "li"
[pages.list.fields]
id = "a"
token = "a"
[pages.comments]
url = "/t/{thread}?page={page}"
rows = "article"
first_is_post = true
[pages.comments.fields]
id = "./@id"
author = "b"
body = "p"
"""


def page(rows: str, number: int = 1, opening: str = "") -> CommentsPage:
    site = site_of(load.read(Path("x.toml"), tomllib.loads(FILE)))
    response = HtmlResponse("http://x/t/1", body=f"<body>{rows}".encode(), encoding="utf-8")
    return read_comments(site, response, "1", number, opening=opening)


PLACEHOLDERS = [
    "[deleted]",
    "[removed]",
    "This post has been deleted.",
    "Comment deleted by its author",
    "This message was removed by a moderator",
    "Dieser Beitrag wurde vom Autor gelöscht.",
    "Ce message a été supprimé par un modérateur",
    "Este comentario ha sido eliminado por su autor.",
    "Questo messaggio è stato rimosso.",
    "Esta mensagem foi apagada",
    "Dit bericht is verwijderd",
    "Ten post został usunięty przez autora",
    "Сообщение удалено",
    "このコメントは削除されました",
    "该帖已被删除",
    "삭제된 댓글입니다.",
    "Bu mesaj silinmiştir",
    "(deleted)",
    "deleted",
    "[gelöscht]",
    "[supprimé]",
    "[eliminado]",
    "[удалено]",
    "[削除済み]",
    "Post removed by moderator",
    "This comment was deleted by the user.",
    "Deleted by author",
    "This post was removed for violating our rules.",
    "Comment removed",
    "[comment removed by moderator]",
    "Message supprimé par l'auteur",
    "Ce commentaire a été supprimé.",
    "Beitrag gelöscht",
    "Der Beitrag wurde entfernt.",
    "Dieser Kommentar wurde von einem Moderator entfernt",
    "Mensaje borrado",
    "El mensaje fue eliminado por un moderador",
    "Post eliminato dall'autore",
    "Il commento è stato cancellato",
    "Mensagem removida pelo moderador",
    "Inlägget har raderats",
    "Innlegget er slettet",
    "Indlægget er slettet.",
    "Viesti on poistettu",
    "Příspěvek byl smazán",
    "Komentarz usunięty",
    "Повідомлення видалено",
    "Сообщение было удалено модератором.",
    "Комментарий удалён автором",
    "Αυτό το μήνυμα έχει διαγραφεί",
    "Yorum silindi",
    "Bài viết đã bị xóa",
    "โพสต์นี้ถูกลบแล้ว",
    "تم حذف هذه المشاركة",
    "הודעה זו נמחקה",
    "この投稿は削除されました。",
    "投稿者により削除されました",
    "此评论已被删除",
    "該文章已被作者刪除",
    "评论已删除",
    "작성자가 삭제한 글입니다",
    "관리자에 의해 삭제되었습니다",
    "Komentar ini telah dihapus",
    "A hozzászólás törölve",
    "Mesaj șters de autor",
    "This reply has been deleted",
    "This topic was removed by its author",
    "Removed by moderator: spam",
    "[removed by reddit]",
    "Comment deleted by user",
    "Bericht verwijderd door de moderator",
    "Deze reactie is verwijderd",
    "[ Removed by Moderator ]",
    "--- deleted ---",
    "***deleted***",
]


@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_a_placeholder_is_a_deletion(text: str) -> None:
    rows = '<article id="a"><b>ida</b><p>question</p></article>'
    (comment,) = page(f'{rows}<article id="b"><b></b><p>{text}</p></article>').comments
    assert comment.deleted


@pytest.mark.parametrize(
    "text",
    [
        "This post has been deleted by me because I was wrong. Here is the right answer.",
        "Deleted my account yesterday",
        "Who removed my comment?",
        "My post was deleted",
        "Der Kommentar wurde gelöscht, warum?",
        "The comment was deleted by the admin yesterday, why?",
        "Post removed by mistake?",
        "Removed the cover and found rust.",
        "silindi mi?",
    ],
)
def test_what_a_person_writes_about_deletions_is_a_post(text: str) -> None:
    rows = '<article id="a"><b>ida</b><p>question</p></article>'
    (comment,) = page(f'{rows}<article id="b"><b>kurt</b><p>{text}</p></article>').comments
    assert not comment.deleted


def test_posts_that_share_an_id_are_all_there_and_a_repeated_one_is_there_once() -> None:
    rows = (
        '<article id="a"><b>ida</b><p>question</p></article><article id="b"><b>kurt</b><p>an answer to it</p></article>'
        '<article id="b"><b>lena</b><p>another one</p></article><article id="b"><b>kurt</b><p>an answer</p></article>'
    )
    assert [(one.id, one.author) for one in page(rows).comments] == [("b", "kurt"), ("b~2", "lena")]


def test_the_opening_post_is_no_comment_on_any_page() -> None:
    rows = '<article id="a"><b>ida</b><p>question</p></article><article id="b"><b>kurt</b><p>answer</p></article>'
    first = page(rows)
    assert first.post_id == "a"
    assert [one.id for one in page(rows, 2, opening="a").comments] == ["b"]
    assert [one.id for one in page(rows, 2).comments] == ["a", "b"], "what it is by is known from the first page"


def test_a_comment_with_the_id_of_the_opening_post_is_there() -> None:
    rows = '<article id="a"><b>ida</b><p>question</p></article><article id="a"><b>kurt</b><p>answer</p></article>'
    assert [(one.id, one.author) for one in page(rows).comments] == [("a~2", "kurt")]
