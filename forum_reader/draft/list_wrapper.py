"""Tables of lists and indexes for a site file, learned from a list and some of its threads: rows, fields."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from forum_reader.definition.selectors import compiled, is_xpath
from forum_reader.fields import post_marks
from forum_reader.fields.author_field import find_authors, name_of
from forum_reader.readers.block_paths import BlockPaths
from forum_reader.readers.checks import order
from forum_reader.readers.repeated_blocks import blocks_of
from forum_reader.reading.found_values import whole_number as number_in

from .address_shape import AddressShape
from .element_selectors import as_value, attribute_of, field_selectors, rows_selector, xpath_of
from .link_groups import LinkGroup
from .page_sample import OpenedPage
from .paging_links import next_selector
from .row_fields import date_field, moves
from .thread_rows import badge_selectors

_REPLIES = re.compile(r"repl|answer|comment|antwort|respuesta|réponse|rispost|ответ|odpowied|回复|回覆|返信|댓글", re.IGNORECASE)
_POSTS = re.compile(r"posts?\b|messages?\b|beitr|nachricht|сообщен|wiadomo|帖", re.IGNORECASE)
_VIEWS = re.compile(r"view|hits|aufruf|zugriff|visit|vue|просмотр|vote|score|like|点击|浏览", re.IGNORECASE)
_COUNTED = re.compile(r"^(?:\d++\s*+[:：]\s*+)?(.*\S)\s*[(（\[](\d+)[)）\]]$", re.DOTALL)
_TIME = re.compile(r"\d{1,2}[:.hH]\d\d(?::\d\d)?(?:\s?[APap]\.?[Mm]\.?)?(?:\s\(?[A-Z]{3,4}\)?)?")
_LONGEST_NUMBER = 30  # characters of a cell with a count
_MOST_ALIKE = 4  # cells of a row
_LEAST_ROWS = 0.6
_MOST_RISING = 10  # of so many rows one may be newer than the row before


@dataclass(slots=True)
class _Listed:
    """Rows of a list, each up to the beginning of the next."""

    group: LinkGroup
    rows: list[Any]
    paths: BlockPaths


def learn_list(group: LinkGroup, shape: AddressShape, threads: Sequence[OpenedPage]) -> dict[str, Any] | None:
    """Return the table `[pages.list]` without its address; None where no selector finds the rows. `threads`: some of those
    listed.
    """
    listed = _listed(group)
    selector = rows_selector([(group.page.root, listed.rows)])
    links = field_selectors(list(zip(listed.rows, group.elements, strict=True)))
    if selector is None or not links:
        return None
    link = as_value(links)
    titles = field_selectors(list(zip(listed.rows, group.headings, strict=True))) if group.named else links
    if not titles:
        return None
    table: dict[str, Any] = {"rows": selector}
    if following := next_selector(group.page.root, group.page.url, group.page.next):
        table["next"] = following
    fields: dict[str, Any] = {
        "id": {"select": as_value([attribute_of(one, "href") for one in links]), "regex": _pattern(group, shape)},
        "url": link,
        "title": as_value(titles),
    }
    if not _newest_first(listed):
        table["order"] = "none"
    if group.shows_posts:  # only some of its posts: what the whole row shows changes with each reply
        table["fields"] = fields | _author(listed) | {"token": _shown(listed.rows, selector)}
        return table
    fields |= _author(listed) | _count(listed, threads) | _dates(listed, threads) | _token(listed, threads)
    if "reply_count" not in fields:
        fields |= _count_at_end(listed, titles, threads)
    last = fields.get("last_activity")
    if last is None and not {"reply_count", "token"} & fields.keys():
        fields |= _times(listed)
    if last is not None and not {"reply_count", "token"} & fields.keys() and moves(last, listed.rows, group.page):
        fields["token"] = last  # as text: the date read from it differs in each scan
    table["fields"] = fields
    return table


_SIMPLE = re.compile(r"[\w.#-]+")


def _shown(rows: list[Any], selector: str) -> str:
    """Return the selector of what changes with each reply: the row; where replies are siblings of rows, the last before the next
    row.
    """
    between = any(
        (after := row.getnext()) is not None and after not in rows and "".join(after.itertext()).strip() for row in rows
    )
    if not between or not _SIMPLE.fullmatch(selector) or len({row.getparent() for row in rows}) > 1:
        return "."
    other = xpath_of(selector, "following-sibling::")
    before = f"{other}[1]/preceding-sibling::*[normalize-space()][1]"
    return f"(self::* | {before} | self::*[not({other})]/following-sibling::*[normalize-space()][last()])[last()]"


def _newest_first(listed: _Listed) -> bool:
    """Return False if the rows of a tree of titles do not go from the newest to the oldest."""
    group, paths = listed.group, listed.paths
    if not any(block.inner for block in paths.blocks) and not (group.shows_posts and group.named):
        return True
    known = list(newest_dates(group).values())
    return sum(one < after for one, after in itertools.pairwise(known)) * _MOST_RISING < len(known)


def newest_dates(listed: LinkGroup) -> dict[str, datetime]:
    """Return the newest date that the list has for each thread whose row has one, by its address."""
    marks, calendar = listed.page.marks, listed.page.calendar
    places = sorted(marks.dates)
    found = {}
    for url, (start, end) in zip(listed.urls, listed.spans(), strict=True):
        dates = calendar.read([marks.dates[place] for place in places if start <= place < end])
        if known := [date for date in dates if date is not None]:
            found[url] = max(known)
    return found


def _pattern(group: LinkGroup, shape: AddressShape) -> str:
    """Return the pattern for links as written: relative links may begin with the id."""
    wanted = [_part(shape.pattern, url) for url in group.urls]
    for pattern in (shape.pattern, rf"^(?:\.{{0,2}}/)*{shape.inner}"):
        if [_part(pattern, one.get("href") or "") for one in group.elements] == wanted:
            return pattern
    return shape.pattern


def _part(pattern: str, address: str) -> str | None:
    match = re.search(pattern, unquote(address))
    return match[1] if match else None


def learn_index(group: LinkGroup, shape: AddressShape) -> dict[str, Any] | None:
    """Return the table `[pages.index]` without its address: each link to a forum is a row. Links to boards in boards may have
    other markup.
    """
    kinds: dict[str, list[Any]] = {}
    for element in group.elements:
        kinds.setdefault(element.get("class") or "", []).append(element)
    selector = rows_selector([(group.page.root, group.elements)])
    if selector is None:
        selectors = [rows_selector([(group.page.root, some)]) for some in kinds.values()]
        if not all(one and not is_xpath(one) for one in selectors):
            return None
        selector = ", ".join(filter(None, selectors))
    return {"rows": selector, "fields": {"id": {"select": "./@href", "regex": _pattern(group, shape)}, "name": ".", "url": "."}}


def _listed(group: LinkGroup) -> _Listed:
    tree = group.page.tree
    spans = group.spans()
    blocks = blocks_of(tree, spans)
    return _Listed(group, [tree.elements[row] for row, _ in spans], BlockPaths(tree, group.page.marks, blocks))


def _pairs(listed: _Listed, places: dict[int, int]) -> list[tuple[Any, Any]]:
    elements = listed.paths.tree.elements
    return [(row, elements[i] if (i := places.get(n)) is not None else None) for n, row in enumerate(listed.rows)]


def _author(listed: _Listed) -> dict[str, Any]:
    """Return the field of the thread's author, where a link to a profile or a class marks a name: the first of a row."""
    paths, tree = listed.paths, listed.paths.tree
    sure: dict[int, int] = {}
    for n in range(paths.count):
        for i in paths.own[n]:
            if tree.tag[i] == "a" and post_marks.is_profile_link(tree.attributes[i].get("href") or "") and paths.has_letters(i):
                sure[n] = i
                break
    if len(sure) < _LEAST_ROWS * paths.count:
        sure = {n: i for n, i in find_authors(paths).items() if post_marks.suggests_author(paths.names(i))}
    if len(sure) < _LEAST_ROWS * paths.count or not (selectors := field_selectors(_pairs(listed, sure))):
        return {}
    if badges := badge_selectors([(paths, i) for i in sure.values()]):
        return {"author": {"select": as_value(selectors), "remove": as_value(badges)}}
    plain = all(paths.string(i) == name_of(paths, i) for i in list(sure.values())[:10])
    return {"author": as_value(selectors)} if plain else {}


