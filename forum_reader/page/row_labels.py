"""Labels of columns and rows: boards have topics and members, threads have replies and views."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .frames import around
from .page_tree import PageTree, Range

LEAST_FORUMS = 3  # of an index, by their addresses
_NEARLY_ALL = 0.8  # of the rows
_LONGEST_LABEL = 30
_MOST_TEXTS = 3000  # that are searched for labels
_LEVELS_ABOVE = 3  # of elements around all rows, with the heads of the columns
_BETWEEN = re.compile(r"[·•|,;/]")  # `31 threads · 288 posts`
_THREADS = re.compile(
    r"(?<![\d.,\s])[\d.,\s]*+(?:topics|threads|discussions|conversations|themen|diskussionen|sujets|temas|hilos|tópicos|discussioni|"
    r"argomenti|onderwerpen|tema(?:er|t)|ämnen|trådar|tråde|aiheet|wątki|tematy|témat[ay]?|тем[аы]?|темы|konular|主题(?:数)?|主題|话题|"
    r"話題|トピック|スレッド|주제)[\s:：]*+[\d.,\s]*+[kKMw万]?",
    re.IGNORECASE,
)
_OF_ONE = re.compile(r"[主话話][题題]|トピック|スレッド|주제|тема|tema", re.IGNORECASE)
"""Words for both a thread and threads: the heading of a column of titles may be the same word."""
_REPLIES = re.compile(
    r"(?<![\d.,\s])[\d.,\s]*+(?:repl(?:y|ies)|answers?|views?|antwort(?:en)?|aufrufe|hits|zugriffe|réponses?|vues?|respuestas?|vistas|visitas|"
    r"respostas?|rispost[ae]|visite|reacties?|svar|visninger|visningar|vastauk\w*|odpowiedzi|odpověd\w*|ответ(?:ов|ы|а)?|просмотр\w*|"
    r"cevap(?:lar)?|回复|回覆|回帖|查看|浏览|返信|閲覧|답글|조회)[\s:：]*+[\d.,\s]*+[kKMw万]?",
    re.IGNORECASE,
)
_POSTS = re.compile(
    r"[\d.,\s]++[kKMw万]?\s*+(?:posts|messages|members|followers|subscribers|beiträge|mitglieder|abonnenten|membres|mensajes|"
    r"miembros|messaggi|membri|berichten|leden|inlägg|medlemmar|indlæg|posty|сообщени[йея]|участник(?:ов|а)?|帖子|篇帖子|成员)",
    re.IGNORECASE,
)


def suggests_threads(tree: PageTree, links: Sequence[int]) -> bool | None:
    """Return True if columns and labels are those of threads (replies, views), False if of boards (topics), None without
    evidence.
    """
    if len(links) < LEAST_FORUMS:
        return None
    area = around(tree, links)
    for _ in range(_LEVELS_ABOVE):
        up = tree.parent[area]
        if up <= 0 or tree.size(up) > tree.size(area) + 5 * _LONGEST_LABEL:
            break
        area = up
    start, end = tree.first_text[area], min(tree.last_text[area], tree.first_text[area] + _MOST_TEXTS)
    labels = [part.strip() for text in tree.texts[start:end] if len(text) <= 2 * _LONGEST_LABEL for part in _BETWEEN.split(text)]
    threads, replies = (sum(bool(word.fullmatch(text)) for text in labels) for word in (_THREADS, _REPLIES))
    if threads == 1 and any(_OF_ONE.fullmatch(text) for text in labels):
        threads = 0
    least = _NEARLY_ALL * len(links)
    if threads >= least or replies >= least:
        return threads < least
    return replies > 0 if bool(replies) != bool(threads) else None


def count_posts(tree: PageTree, rows: Iterable[Range]) -> bool:
    """Return True if each row has a number of posts or members."""
    texts = [tree.texts[tree.first_text[start] : tree.last_text[start]] for start, _ in rows]
    return sum(any(_POSTS.fullmatch(text.strip()) for text in row) for row in texts) >= _NEARLY_ALL * len(texts)
