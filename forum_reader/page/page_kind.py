"""Kind of a page, its title and language, and the links to its other pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec

from forum_reader.fields.post_marks import Marks, find_marks
from forum_reader.readers.checks import is_complete
from forum_reader.readers.row_links import LEAST_FORUMS, LEAST_ROWS, listed
from forum_reader.reading.html_text import text_of_elements

from .page_address import host_of, is_page_of
from .page_tree import PageTree, is_entry
from .records import PageKind, SeenLink, SeenPost

_PAGE_NUMBER = re.compile(r"^\[?\s*(\d{1,5})\s*\]?$")
_OLDER = (
    r"(?:older|ältere|oudere|äldre|ældre|eldre|starsze|старые|старі)(?: \w+)?|"
    r"\w+ (?:plus anciens|más antiguos|mais antigos|meno recenti)|较早的?\w{2}|较旧的?\w{2}|古い\w+"
)
_NEXT = re.compile(
    r"^(?:next(?: page)?|nächste(?: seite)?|weiter|vor|suivante?|page suivante|"
    r"(?:p[áa]gina )?(?:siguiente|próxim[oa]|seguinte|successiva)|próxima página|ouder|"
    r"volgende|следующая|след\.?|вперед|вперёд|дальше|далее|наступна|следваща|următoarea|következő|další|επόμενη|"
    r"następna|seuraava|nästa|neste|næste|sonraki|下一页|下一頁|次へ|次のページ|다음|التالي|التالية|بعدی|הבא|ถัดไป|berikutnya|"
    r"(?:(?:load|show|view) )?(?:older|next|more)(?: (?:posts|entries|comments|messages|replies|topics|threads|results))?|"
    rf"{_OLDER}|"
    r"mehr(?: laden| anzeigen)?|weitere|voir plus|charger plus|ver más|cargar más|"
    r"mostra altro|показать ещё|ещё|もっと見る|さらに表示|加载更多|更多|載入更多|page \d+ *[›»→>]|"
    r"chevron_right|navigate_next|arrow_forward|[›»→>▶►]++)\s*+[›»→>]*+$",
    re.IGNORECASE,
)
_BACK = re.compile(r"^(?:[‹«←<]+|prev(?:ious)?|zurück|vorherige)", re.IGNORECASE)
_TO_THE_LEFT = re.compile(rf"^[‹«←<]+\s*(?:{_OLDER})$", re.IGNORECASE)
"""Links back in time often point to the left, although they lead to the next page."""
_NEXT_SIGN = "›"
_FORWARD = re.compile(r"(?:^|[\s_-])(?:next|(?:chevron|angle|arrow|caret)[_-](?:circle-)?right)(?:$|[\s_-])", re.IGNORECASE)
"""Classes of a link or an icon that leads to the next page."""
_IS_NEXT = re.compile(r"(?:^|[\s_-])next(?:$|[\s_-])", re.IGNORECASE)
_LONGEST_LABEL = 30  # characters of a link to another page
_LONGEST_HEADING = 300
_LEAST_GRADE = 0.12


class PageFrame(msgspec.Struct, frozen=True, kw_only=True):
    """Title, language, next page and base address from the head of a page."""

    title: str | None
    language: str | None
    next: str | None
    base: str | None = None
    """The address in `<base>`, which relative addresses refer to."""

    def base_of(self, url: str) -> str:
        """Return the address that relative addresses on the page at `url` refer to."""
        try:
            return urljoin(url, self.base.strip()) if self.base else url
        except ValueError:
            return url


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Kind of a page, with its rows where it lists something."""

    kind: PageKind
    rows: tuple[SeenLink, ...] = ()
    next: str | None = None
    """The next page of the rows, where a profile names it."""


def frame_of(root: Any, elements: Mapping[str, Sequence[Any]]) -> PageFrame:
    """Return the frame of a page. `elements`: its elements by tag. Title: the heading, else the window's title."""
    headings = [
        (tag, text)
        for tag in ("h1", "h2", "h3")
        for one in elements[tag]
        if 2 < len(text := _on_one_line(one)) < _LONGEST_HEADING
    ]
    heading = next((text for tag, text in headings if tag == "h1"), None)
    title = next((one.text for one in elements["title"]), None)
    shown = " ".join(title.split()) if title else None
    if heading and shown and heading.lower() not in shown.lower():
        heading = next((text for _, text in headings if len(text) > 4 and text.lower() in shown.lower()), None)
    following = next((link.get("href") for link in elements["link"] if (link.get("rel") or "").lower() == "next"), None)
    base = next((href for one in elements["base"] if (href := one.get("href"))), None)
    return PageFrame(title=heading or shown, language=language_of(root), next=following, base=base)


def _on_one_line(element: Any) -> str:
    return " ".join((text_of_elements([element]) or "").split())


def language_of(root: Any) -> str | None:
    """Return the language in `<html lang>`."""
    named: str | None = root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang")
    return named