def _count(listed: _Listed, threads: Sequence[OpenedPage]) -> dict[str, Any]:
    """Return the field of the number of replies: the number that agrees with threads that were read, else the one with such a
    label.
    """
    paths, tree = listed.paths, listed.paths.tree
    known = {one.url: len(one.posts) for one in threads if one.posts and not one.next and not one.pages}
    best: tuple[float, dict[int, int], int] | None = None
    for column in _columns(paths):
        labels = {n: paths.label(i) for n, i in column.items()}
        values = {n: number_in(text) for n, text in labels.items() if 0 < len(text) <= _LONGEST_NUMBER and _is_one(text)}
        values = {n: value for n, value in values.items() if value == number_in(paths.string(column[n]))}
        if len(values) < 0.9 * len(column) or any(value is None for value in values.values()):
            continue
        if any(i in paths.marks.dates for i in column.values()):
            continue
        label = " ".join({paths.names(i) + " " + re.sub(r"\d+", "", paths.string(i)) for i in list(column.values())[:5]})
        label += f" {_heading(tree.elements[next(iter(column.values()))])}"
        counted = [(values[n], known[url]) for n, url in enumerate(listed.group.urls) if n in values and url in known]
        for add in (0, -1):
            right = sum((value or 0) + add == posts - 1 for value, posts in counted)
            score = 2.0 * right / len(counted) if counted else 0.0
            score += 0.6 * bool(_REPLIES.search(label)) * (add == 0) + 0.4 * bool(_POSTS.search(label)) * (add == -1)
            score -= 1.0 * bool(_VIEWS.search(label))
            if score > 0.5 and (best is None or score > best[0]):
                best = (score, column, add)
    if best is None:
        return _count_in_words(listed)
    selectors = field_selectors(_pairs(listed, best[1]))
    if not selectors:
        return {}
    value = as_value(selectors)
    return {"reply_count": {"select": value, "add": best[2]} if best[2] else value}


