"""Date and last edit of each block (of several dates the one that is in order, and is not the author's), and its id: an
attribute that each block has with a different value. The first block may have none: an opening post has the thread's id.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from forum_reader.dates.post_calendar import Calendar
from forum_reader.readers.block_paths import BlockPaths
from forum_reader.readers.checks import order

from . import post_marks
from .post_marks import DATE_DATA, suggests_date

# In small letters: `re` needs a third of the time where it need not ignore the case.
_EDITED = re.compile(
    r"\bedit|bearbeitet|geändert|modifi|redigi|editad|изменен|исправлен|редактир|отредакт|编辑|編輯|編集|수정|düzenle|muokattu|redigera|ændret|endret|ändrad|upraven|"
    r"zmienion|bijgewerkt|bewerkt|updated",
)
_OTHER = re.compile(  # the last reply, or the day of joining
    r"last (?:reply|post|seen|activity|visit|active|online)|letzte[rs]? (?:antwort|beitrag)|ostatni|senast|последн|"
    r"derni[eè]re? (?:réponse|message|visite)|[uú]ltim[ao] (?:respuesta|mensaje|visita|resposta|risposta|messaggio)|"
    r"laatste (?:reactie|bericht)|最后登录|最後登錄|joined|join date|registr|member since|dabei seit|beigetreten|"
    r"mitglied seit|anmeld(?:ung|edat)|angemeldet|inscri|membre depuis|miembro|se unió|iscri[tz]|membro|cadastr|"
    r"geregistreerd|lid s(?:inds|ed)|medlem s(?:ed|i)|blev medlem|gick med|tilmeldt|liitty|rekisteröi|dołączy|rejestr|"
    r"csatlakoz|regisztr|înregistr|membru din|katılım|kayıt|üyelik|регистр|присоедин|с нами с|реєстр|приєдна|εγγραφ|"
    r"μέλος από|التسجيل|انضم|عضویت|הצטרף|הרשמה|tham gia|gia nhập|bergabung|注册|註冊|加入|登録日|参加|가입|เข้าร่วม",
)
_NUMBER = re.compile(r"\d")
_ONE_NUMBER = re.compile(r"\W{0,9}[^\W\d]{0,9}\W{0,3}\d[\d.,]*+\W{0,9}[^\W\d]{0,9}\W{0,9}")  # `#12`, `12 posts`, `Posts: 133`
_OF_DATE = re.compile(r"date|time|when|posted|stamp|age\b", re.IGNORECASE)
_MOST_DATED = 0.6  # of the blocks
_LONGEST = 100  # characters around a date that name its meaning
_LONGEST_WORD = 30
_LIKELY = 0.25
_OF_ANOTHER = -1.0  # score of other dates than a post's: the day of joining
_MOST_PLACES = 6


@dataclass(slots=True)
class Dates:
    """By the block's number: the element of its date, and the date."""

    elements: dict[int, int]
    published: list[datetime | None]


def find_dates(paths: BlockPaths, calendar: Calendar, authors: dict[int, int]) -> Dates:
    """Find the dates of all blocks."""
    places: dict[int, dict[int, int]] = defaultdict(dict)
    for number in range(paths.count):
        for i in paths.dates_of[number]:
            places[paths.path_of[i]].setdefault(number, i)
    scored = [(*_score(paths, calendar, found, authors), found) for found in places.values()]
    scored.sort(key=lambda one: -one[0])
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
    ordered = sorted(elements)
    if len({paths.path_of[i] for i in elements.values()}) > 1:  # dates of several places have one order of day and month
        moments = calendar.read([paths.marks.dates[elements[number]] for number in ordered])
        for number, moment in zip(ordered, moments, strict=True):
            dates[number] = moment
    return Dates(elements, dates)


def find_edits(paths: BlockPaths, calendar: Calendar, dates: Dates) -> list[datetime | None]:
    """Return the date of each block's last edit; None where the block names none."""
    found: list[datetime | None] = []
    for number in range(paths.count):
        edits = [i for i in paths.dates_of[number] if i != dates.elements.get(number) and _is_of(paths, i, edit=True)]
        moments = [moment for moment in calendar.read([paths.marks.dates[i] for i in edits[:5]]) if moment is not None]
        published = dates.published[number]
        later = [moment for moment in moments if published is None or moment >= published]
        found.append(max(later, default=None))
    return found