def kind_of(
    tree: PageTree,
    frame: PageFrame,
    url: str,
    posts: Sequence[SeenPost],
    grade: float,
    *,
    sure: bool = False,
    titles: tuple[SeenLink, ...] = (),
    marks: Marks | None = None,
) -> Kind:
    """Return THREAD where there are plausible posts, or `sure` ones; else LIST or INDEX where links repeat. `titles`: rows that
    were found already; `marks`: dates and authors that were found already.
    """
    if has_posts(posts, grade, sure=sure):
        return Kind(kind=PageKind.THREAD)
    marks = marks or find_marks(tree)
    if len(marks.dates) < LEAST_ROWS and is_entry(tree, frame.title, url.partition("://")[2].partition("/")[2]):
        return Kind(kind=PageKind.OTHER)
    rows, of_threads = listed(tree, frame.base_of(url), titles)
    if titles or len(rows) >= LEAST_ROWS or (len(rows) >= LEAST_FORUMS and not posts):
        return Kind(kind=PageKind.LIST if of_threads else PageKind.INDEX, rows=rows)
    return Kind(kind=PageKind.OTHER)


def has_posts(posts: Sequence[SeenPost], grade: float, *, sure: bool) -> bool:
    """Return True if posts are plausible, or `sure` ones whole."""
    return bool(posts) and (sure or grade >= _LEAST_GRADE) and (_are_posts(posts) or (sure and _are_whole(posts)))


def _are_whole(posts: Sequence[SeenPost]) -> bool:
    return all(post.id for post in posts) or is_complete(posts, pictures=True)


def _are_posts(posts: Sequence[SeenPost]) -> bool:
    texts = [len(post.text) for post in posts]
    return sum(texts) / len(texts) > 15 or max(texts) > 80


def paging(tree: PageTree, frame: PageFrame, url: str) -> tuple[str | None, tuple[str, ...]]:
    """Return the address of the page after the one at `url`, and those of its other pages."""
    here, base = urlsplit(url), frame.base_of(url)
    following = _named_next(url, base, frame.next) if frame.next else None
    pages: dict[str, None] = {}
    for i, tag in enumerate(tree.tag):
        if tag != "a" or tree.size(i) > _LONGEST_LABEL:
            continue
        attributes = tree.attributes[i]
        href = attributes.get("href")
        if not href or href.startswith(("#", "javascript:")):
            continue
        text = tree.string(i) or _label(tree, i)
        if _leads_on(tree, i, text):
            text = _NEXT_SIGN
        if text and text[0] in "‹«←<" and _TO_THE_LEFT.match(text):
            text = _NEXT_SIGN
        if not text or not (text[0].isdigit() or text[0] == "[" or _is_next(text) or "rel" in attributes):
            continue
        is_next = attributes.get("rel", "").lower() == "next" or (text and _is_next(text) and not _BACK.match(text))
        if not is_next and not _PAGE_NUMBER.match(text):
            continue
        try:
            target = urljoin(base, href)
            parts = urlsplit(target)
        except ValueError:
            continue
        if host_of(parts) != host_of(here) or not (is_same_thing(parts.path, here.path) and is_page_of(parts, here)):
            continue
        if is_next:
            following = following or target
        else:
            pages[target.partition("#")[0]] = None
    pages.pop(url.partition("#")[0], None)
    return following, tuple(pages)[:50]


@lru_cache(maxsize=4096)
def _is_next(text: str) -> bool:
    return _NEXT.match(text) is not None


def _leads_on(tree: PageTree, i: int, text: str) -> bool:
    """Return True if the class of a link, or of an icon in a link without text, marks the next page."""
    if text:
        return bool(_IS_NEXT.search(tree.attributes[i].get("class", "")))
    return bool(_FORWARD.search(" ".join(tree.attributes[j].get("class", "") for j in range(i, tree.end[i]))))


def _named_next(url: str, base: str, following: str) -> str | None:
    """Return the next page that the head of a page names; None where it is the next thread."""
    try:
        target = urljoin(base, following)
        parts, here = urlsplit(target), urlsplit(url)
    except ValueError:
        return None
    return target if host_of(parts) != host_of(here) or is_page_of(parts, here) else None


def _label(tree: PageTree, i: int) -> str:
    """Return the label of a link without text: its own, or that of the picture in it."""
    within = (j for j in range(i + 1, min(i + 3, len(tree.tag))) if tree.parent[j] == i and tree.tag[j] == "img")
    named = (tree.attributes[j].get(name) for j in (i, *within) for name in ("aria-label", "title", "alt"))
    return next((" ".join(label.split()) for label in named if label and label.strip()), "")[: _LONGEST_LABEL + 1]


def is_same_thing(path: str, here: str) -> bool:
    """Return True if two paths may be pages of one thread: they begin alike up to a number at the end."""
    one, other = (
        re.sub(r"(?!(?<=\d)\d)[/_-]?(?:page|p|seite|index)?[-_/]?\d*+(?:\.html?)?/?$", "", part) for part in (path, here)
    )
    return one.startswith(other[: max(2, len(other) - 8)]) or other.startswith(one[: max(2, len(one) - 8)])