def _heading(element: Any) -> str:
    """Return the heading of an element's column in a table."""
    cell: Any = next((one for one in (element, *element.iterancestors()) if one.tag in ("td", "tr")), element)
    table = next(cell.iterancestors("table"), None) if cell.tag == "td" else None
    heads = table.xpath("(.//tr[th])[1]/*") if table is not None else []
    cells = cell.getparent().xpath("td | th") if heads else []
    return "".join(map(str, heads[cells.index(cell)].itertext())) if len(heads) == len(cells) > 0 else ""


def _columns(paths: BlockPaths) -> Iterator[dict[int, int]]:
    """Yield elements of most rows, one of each: those alone at a place, and each of several with the same markup."""
    for place in paths.places[1:]:
        if paths.presence(place) < _LEAST_ROWS:
            continue
        if place.count <= 1.5 * len(place.first):
            yield place.first
            continue
        alike = {n: [i for i in paths.own[n] if paths.path_of.get(i) == place.path] for n in place.first}
        counts = {len(elements) for elements in alike.values()}
        if len(counts) == 1 and (count := counts.pop()) <= _MOST_ALIKE:
            yield from ({n: elements[k] for n, elements in alike.items()} for k in range(count))


def _is_one(text: str) -> bool:
    """Return True if a text has one number: `12 replies 340 views` has two."""
    return len(re.findall(r"\d[\d.,' ]*", text)) == 1


