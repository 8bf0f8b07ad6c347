"""Tables of a site file for an unknown forum, from what `explore` found, and its date conventions: language, order of day and
month, and the time zone of dates without one, which a page names or which is derived from its clock or its language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from forum_reader.dates.post_calendar import known_language, order_of
from forum_reader.dates.read_date import DateReader
from forum_reader.definition.selectors import compiled
from forum_reader.fields.date_field import may_be_dates
from forum_reader.reading.page_records import ListedForum
from forum_reader.reading.parse_body import read_at

from .address_shape import AddressShape, shape_of, target_of
from .boards import board_field
from .element_selectors import words_of
from .explore import FoundForum
from .list_wrapper import learn_index, learn_list, newest_dates
from .page_sample import OpenedPage
from .thread_wrapper import learn_comments

if TYPE_CHECKING:
    from forum_reader.definition.site import Site


def customs_of(site: Site, pages: Sequence[OpenedPage]) -> tuple[str | None, str | None]:
    """Return the language and the time zone for a site's file, from some of its threads' pages; None where the profile's are
    right, or the pages do not show them.
    """
    if site.pages.comments.format != "html":
        return None, None
    named = (zone_of(page.response.text, read_at(page.response), page.frame.language) for page in pages)
    zone = next((zone.name for zone in named if zone is not None), None)
    language, own = next((page.language for page in pages if page.language), None), site.language or ""
    is_other = language is not None and (order_of(language), language[:2]) != (order_of(own), own[:2])
    return language if is_other else None, zone if zone != site.time_zone else None


_TIMES_ARE = (
    r"(?:(?:times?|zeiten|heures|horas|horários?|время|час|orari|czas|tijden|tider|zaman)\b|时间|時間|時刻|시간)[^.<>]{0,40}?"
)
_NAMED = re.compile(_TIMES_ARE + r"<[^<>]*title=[\"']([A-Za-z_]+/[A-Za-z_/]+)[\"']", re.IGNORECASE)
_OFFSET = re.compile(
    _TIMES_ARE + r"(?:<[^<>]{0,100}>)?\s*\b(?:UTC|GMT)\s*(?:([+\-−])\s*(\d{1,2})(?::?00)?)?(?!\d|:)"
    r"|\b(?:UTC|GMT)\s*([+\-−])\s*(\d{1,2}),\s*\d{4}-\d",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?:it is currently|current (?:date|time)[a-z /]{0,10}|time (?:is )?now(?: is)?|(?:当前|现在|當前|現在)(?:时间|時間)是?|"
    r"現在の?(?:日時|時刻)|현재 ?시[간각]|aktuelle zeit|aktuelles datum|aktuell ist es|heure actuelle|"
    r"nous sommes actuellement(?: le)?|"
    r"hora actual|ora (?:attuale|corrente)|текущее время|aktualny czas|obecny czas|huidige tijd|şu anki zaman|aktuální čas)"
    r"(?:[\s:：]|&nbsp;|<[^<>]{0,100}>){0,6}([^<>]{4,60})",
    re.IGNORECASE,
)
_HOMES = {
    "zh-tw": "Asia/Taipei", "zh-hant": "Asia/Taipei", "zh-hk": "Asia/Hong_Kong", "zh": "Asia/Shanghai", "ja": "Asia/Tokyo",
    "ko": "Asia/Seoul", "th": "Asia/Bangkok", "vi": "Asia/Ho_Chi_Minh", "de": "Europe/Berlin", "fr": "Europe/Paris",
    "it": "Europe/Rome", "nl": "Europe/Amsterdam", "pl": "Europe/Warsaw", "cs": "Europe/Prague", "sk": "Europe/Bratislava",
    "hu": "Europe/Budapest", "sv": "Europe/Stockholm", "da": "Europe/Copenhagen", "nb": "Europe/Oslo", "fi": "Europe/Helsinki",
    "ru": "Europe/Moscow", "uk": "Europe/Kyiv", "bg": "Europe/Sofia", "ro": "Europe/Bucharest", "el": "Europe/Athens",
    "tr": "Europe/Istanbul", "he": "Asia/Jerusalem", "fa": "Asia/Tehran", "id": "Asia/Jakarta",
}  # fmt: skip
_ONE_ZONE = frozenset({"zh", "ja", "ko", "th", "vi"})
"""Languages of one time zone far from UTC: a board in one of them has this zone, unless it names another."""
_CLOCKS_DIFFER = timedelta(minutes=3)
_QUARTER = timedelta(minutes=15)
_EAST, _WEST = timedelta(hours=14), timedelta(hours=-12)


class FoundZone(NamedTuple):
    """A time zone, and how it was derived; empty where a page names it."""

    name: str
    how: str = ""


def zone_of(html: str, made: datetime, language: str | None) -> FoundZone | None:
    """Find the time zone of a page made at `made`, in a language as in `<html lang>`. None without evidence."""
    if (stated := _stated_zone(html)) is not None:
        return FoundZone(stated)
    home = _home(language)
    if (offset := _by_clock(html, made, language)) is not None:
        return FoundZone(_named(offset, home, made), "by the clock that pages show")
    if home is not None and (language or "").lower()[:2] in _ONE_ZONE:
        return FoundZone(home, "by its language, no page names it")
    return None


def _stated_zone(html: str) -> str | None:
    if (named := _NAMED.search(html)) and named[1] in available_timezones():
        return named[1]
    match = _OFFSET.search(html)
    if match is None:
        return None
    sign, hours = match[1] or match[3], int(match[2] or match[4] or 0)
    if not hours:
        return "UTC"
    return f"Etc/GMT{'-' if sign == '+' else '+'}{hours}" if hours <= 12 else None


def _by_clock(html: str, made: datetime, language: str | None) -> timedelta | None:
    """Return the offset from UTC of a clock on the page."""
    for shown in list(_CLOCK.finditer(html))[:3]:
        reader = DateReader(made + _EAST, language=known_language(language or ""), time_zone="UTC")
        found, _ = reader.read(shown[1].strip())
        if found is None:
            continue
        offset = found - made
        if offset < _WEST:  # a time without a day
            offset += timedelta(days=1)
        rounded = (offset + _QUARTER / 2) // _QUARTER * _QUARTER
        if _WEST <= rounded <= _EAST and abs(offset - rounded) <= _CLOCKS_DIFFER:
            return rounded
    return None


def _home(language: str | None) -> str | None:
    given = (language or "").lower().replace("_", "-")
    return _HOMES.get(given) or _HOMES.get(given.partition("-")[0])


def _offset(zone: str, at: datetime) -> timedelta:
    return at.astimezone(ZoneInfo(zone)).utcoffset() or timedelta()


def _named(offset: timedelta, home: str | None, at: datetime) -> str:
    """Return a zone with an offset: the language's, which has summer time, before a fixed one."""
    candidates: Sequence[str] = [home] if home else []
    hours = round(offset.total_seconds() / 3600)
    fixed = "UTC" if not hours else f"Etc/GMT{'-' if hours > 0 else '+'}{abs(hours)}"
    others = ("Asia/Kolkata", "Asia/Tehran", "Asia/Kabul", "Asia/Kathmandu", "Asia/Yangon", "Australia/Adelaide")
    return next((zone for zone in (*candidates, fixed, *others) if _offset(zone, at) == offset), fixed)