def may_be_dates(paths: BlockPaths, authors: dict[int, int]) -> list[str]:
    """Return short texts with digits that stand at one place of most blocks and differ: dates, maybe, of a page without any."""
    tree, taken, best = paths.tree, set(authors.values()), (0.0, list[str]())
    for place in paths.places[1:]:
        texts = [paths.string(i) for i in place.first.values() if i not in taken and 0 < tree.size(i) <= _LONGEST_WORD]
        dated = [text for text in texts if len(_NUMBER.findall(text)) > 1 and not _ONE_NUMBER.fullmatch(text)]
        named = any(_OF_DATE.search(f"{tree.tag[i]} {paths.names(i)}") for i in list(place.first.values())[:3])
        if len(dated) >= _MOST_DATED * paths.count and len(set(dated)) > 1:
            best = max(best, (named + 1 / sum(map(len, dated)), dated))
    return best[1][:3]


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
    if all(_is_of(paths, i) for i in sample):
        return _OF_ANOTHER, moments
    share = 1 / len(sample)
    exact = sum(spot.precision for spot in spots) / len(spots)
    in_order = 0.5 if len(known) < 2 else order(known)
    score = 0.5 * len(known) / paths.count + 0.35 * in_order + 0.08 * exact
    score += 0.05 * share * sum(tree.tag[i] == "time" or "datetime" in tree.attributes[i] for i in sample)
    score -= 0.3 * _follows_author(paths, moments, authors)
    score -= 0.7 * share * sum(_is_of(paths, i, edit=True) or _is_of(paths, i) for i in sample)
    position = share * sum(found[number] - paths.blocks[number].start for number in numbers[:6])
    length = share * sum(tree.size(i) for i in sample)
    return score - min(0.1, position / 2000) - 0.2 * (length > 60), moments


def _is_of(paths: BlockPaths, i: int, *, edit: bool = False) -> bool:
    """Return True if a date is that of an edit, else of joining, a visit, the last reply: by the text around it, and the classes
    of an edit.
    """
    known: bool | None = paths.marks.known.get((edit, i))
    if known is None:
        known = paths.marks.known[edit, i] = _is_named(paths, i, _EDITED if edit else _OTHER, by_class=edit)
    return known


def _is_named(paths: BlockPaths, i: int, words: re.Pattern[str], *, by_class: bool) -> bool:
    tree = paths.tree
    up = i
    for _ in range(3):
        if up < 0 or tree.size(up) > _LONGEST or paths.has_date(up, i):  # words before another date are of that
            return False
        text = (
            paths.string(up) if by_class else " ".join(tree.texts[tree.first_text[up] : tree.last_text[i]])
        )  # text behind the date belongs to other elements
        if words.search(text.lower()) or (by_class and post_marks.suggests_edited(paths.names(up))):
            return True
        up = tree.parent[up]
    return False


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


_UUID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/?$", re.IGNORECASE)
_HASH = re.compile(r"(?:^|[_\-/#=:])((?=[0-9a-f]*[a-f])(?=[a-f]*\d)[0-9a-f]{12,64})/?$", re.IGNORECASE)
_DIGITS = re.compile(r"(\d{1,18})(?=[^\d\n]*+(?:\n|\Z))")
_CODE = re.compile(r"(?:^|[_\-/#=:])([0-9a-zA-Z]{5,40})/?$")
_FORMS = (_UUID, _HASH, _DIGITS, _CODE)
_LEAST_OTHERS = 2  # blocks that have an id where the first has none
OPENING_HAS_NONE = 0.1  # off the score of ids that an opening post lacks
_OF_A_POST = re.compile(
    r"post|comment|msg|message|reply|answer|entry|article|(?:^|[^a-z])(?:p|c|pid|cid|id)(?:$|[^a-z])", re.IGNORECASE
)
_OF_OTHERS = re.compile(
    r"user|member|author|avatar|profile|uid|thread|topic|forum|page|quote|attach|image|sig|like|vote|menu|edit", re.IGNORECASE
)
_ATTRIBUTES = ("id", "name", "href", "data-id", "data-content", "about", "for", "value")
_SAMPLE = 2  # the block behind which only attributes are searched that differ so far
_DEEPEST = 400  # elements of a block that are searched
_OUTSIDE = 3  # elements around a block, and before it


