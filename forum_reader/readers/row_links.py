"""Links of a page's rows: the threads of a board, the boards of an index.

Links at the same place in their rows are a group. The group with the most text is taken, without menus, sidebars and the foot of
a page: a menu may have more links than a board has threads. Of several links in each row (the last answer's, a page's) the first
whose text differs from row to row is taken. Labels distinguish boards, which have topics and members, from threads, which have
replies and views.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from urllib.parse import urljoin, urlsplit

from forum_reader.fields import post_marks
from forum_reader.page.page_address import host_of
from forum_reader.page.page_tree import LETTER, PageTree, around, is_framed
from forum_reader.page.records import SeenLink

from .repeated_blocks import alone

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


LEAST_ROWS = 5
_MANY_ROWS = 10
_MOST_ROWS = 500
_SHORTEST, _LONGEST = 4, 250  # characters of a title
_MOST_WEIGHED = 30  # links of a group
_HALF = 0.5
_LEAST_PROSE = 8  # characters of a row outside of links
_MUCH = 100  # characters of links
_NEARLY_TWO = 1.8  # links in each row
_ONE_KIND = 0.3  # forms of addresses for each row
_MOST_GROUPS = 60
_MOST_COLUMNS = 12


def listed(tree: PageTree, url: str, titles: tuple[SeenLink, ...] = ()) -> tuple[tuple[SeenLink, ...], bool]:
    """Return the links of the rows of the page at `url`, in its order, and True if they lead to threads, False if to forums; no
    links where nothing is listed. `titles`: rows that were found already.
    """
    links = [] if titles else links_of(tree)
    rows = titles or _seen(tree, links, url)
    of_threads = suggests_threads(tree, links)
    return rows, _is_of_threads(rows) if of_threads is None else of_threads


def _is_of_threads(rows: Sequence[SeenLink]) -> bool:
    """Return True if rows are many, or lead to addresses of one form: threads, not forums."""
    if len(rows) < _MANY_ROWS and all(post_marks.is_forum_link(row.url) for row in rows):
        return False
    if sum(post_marks.is_one_forum(row.url) for row in rows) >= _NEARLY_ALL * max(1, len(rows)):
        return False
    shapes = {form_of(row.url) for row in rows}
    return len(rows) >= _MANY_ROWS or len(shapes) < _ONE_KIND * max(1, len(rows))


def form_of(url: str) -> str:
    """Return the path of an address with numbers and hyphenated names replaced, equal for pages of one kind."""
    return re.sub(r"[^/?&=]+", lambda part: _form_of_part(part[0]), urlsplit(url).path)


def _form_of_part(part: str) -> str:
    if "-" in part:
        return "**" if part[0].isdecimal() else "*"
    return re.sub(r"\d+", "*", part)


def links_of(tree: PageTree) -> list[int]:
    """Return the elements of the links of the rows."""
    best: list[int] = []
    best_score = (False, 0)
    every = sorted(_outside_menus(tree, _groups(tree)), key=lambda one: -len(one))[:_MOST_GROUPS]
    rows = [
        members
        for members in every
        if _differ(tree, members)
        and (len(members) >= LEAST_ROWS or _lead_to_forums(tree, members) or suggests_threads(tree, members) is not None)
    ]
    for members in rows:
        size = sum(map(tree.size, members))
        sure = size >= _MUCH or _have_prose(tree, members) or suggests_threads(tree, members) is not None
        if (sure, size) > best_score:
            best, best_score = members, (sure, size)
    return _first_of_rows(tree, best, rows) if best else []


def _seen(tree: PageTree, links: Sequence[int], url: str) -> tuple[SeenLink, ...]:
    here = host_of(urlsplit(url))
    rows: dict[str, SeenLink] = {}
    for i in links[:_MOST_ROWS]:
        target = _on_host(tree, i, url, here)
        if target is not None:
            title = tree.joined(tree.first_text[i], tree.last_text[i]).partition("\n")[0]  # the link may be the whole row
            rows.setdefault(target.partition("#")[0], SeenLink(url=target, title=title))
    return tuple(rows.values())


def _on_host(tree: PageTree, i: int, url: str, here: str) -> str | None:
    """Return the target of a link; None where it is on another host."""
    href = tree.attributes[i].get("href")
    try:
        target = urljoin(url, href) if href else None
        return target if target is not None and host_of(urlsplit(target)) == here else None
    except ValueError:
        return None


def _groups(tree: PageTree) -> list[list[int]]:
    """Group links by their ancestors, without links to people."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, tag in enumerate(tree.tag):
        if tag != "a" or not _is_title(tree, i) or post_marks.is_profile_link(tree.attributes[i].get("href") or ""):
            continue
        up = tree.parent[i]
        above = tree.parent[up] if up >= 0 else -1
        column = next((_nth(tree, cell) for cell in (up, above) if cell >= 0 and tree.tag[cell] == "td"), 0)
        groups[tree.sign[i], tree.sign[up], tree.sign[above] if above >= 0 else -1, column].append(i)
    return [part for members in groups.values() for part in _by_place(tree, members)]