_ANY_NEXT = ["a[rel~=next]", "link[rel~=next]", "li.next a", "a.next"]
_NUMBER = re.compile(r"\d+")
_ONLY = "all"  # the id of the only forum


@dataclass(slots=True)
class Wrapper:
    """Tables of a site file; `missing`: keys that were not found; `tried`: the forum whose list was read."""

    pages: dict[str, Any]
    forums: tuple[ListedForum, ...]
    language: str | None
    time_zone: FoundZone | None
    tried: str
    missing: list[str] = field(default_factory=list)


def wrapper_of(found: FoundForum) -> Wrapper | None:
    """Learn the tables of a forum; None where no selectors find its lists or threads."""
    forums, index, forum_shape = _forums(found)
    urls = [url for group in (found.listed, *found.lists) for url in group.urls]
    threads = shape_of(list(dict.fromkeys(urls)), besides=frozenset(forum.id for forum in forums if forum.id != _ONLY))
    if threads is None:
        return None
    for page in found.threads:
        if page.next and threads.is_of_another(page.next, page.url):
            page.next = None
    listed = learn_list(found.listed, threads, found.threads)
    comments = learn_comments(found.threads, found.following, newest_dates(found.listed))
    if listed is None or comments is None:
        return None
    listed["url"] = _list_url(found, forum_shape)
    comments["url"] = _thread_url(threads)
    if title := _title(found):
        comments["post"]["title"] = title
    if forum_shape and (board := board_field(found.of_boards, forum_shape)):
        comments["post"]["forum_id"] = board
    missing = []
    for name, table, other in (("list", listed, comments), ("comments", comments, listed)):
        if "next" not in table and "shape" not in table:
            missing.append(f"pages.{name}.next: no page with a second one was seen")
            selectors = dict.fromkeys([*filter(None, [_found_next(other)]), *_ANY_NEXT])
            table["next"] = [one for one in selectors if not _leads_to_others(one, found.threads, threads)]
    if found.boards and found.boards.unseen:
        missing.append(f"forums: boards in {found.boards.unseen} of them, whose pages were not read")
    wanted = (("list", ("reply_count", "last_activity")), ("comments", ("author", "created_at")))
    for name, keys in wanted:
        fields = (listed if name == "list" else comments)["fields"]
        missing += [f"pages.{name}.fields.{key}{_hint(key, found)}" for key in keys if key not in fields]
    pages = ({"index": index} if index else {}) | {"list": _ordered(listed), "comments": _ordered(comments)}
    page = found.threads[0]
    tried = next((id_ for id_ in _ids(found, forum_shape)), forums[0].id)
    made = min(read_at(page.response), datetime.now(UTC))
    zone = zone_of(page.response.text, made, page.frame.language)
    language = Counter(page.language for page in found.threads).most_common(1)[0][0]
    return Wrapper(pages, forums, language, zone, tried, missing)


