"""Date and last edit of each block: of several dates the one that is in order, and is not the author's."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from forum_reader.dates.post_calendar import Calendar
from forum_reader.dates.post_dates import LONGEST, spotted
from forum_reader.page.page_tree import PageTree
from forum_reader.readers.block_paths import BlockPaths
from forum_reader.readers.checks import order

from . import class_words

_EDITED = re.compile(
    r"\bedit|bearbeitet|geändert|modifi|redigi|editad|изменен|исправлен|редактир|отредакт|编辑|編輯|編集|수정|düzenle|muokattu|redigera|ændret|endret|ändrad|upraven|"
    r"zmienion|bijgewerkt|bewerkt|updated",
    re.IGNORECASE,
)
_OTHER = re.compile(  # the last reply, or the day of joining
    r"last (?:reply|post|seen|activity|visit|active|online)|letzte[rs]? (?:antwort|beitrag)|ostatni|senast|последн|"
    r"derni[eè]re? (?:réponse|message|visite)|[uú]ltim[ao] (?:respuesta|mensaje|visita|resposta|risposta|messaggio)|"
    r"laatste (?:reactie|bericht)|最后登录|最後登錄|joined|join date|registr|member since|dabei seit|beigetreten|"
    r"mitglied seit|anmeld(?:ung|edat)|angemeldet|inscri|membre depuis|miembro|se unió|iscri[tz]|membro|cadastr|"
    r"geregistreerd|lid s(?:inds|ed)|medlem s(?:ed|i)|blev medlem|gick med|tilmeldt|liitty|rekisteröi|dołączy|rejestr|"
    r"csatlakoz|regisztr|înregistr|membru din|katılım|kayıt|üyelik|регистр|присоедин|с нами с|реєстр|приєдна|εγγραφ|"
    r"μέλος από|التسجيل|انضم|عضویت|הצטרף|הרשמה|tham gia|gia nhập|bergabung|注册|註冊|加入|登録日|参加|가입|เข้าร่วม",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")
_PRELUDE = 16  # characters before the word: `Last `, `Dieser Beitrag wurde `
_LONGEST = 100  # characters around a date that name its meaning
_LONGEST_WORD = 30
_LIKELY = 0.25
_OF_ANOTHER = -1.0  # score of other dates than a post's: the day of joining
_MOST_PLACES = 6
_NEARLY_ALL = 0.9  # of the blocks


@dataclass(slots=True)
class Dates:
    """By the block's number: the element of its date, the date, when it was edited."""

    elements: dict[int, int]
    published: list[datetime | None]
    edited: list[datetime | None]


def find_dates(paths: BlockPaths, calendar: Calendar, authors: dict[int, int]) -> Dates:
    """Find the dates of all blocks; for blocks whose markup differs from the others' the likeliest date in each."""
    places: dict[int, dict[int, int]] = defaultdict(dict)
    for number in range(paths.count):
        for i in paths.dates_in(number):
            places[paths.path_of[i]].setdefault(number, i)
    scored = [(*_score(paths, calendar, found, authors), found) for found in places.values()]
    scored.sort(key=lambda one: -one[0])
    if scored and (exact := _exact(paths, scored)) is not None:
        scored.insert(0, scored.pop(exact))
    elements: dict[int, int] = {}
    dates: list[datetime | None] = [None] * paths.count
    for score, read, found in scored[:_MOST_PLACES]:
        if score <= _OF_ANOTHER or (score < _LIKELY and elements):
            break
        for number, i in found.items():
            if number not in elements and read[number] is not None:
                elements[number], dates[number] = i, read[number]
        if len(elements) == paths.count:
            break
    signs = {paths.tree.sign[i] for i in elements.values()}
    for number in range(paths.count):
        if number not in elements and (other := _in_other_markup(paths, number, signs)) is not None:
            elements[number] = other
    ordered = sorted(elements)
    if len({paths.path_of[i] for i in elements.values()}) > 1:  # dates of several places have one order of day and month
        moments = calendar.read([paths.marks.dates[elements[number]] for number in ordered])
        for number, moment in zip(ordered, moments, strict=True):
            dates[number] = moment
    return Dates(elements, dates, [None] * paths.count)


def _exact(paths: BlockPaths, scored: list[tuple[float, dict[int, datetime | None], dict[int, int]]]) -> int | None:
    """Return the place with the same dates to the minute, where the best place has only `3 days ago`."""
    dates, (_, rough, found) = paths.marks.dates, scored[0]
    backs = {number: back for number, i in found.items() if (back := dates[i].back) is not None and dates[i].hour is None}
    if len(backs) < len(found):
        return None
    for place, (_, read, others) in enumerate(scored[1:_MOST_PLACES], 1):
        same = (
            (one := read.get(number)) is not None
            and (other := rough[number]) is not None
            and dates[others[number]].back is None
            and abs(one - other) <= max(timedelta(days=1.5), back)
            for number, back in backs.items()
            if number in others
        )
        if sum(same) >= _NEARLY_ALL * len(found):
            return place
    return None