def _outside_menus(tree: PageTree, groups: Iterable[list[int]]) -> Iterable[list[int]]:
    """Yield the members of groups that do not stand in menus."""
    framed: dict[int, bool] = {}
    for members in groups:
        if is_framed(tree, around(tree, members)):
            continue
        for up in {tree.parent[i] for i in members} - framed.keys():
            framed[up] = is_framed(tree, up)
        if outside := [i for i in members if not framed[tree.parent[i]]]:
            yield outside


def _nth(tree: PageTree, cell: int) -> int:
    count, sibling = 0, tree.parent[cell] + 1
    while sibling < cell and count < _MOST_COLUMNS:
        count, sibling = count + 1, tree.end[sibling]
    return count


def _by_place(tree: PageTree, members: list[int]) -> Iterable[list[int]]:
    """Split a group whose rows have several links each: the first of each row, the second, and so on."""
    counts = Counter(tree.parent[i] for i in members)
    if len(counts) < LEAST_FORUMS or len(members) < _NEARLY_TWO * len(counts):
        return (members,)
    places: dict[int, list[int]] = defaultdict(list)
    seen: Counter[int] = Counter()
    for i in members:
        places[seen[tree.parent[i]]].append(i)
        seen[tree.parent[i]] += 1
    return places.values()


def _is_title(tree: PageTree, i: int) -> bool:
    size = tree.size(i)
    return _SHORTEST <= size < _LONGEST or (1 < size < _SHORTEST and tree.string(i).isalpha())


def rows_of(tree: PageTree, members: Sequence[int]) -> list[tuple[int, int]]:
    """Return for each link the largest element around it that holds no other member."""
    return [(top, tree.end[top]) for top in alone(tree, members)]


def _differ(tree: PageTree, members: Sequence[int]) -> bool:
    """Return True if most texts differ and have letters: not `Reply`, not `#171193`."""
    few = members[:_MOST_WEIGHED]
    return sum(bool(LETTER.search(text)) for text in {tree.string(i) for i in few}) >= _HALF * len(few)


def _have_prose(tree: PageTree, members: Sequence[int]) -> bool:
    """Return True if rows have words outside of links: the number of threads, a description."""
    rows = rows_of(tree, members[: _MOST_WEIGHED + 1])[:_MOST_WEIGHED]
    return sum(tree.written_in(start) for start, _ in rows) >= _LEAST_PROSE * len(rows)


def _first_of_rows(tree: PageTree, best: list[int], groups: list[list[int]]) -> list[int]:
    """Return, of all groups with one link in each row of `best`, the first whose texts and addresses differ."""
    rows = rows_of(tree, best)
    least = _NEARLY_ALL * len(rows)
    found, first = best, sum(i - row[0] for i, row in zip(best, rows, strict=True))
    for members in groups:
        if len(members) < len(rows):
            continue
        firsts = [
            (members[at], row) for row in rows if (at := bisect_left(members, row[0])) < len(members) and members[at] < row[1]
        ]
        place = sum(i - row[0] for i, row in firsts)
        if len(firsts) < len(rows) or place >= first:
            continue
        texts = {tree.string(i) for i, _ in firsts}
        addresses = {(tree.attributes[i].get("href") or "").partition("#")[0] for i, _ in firsts}
        if min(len(texts), len(addresses), sum(bool(LETTER.search(text)) for text in texts)) >= least:
            found, first = [i for i, _ in firsts], place
    return found


def _lead_to_forums(tree: PageTree, links: Sequence[int]) -> bool:
    return len(links) >= LEAST_FORUMS and all(post_marks.is_forum_link(tree.attributes[i].get("href") or "") for i in links)