def is_code(value: str) -> bool:
    """Return True if a value ends with a UUID or a hash, whose last digits are not an id."""
    return bool(_UUID.search(value) or _HASH.search(value))


def find_ids(paths: BlockPaths) -> tuple[list[str | None], list[str | None]]:
    """Return ids and permalinks by the block's number; all None where no attribute differs in each block."""
    values: dict[tuple[str, str], dict[int, tuple[str, str]]] = defaultdict(dict)
    keys: set[tuple[str, str]] | None = None
    for number in range(paths.count):
        for key, id_, value in _candidates(paths, number, keys):
            values[key].setdefault(number, (id_, value))
        if number == _SAMPLE:  # an attribute of each block differs from one to the next
            keys = {key for key, found in values.items() if {1, 2} <= found.keys() and found[1][0] != found[2][0]}
    best: dict[int, tuple[str, str]] = {}
    best_score = 0.0
    for (where, prefix), found in values.items():
        others = len(found) == paths.count - 1 >= _LEAST_OTHERS and 0 not in found
        if len({id_ for id_, _ in found.values()}) < paths.count - others:
            continue
        score = _id_score(where, prefix, [id_ for id_, _ in found.values()]) - OPENING_HAS_NONE * others
        if score > best_score:
            best, best_score = found, score
    ids = [best[number][0] if number in best else None for number in range(paths.count)]
    return ids, [_link(paths, number, id_) for number, id_ in enumerate(ids)]


def _id_score(where: str, prefix: str, ids: list[str]) -> float:
    score = 1.0 + 0.5 * (where in ("id", "data-content")) + 0.3 * (where == "name") + 0.2 * ("data" in where)
    text = f"{where} {prefix}"
    score += 0.6 * bool(_OF_A_POST.search(text)) - 0.8 * bool(_OF_OTHERS.search(text))
    if all(id_.isdigit() for id_ in ids):
        numbers = [int(id_) for id_ in ids]
        counted = numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] < 100_000
        score -= 0.7 * counted  # places, not ids
    else:
        score -= 0.2
    return max(score, 0.01)


def _candidates(paths: BlockPaths, number: int, keys: set[tuple[str, str]] | None) -> Iterator[tuple[tuple[str, str], str, str]]:
    """Yield the attributes of a block that end with an id: name and prefix, id, value. `keys`: the names and prefixes."""
    tree, block = paths.tree, paths.blocks[number]
    names = None if keys is None else {name for name, _ in keys}
    skip = [range(*inner) for inner in block.inner_elements[:50]]
    elements = list(range(block.start, min(block.end, block.start + _DEEPEST)))
    up = tree.parent[block.start]
    for _ in range(_OUTSIDE):  # <a name> before a block; an element that only has it
        if up > 0 and tree.end[up] == block.end:
            elements.append(up)
            up = tree.parent[up]
    if block.start > 0 and tree.end[block.start - 1] == block.start:
        elements.append(block.start - 1)
    for i in elements:
        attributes = tree.attributes[i]
        if not attributes or any(i in inner for inner in skip):
            continue
        for name, value in attributes.items():
            if names is not None and name not in names:
                continue
            own = i == block.start and name.startswith("data-") and name not in DATE_DATA and not suggests_date(name)
            if not (own or name in _ATTRIBUTES or name.endswith("id")) or len(value) > 300:
                continue
            if match := next((found for form in _FORMS if (found := form.search(value))), None):
                prefix = value[: match.start(1)] if name != "href" else re.sub(r"\d+", "", value[: match.start(1)])[-40:]
                if keys is None or (name, prefix) in keys:
                    yield (name, prefix), match[1], value


def _link(paths: BlockPaths, number: int, id_: str | None) -> str | None:
    if id_ is None or len(id_) < 2:
        return None
    tree, block = paths.tree, paths.blocks[number]
    for i in range(block.start, min(block.end, block.start + _DEEPEST)):
        href = tree.attributes[i].get("href")
        if (
            href
            and id_ in href
            and not _OF_OTHERS.search(href.rpartition("/")[2].partition("=")[0])
            and not href.startswith("javascript")
        ):
            return href
    return None