def _count_in_words(listed: _Listed) -> dict[str, Any]:
    """Return the field of a count in text, before or behind the word (`12 replies, last on …`, `Views: 340 | Replies: 12`), that
    an expression finds in nearly each row, in the shortest texts that have it.
    """
    paths, number = listed.paths, r"(\d[\d.,]*[kw万]?)"
    places = sorted(paths.places[1:], key=lambda one: sum(map(paths.tree.size, one.first.values())) / max(1, len(one.first)))
    for pattern, add in ((_REPLIES, 0), (_POSTS, -1)):
        word = f"(?:{pattern.pattern})"
        for regex in (rf"(?i){word}\w*\s*[:：]\s*{number}", rf"(?i){number}\s*{word}"):
            for place in places:
                matched = sum(bool(re.search(regex, paths.string(i))) for i in place.first.values())
                is_each = paths.presence(place) >= _LEAST_ROWS and matched >= 0.9 * len(place.first)
                if is_each and (selectors := field_selectors(_pairs(listed, place.first), 1)):
                    return {"reply_count": {"select": selectors[0], "regex": regex} | ({"add": add} if add else {})}
    return {}


def _count_at_end(listed: _Listed, links: list[str], threads: Sequence[OpenedPage]) -> dict[str, Any]:
    """Return the fields of `12: humming radio (34)`: a number behind each title, if it agrees with threads that were read."""
    found = [_COUNTED.match(title.strip()) for title in listed.group.titles]
    if sum(match is not None for match in found) < 0.9 * len(found):
        return {}
    posts = {one.url: len(one.posts) for one in threads if one.posts and not one.next and not one.pages}
    counted = [
        (int(match[2]), posts[url])
        for match, url in zip(found, listed.group.urls, strict=True)
        if match is not None and url in posts
    ]
    for add in (0, -1):
        if 2 * sum(number + add == count - 1 for number, count in counted) > len(counted):
            text = as_value(links)
            count = {"select": text, "regex": r"(?<!\d)(\d+)\W*$"} | ({"add": add} if add else {})
            return {"title": {"select": text, "regex": _COUNTED.pattern}, "reply_count": count}
    return {}


def _dates(listed: _Listed, threads: Sequence[OpenedPage]) -> dict[str, Any]:
    """Return the fields of the opening and the last activity: by threads that were read, by words, by the order of the rows."""
    paths = listed.paths
    columns: dict[int, dict[int, int]] = defaultdict(dict)
    for n in range(paths.count):
        for i in paths.dates_of[n]:
            columns[paths.path_of[i]].setdefault(n, i)
    read = []
    for places in columns.values():
        if len(places) < _LEAST_ROWS * paths.count:
            continue
        numbers = sorted(places)
        moments = dict(
            zip(numbers, listed.group.page.calendar.read([paths.marks.dates[places[n]] for n in numbers]), strict=True)
        )
        if sum(moment is not None for moment in moments.values()) >= 0.8 * len(numbers):
            read.append((places, moments))
    read = _once(read, paths)
    if not read:
        return {}
    all_have = [n for n in range(paths.count) if all(moments.get(n) for _, moments in read)]
    read.sort(key=lambda one: -_lateness({n: one[1][n] for n in all_have} or one[1]))
    latest = read[0]
    found = {}
    names = ["last_activity", "created_at"]
    if len(read) == 1 and _is_created(listed, latest[1], threads):
        names = ["created_at"]
    for name, (places, moments) in zip(names, read, strict=False):
        pairs = _pairs(listed, places)
        dated = [pair for pair in pairs if pair[1] is not None]
        if selectors := field_selectors(pairs) or field_selectors(dated):  # other rows have `-` or `never` there
            wanted = [(row, moments.get(n)) for n, row in enumerate(listed.rows)]
            found[name] = date_field(selectors, [(listed.group.page, wanted)])
    return found