def _hint(key: str, found: FoundForum) -> str:
    """Return the texts of a thread that may be dates, where posts have none."""
    learned = next((page.learned for page in found.threads if page.learned), None)
    texts = may_be_dates(learned.fields.paths, learned.fields.authors) if learned and key == "created_at" else []
    return f": these may be dates: {', '.join(map(repr, texts))}" if texts else ""


def _leads_to_others(selector: str, pages: list[OpenedPage], shape: AddressShape) -> bool:
    """Return True if a selector on a thread's page finds a link to another thread."""
    links = ((page, target_of(page.base, one.get("href", ""))) for page in pages for one in compiled("html", selector)(page.root))
    return any(target is not None and shape.is_of_another(target, page.url) for page, target in links)


def _title(found: FoundForum) -> Any:
    """Return the field of a thread's title, equal to the list's: a heading, else the title without its constant text."""
    listed = {url: " ".join(title.split()) for url, title in zip(found.listed.urls, found.listed.titles, strict=True)}
    known = [(listed[page.url], page.root) for page in found.threads if page.url in listed]
    for tag in ("h1", "h2", "h3", "h4"):
        if known and all(words_of(next(root.iter(tag), root)) == title for title, root in known):
            return tag
    shown = [(title, words_of(root.find(".//title"))) for title, root in known]
    around = {tuple(map(_NUMBER.sub, ("0", "0"), window.partition(title)[::2])) for title, window in shown if title in window}
    if len(shown) > 1 and len(around) == 1 and all(title in window for title, window in shown):
        before, after = (re.escape(one).replace("0", r"\d+").replace("\\ ", r"\s+") for one in around.pop())
        return {"select": "title", "regex": rf"(?s)^\s*{before}(.+?){after}\s*$"}
    return None


def _found_next(table: dict[str, Any]) -> str | None:
    """Return the next link of the other kind of pages, which often have the same paging."""
    return following if isinstance(following := table.get("next"), str) else None


def _ids(found: FoundForum, shape: AddressShape | None) -> Iterator[str]:
    """Yield the id of the forum whose list was read."""
    if found.forums is not None and shape is not None:
        yield from (id_ for id_, url in zip(shape.ids, _boards(found), strict=True) if url == found.listed.page.url and id_)


def _ordered(table: dict[str, Any]) -> dict[str, Any]:
    return {"url": table.pop("url")} | table


def _forums(found: FoundForum) -> tuple[tuple[ListedForum, ...], dict[str, Any] | None, AddressShape | None]:
    group, boards = found.forums, _boards(found)
    shape = shape_of(list(boards), whole=True) if group else None
    if group and found.boards:
        group = found.boards.on_index
    index = learn_index(group, shape) if group and shape else None
    if group is None or shape is None or (index is None and found.boards is None):
        title = found.listed.page.frame.title or "all threads"
        return (ListedForum(id=_ONLY, name=title),), None, None
    path = urlsplit(group.page.url).path or "/"
    forums = {id_: ListedForum(id=id_, name=name) for id_, name in zip(shape.ids, boards.values(), strict=True) if id_}
    is_whole = index is not None and all(url in group.urls for url in boards)
    return tuple(forums.values()), {"url": path} | (index or {}) if is_whole else None, shape


def _boards(found: FoundForum) -> dict[str, str]:
    """Return addresses and names of the boards."""
    if found.forums is None:
        return {}
    return found.boards.names if found.boards else dict(zip(found.forums.urls, found.forums.titles, strict=True))


def _list_url(found: FoundForum, shape: AddressShape | None) -> str:
    """Return the address of a list's first page; where more than ids differs, the whole differing part is the forum's id."""
    if shape is None or shape.template == "{url}":
        parts = urlsplit(found.listed.page.url)
        return _braces(parts.path or "/") + (f"?{_braces(parts.query)}" if parts.query else "")
    return _braces(shape.template).replace("%7Bid%7D", "{forum}").replace("%7Bid:path%7D", "{forum:path}")


def _thread_url(shape: AddressShape) -> str:
    return "{url}" if shape.template == "{url}" else _braces(shape.template).replace("%7Bid%7D", "{thread}")


def _braces(text: str) -> str:
    return text.replace("{", "%7B").replace("}", "%7D")