def find_edits(paths: BlockPaths, calendar: Calendar, dates: Dates) -> list[datetime | None]:
    """Return the date of each block's last edit; None where the block names none."""
    found: list[datetime | None] = []
    for number in range(paths.count):
        edits = [
            i
            for i in paths.dates_in(number)
            if i != dates.elements.get(number) and not paths.in_quote(i) and _is_of(paths, i, _EDITED, True)
        ]
        moments = [moment for moment in calendar.read([paths.marks.dates[i] for i in edits[:5]]) if moment is not None]
        published = dates.published[number]
        later = [moment for moment in moments if published is None or moment >= published]
        found.append(max(later, default=None))
    return found


def begins_with_edit(text: str) -> bool:
    """Return True if a text begins with a note of an edit."""
    match = _EDITED.search(text)
    return match is not None and match.start() <= _PRELUDE


def _score(
    paths: BlockPaths, calendar: Calendar, found: dict[int, int], authors: dict[int, int]
) -> tuple[float, dict[int, datetime | None]]:
    tree = paths.tree
    numbers = sorted(found)
    spots = [paths.marks.dates[found[number]] for number in numbers]
    moments = dict(zip(numbers, calendar.read(spots), strict=True))
    known = [moment for moment in moments.values() if moment is not None]
    if not known:
        return _OF_ANOTHER, moments
    sample = [found[number] for number in numbers[:6]]
    if all(_is_of(paths, i, _OTHER, False) for i in sample):
        return _OF_ANOTHER, moments
    share = 1 / len(sample)
    exact = sum(spot.precision for spot in spots) / len(spots)
    in_order = 0.5 if len(known) < 2 else order(known)
    score = 0.5 * len(known) / paths.count + 0.35 * in_order + 0.08 * exact
    score += 0.05 * share * sum(tree.tag[i] == "time" or "datetime" in tree.attributes[i] for i in sample)
    score -= 0.7 * share * sum(paths.in_quote(i) for i in sample)
    score -= 0.7 * share * sum(_is_of(paths, i, _EDITED, True) or _is_of(paths, i, _OTHER, False) for i in sample)
    score -= 0.3 * _follows_author(paths, moments, authors)
    position = share * sum(found[number] - paths.blocks[number].start for number in numbers[:6])
    length = share * sum(_own_length(tree, i) for i in sample)
    return score - min(0.1, position / 2000) - 0.2 * (length > 60), moments


def _own_length(tree: PageTree, i: int) -> int:
    """Return the length of an element's longest text outside of inner elements; of all its text, where it has none outside."""
    own = [len(tree.texts[k]) for k in range(tree.first_text[i], tree.last_text[i]) if tree.owner[k] == i]
    return max(own, default=tree.size(i))


def _is_of(paths: BlockPaths, i: int, words: re.Pattern[str], by_class: bool) -> bool:
    """Return True if the text or the classes around a date match `words`: it is the date of an edit, of joining or of a visit."""
    tree = paths.tree
    if (line := _line_of(paths, i)) and _is_before_number(words, line):
        return True
    up = i
    for _ in range(3):
        if up < 0 or tree.size(up) > _LONGEST or paths.has_date(up, i):  # words before another date are of that
            return False
        text = (
            paths.string(up) if by_class else " ".join(tree.texts[tree.first_text[up] : tree.last_text[i]])
        )  # text behind the date belongs to other elements
        if _is_before_number(words, text) or (by_class and class_words.suggests_edited(paths.names(up))):
            return True
        up = tree.parent[up]
    return False


def _line_of(paths: BlockPaths, i: int) -> str:
    """Return the line of a multi-line element that holds its date."""
    tree, precision = paths.tree, paths.marks.dates[i].precision
    own = [k for k in range(tree.first_text[i], tree.last_text[i]) if tree.owner[k] == i and len(tree.texts[k]) <= LONGEST]
    lines = (tree.texts[k] for k in own) if len(own) > 1 else ()
    return next((line for line in lines if (date := spotted(line)) is not None and date.precision == precision), "")


@lru_cache(maxsize=2048)
def _is_before_number(words: re.Pattern[str], text: str) -> bool:
    """Return True if one of the words stands before the first number: `edited 21.4.`, not `20.4. (edited 21.4.)`."""
    number = _NUMBER.search(text)
    if number is None or number.start() < 3:
        return words.search(text) is not None
    match = words.search(text, 0, number.start() + _LONGEST_WORD)
    return match is not None and match.start() < number.start()


def _follows_author(paths: BlockPaths, moments: dict[int, datetime | None], authors: dict[int, int]) -> float:
    """Return 1 where each author has one and the same date in all posts, like the day of joining."""
    by_author: dict[str, set[datetime | None]] = defaultdict(set)
    posts: Counter[str] = Counter()
    for number, moment in moments.items():
        if number in authors:
            name = paths.string(authors[number])
            by_author[name].add(moment)
            posts[name] += 1
    several = [name for name, number in posts.items() if number > 1]
    return sum(len(by_author[name]) == 1 for name in several) / len(several) if several else 0.0


def _in_other_markup(paths: BlockPaths, number: int, signs: set[int]) -> int | None:
    best, best_score = None, 0.0
    for i in paths.dates_in(number):
        precision = paths.marks.dates[i].precision
        if precision < 2 or paths.in_quote(i) or _is_of(paths, i, _OTHER, False):
            continue
        score = precision + 2.0 * (paths.tree.sign[i] in signs)
        score -= 3 * _is_of(paths, i, _EDITED, True)
        if score > best_score:
            best, best_score = i, score
    return best