def _times(listed: _Listed) -> dict[str, Any]:
    """Return the field `token` of rows with only the time of the newest post: its day stands above the rows of that day."""
    paths = listed.paths
    for place in paths.places[1:]:
        are_times = paths.presence(place) >= _LEAST_ROWS and all(_TIME.fullmatch(paths.string(i)) for i in place.first.values())
        if are_times and (selectors := field_selectors(_pairs(listed, place.first), 1)):
            return {"token": selectors[0]}
    return {}


def _once(
    read: list[tuple[dict[int, int], dict[int, datetime | None]]], paths: BlockPaths
) -> list[tuple[dict[int, int], dict[int, datetime | None]]]:
    """Drop columns around or inside others with the same date, as in `<span title="2026-11-02 08:03"><a>9 days ago`: the
    absolute date is kept.
    """
    tree, dates, left = paths.tree, paths.marks.dates, list(read)
    for outer, _ in read:
        for pair in [pair for pair in left if pair[0] is not outer]:
            both = outer.keys() & pair[0].keys()
            if both and all(outer[n] < pair[0][n] < tree.end[outer[n]] for n in both):
                moving = sum(dates[outer[n]].back is not None for n in both)
                wrong = outer if 2 * moving > len(both) else pair[0]
                left = [one for one in left if one[0] is not wrong]
    return left


def _lateness(moments: dict[int, datetime | None]) -> float:
    """Return the mean date in days, and a bonus for order: columns of last posts are later than those of first ones, and in
    order.
    """
    known = [moment for moment in moments.values() if moment is not None]
    return sum(moment.timestamp() for moment in known) / len(known) / 86400 + 0.5 * order(known)


def _is_created(listed: _Listed, moments: dict[int, datetime | None], threads: Sequence[OpenedPage]) -> bool:
    """Return True if the rows' only date is the opening posts', judged by threads that were read; long threads count more."""
    votes = 0
    for thread in threads:
        dates = [post.published for post in thread.posts if post.published is not None]
        number = listed.group.urls.index(thread.url) if thread.url in listed.group.urls else -1
        moment = moments.get(number)
        if moment is None or len(dates) < 2 or thread.next:
            continue
        if dates[0].date() == dates[-1].date() and not (moment.hour or moment.minute):  # a day
            continue
        first, last = (abs((moment - one).total_seconds()) for one in (dates[0], max(dates)))
        votes += ((first < last) - (last < first)) * (len(dates) - 1)
    return votes > 0


def _alone(id_: str) -> str:
    return rf"(?<!\d){id_}(?!\d)" if id_.isdigit() else rf"(?<!\w){re.escape(id_)}(?!\w)"


def _token(listed: _Listed, threads: Sequence[OpenedPage]) -> dict[str, Any]:
    """Return the field `token`: a link of the row to the newest post, whose id is the last one and changes with each reply."""
    last = {one.url: [post.id for post in one.posts if post.id] for one in threads if not one.next}
    known = {n: last[url][-1] for n, url in enumerate(listed.group.urls) if last.get(url)}
    paths, tree = listed.paths, listed.paths.tree
    for place in paths.places[1:]:
        if paths.presence(place) < 0.9 or len(known) < 2:
            continue
        hrefs = {n: tree.attributes[i].get("href") or "" for n, i in place.first.items()}
        agree = [bool(re.search(_alone(id_), hrefs.get(n, ""))) for n, id_ in known.items()]
        titles = set(listed.group.places)
        if all(agree) and len(set(hrefs.values())) == len(hrefs) and not titles & set(place.first.values()):
            selectors = field_selectors(_pairs(listed, place.first), 1)
            if selectors and compiled("html", selectors[0])(listed.rows[0]):
                return {"token": attribute_of(selectors[0], "href")}
    return {}
