"""Signatures at the ends of lines: a link to its author, or a name behind a dash, and a date."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from lxml import etree

from forum_reader.dates.dates_in_text import Spotted, spotted
from forum_reader.definition.selectors import xml_text

_DATED = re.compile(r"\d[:.hH]\d\d|\d{4}")
_LONGEST_SIGNATURE = 160  # characters from a name to the end of its line
_LONGEST_DATE = 80
_BEHIND_DATE = 30  # characters: a time, a zone
_LONGEST_NAME = 60
_BETWEEN = 25  # characters between the links of a signature: `(talk | contribs)`
_NAMESPACE = re.compile(r"(?:^|[/?&=])([^/?&=#:]{2,40}):([^/?&=#:]{1,255})$")
_OF_PAGES = re.compile(r"(?:^|[/?&=])[^/?&=#:]{2,40}:[^/?&=#:]{1,60}/([^/?&=#]{1,100})$")
_DASHES = ("--", "—", "–", "―")
_BY = re.compile(r"\b(?:by|von|par|por|da|door|av|af|przez|от|de)$")
_LONGEST_UNSIGNED = 90  # characters of `— Preceding unsigned comment added by`
_WEB = re.compile(r"^[A-Z]\w{0,40}\.(?=[A-Z])")
"""Namespace before a name: `Main.IdaBerg`."""
_BESIDE = re.compile(r"^[\s\xa0)）\]]*(?:[(（\[][^()（）\[\]]{0,60}[)）\]])?[\s\xa0,.:·•–—-]*")
_ZONES = {
    "UTC": 0, "GMT": 0, "WET": 0, "BST": 60, "WEST": 60, "CET": 60, "MEZ": 60, "CEST": 120, "MESZ": 120, "EET": 120, "OEZ": 120,
    "EEST": 180, "OESZ": 180, "MSK": 180, "IST": 330, "JST": 540, "KST": 540, "AEST": 600, "AEDT": 660, "EST": -300, "EDT": -240,
    "CST": -360, "CDT": -300, "MST": -420, "MDT": -360, "PST": -480, "PDT": -420,
    "IDT": 180, "EAT": 180, "SAST": 120, "PKT": 300, "WIB": 420, "ICT": 420, "HKT": 480, "SGT": 480, "NZST": 720, "NZDT": 780,
    "BRT": -180, "ART": -180,
}  # fmt: skip
_ZONE = re.compile(r"(?:\(?\b([A-Z]{3,4})\b\)?|\(([+-]\d\d):?(\d\d)?\))[\s.)]{0,5}$")


@dataclass(slots=True)
class Signature:
    """Name, its link's address, and date at the end of a line; `at`: its place in the line's text, from which it is cut."""

    author: str
    href: str | None
    date: str
    at: int
    is_wiki: bool


@dataclass(slots=True)
class Link:
    start: int
    end: int
    href: str
    text: str


def read_line(line: Any) -> tuple[str, list[Link]]:
    """Return the text of a line, and its links by their places in it."""
    parts: list[str] = []
    links: list[Link] = []
    at = 0

    def write(text: str | None) -> None:
        nonlocal at
        if text:
            parts.append(text)
            at += len(text)

    for event, element in etree.iterwalk(line, events=("start", "end")):
        if event == "start":
            if element.tag == "a" and element.get("href"):
                links.append(Link(at, at, element.get("href"), ""))
            write(element.text if isinstance(element.tag, str) else None)
        else:
            if element.tag == "a" and element.get("href"):
                links[-1].end = at
            if element is not line:
                write(element.tail)
    text = "".join(parts)
    for link in links:
        link.text = text[link.start : link.end]
    return text, links


def cut_at(line: Any, at: int) -> None:
    """Take away the text of a line from a place on, and the dash before it."""
    text, _ = read_line(line)
    kept = len(_without_dash(text[:at]))
    left = kept
    for event, element in etree.iterwalk(line, events=("start", "end")):
        name = "text" if event == "start" else "tail"
        if (event == "end" and element is line) or not isinstance(element.tag, str):
            continue
        value = getattr(element, name) or ""
        setattr(element, name, xml_text(value[:left]) or None)
        left = max(0, left - len(value))


def _without_dash(text: str) -> str:
    """Return a text without the dash at its end, and without a note that what follows was not signed."""
    kept = text.rstrip(" \xa0\n([")
    if _BY.search(kept[-_LONGEST_UNSIGNED:]):
        dash = max(kept.rfind(one, max(0, len(kept) - _LONGEST_UNSIGNED)) for one in (*_DASHES, "("))
        kept = kept[:dash] if dash >= 0 else kept
    return kept.rstrip("-—–― \xa0\n([") if kept.endswith(_DASHES) else kept.rstrip()


def signature_of(line: Any) -> Signature | None:
    """Return the signature at the end of a line."""
    text, links = read_line(line)
    whole = text.rstrip()
    start = max(0, len(whole) - _LONGEST_SIGNATURE)
    if not whole or not _DATED.search(whole[start:]):
        return None
    near = [link for link in links if link.end > start and link.text.strip()]
    if near and near[-1].end >= len(whole) and spotted(near[-1].text[:_LONGEST_DATE]):
        near, end = near[:-1], near[-1].start  # the date is a link, too
    else:
        end = near[-1].end if near else start
    by_link = _by_links(whole, near, end) if near else None
    return by_link or _by_dash(whole, start)


def is_of_title(line: Any, signature: Signature) -> bool:
    """Return True if a link is all that stands before a signature, as in a list of titles."""
    text, links = read_line(line)
    own = _without_dash(text[: signature.at]).strip()
    return any(link.text.strip() == own for link in links if link.start < signature.at)


def _by_links(text: str, links: list[Link], end: int) -> Signature | None:
    date = _date_of(text[links[-1].end :] if links else text[end:])
    if date is None or not links:
        return None
    zone = [links[-1]]
    for link in reversed(links[:-1]):
        if zone[0].start - link.end > _BETWEEN:
            break
        zone.insert(0, link)
    names = [(link, name) for link in zone if (name := _user_of(link.href)) is not None]
    if names:
        counts: dict[str, int] = {}
        for _, name in names:
            counts[name] = counts.get(name, 0) + 1
        best = max(counts, key=lambda name: counts[name])
        first = next(link for link, name in names if name == best)
        return Signature(best, first.href, date, first.start, is_wiki=True)
    link = zone[0]
    name = link.text.strip()
    if text[: link.start].rstrip().endswith(_DASHES) and 0 < len(name) <= _LONGEST_NAME:
        return Signature(name, link.href, date, link.start, is_wiki=False)
    return None


def _by_dash(text: str, start: int) -> Signature | None:
    """Return a signature of plain text: `-- Ida Berg 2008-03-01 10:22:11`."""
    tail = text[start:]
    for match in re.finditer(r"(?:-{2,3}|[—–―])", tail):
        behind = tail[match.end() :]
        when = spotted(behind[:_LONGEST_DATE])
        if when is None or when.precision < 3 or len(behind) > _LONGEST_DATE or _date_of(behind[when.span[0] :]) is None:
            continue
        before = time_before(behind, when)
        name = _WEB.sub("", behind[:before].strip(" \xa0,:(–-/_*'"))
        if 0 < len(name) <= _LONGEST_NAME and name[0].isalpha() and "\n" not in name:
            return Signature(name, None, behind[before:].strip(), start + match.start(), is_wiki=False)
    return None


def time_before(text: str, when: Spotted) -> int:
    """Return where a date begins, with the time before it: `12:34, 5 June 2020`."""
    match = re.search(r"\d{1,2}[:.h]\d\d(?::\d\d)?,?\s*$", text[: when.span[0]])
    return match.start() if match else when.span[0]


def _date_of(text: str) -> str | None:
    """Return the date in the text between a name and the end of its line; None where other words are in it."""
    date = _BESIDE.sub("", text, count=1).strip().strip("[]")
    if not date or len(date) > _LONGEST_DATE or (when := spotted(date)) is None or when.precision < 3:
        return None
    if len(date) - when.span[1] > _BEHIND_DATE or time_before(date, when) > _BEHIND_DATE // 2:
        return None
    return date if when.year is not None else None


def _user_of(href: str) -> str | None:
    """Return the name of a user from the address of a page in a namespace: `/wiki/User:Ida_Berg`, `Special:Contributions/…`."""
    parts = urlsplit(href.strip())
    page = next(
        (value for name, _, value in (one.partition("=") for one in parts.query.split("&")) if name == "title"), parts.path
    )
    page = unquote(page)
    match = _OF_PAGES.search(page) or _NAMESPACE.search(page)
    if match is None or parts.scheme == "mailto":
        return None
    return match[match.lastindex or 0].replace("_", " ").strip() or None


def moment_of(date: str) -> str | None:
    """Return a date of a signature in ISO's form, with its zone where it names one; None where the order of day and month is not
    known.
    """
    when = spotted(date)
    if when is not None and when.separator == "." and not when.short and when.b is not None and when.b <= 12:
        when = replace(when, day=when.a, month=when.b)
    if when is None or when.year is None or when.month is None or when.day is None:
        return None
    zone = _ZONE.search(date)
    offset = when.offset if when.offset is not None or zone is None else _ZONES.get(zone[1]) if zone[1] else _minutes(zone)
    end = "" if offset is None else f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    hour, minute = (when.hour, when.minute) if when.hour is not None else _dotted_time(date, when)
    if hour is None:
        return f"{when.year:04}-{when.month:02}-{when.day:02}"
    return f"{when.year:04}-{when.month:02}-{when.day:02}T{hour:02}:{minute:02}:{when.second:02}{end}"


def _minutes(zone: re.Match[str]) -> int:
    """Return the minutes east of UTC in `(+07)`."""
    minutes = 60 * int(zone[2][1:]) + int(zone[3] or 0)
    return -minutes if zone[2][0] == "-" else minutes


def _dotted_time(date: str, when: Spotted) -> tuple[int | None, int]:
    """Return the time in `4 mars 2012 kl. 10.11`."""
    rest = date[: when.span[0]] + " " + date[when.span[1] :]
    match = re.search(r"(?<![\d.])([01]?\d|2[0-3])\.([0-5]\d)(?![\d.])", rest)
    return (int(match[1]), int(match[2])) if match else (None, 0)
