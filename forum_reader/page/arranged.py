"""Pages whose posts have no separate elements, arranged so that they have: each post becomes an `article.trawl-post` with its
author, its date and its text in separate elements, which readers and site files then read like any other page.

- `signed`: talk pages of wikis. A comment ends with its signature: a link to its author, or a name behind a dash, and a date.
- `message`: a page with one message, as of old boards that show a thread as a tree of titles below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

from lxml import etree

from forum_reader.dates.dates_in_text import spotted
from forum_reader.dates.post_calendar import Calendar
from forum_reader.definition.selectors import xml_text
from forum_reader.page.records import SeenPost
from forum_reader.reading.html_text import BREAKS, cut, text_of_elements

from .signatures import Signature, cut_at, is_of_title, moment_of, signature_of

Shape = Literal["signed", "message"]
POST = "trawl-post"
_BESIDE_HEADING = 80  # characters: `3 comments`, `2 people in discussion`
_SKIPPED = frozenset({"script", "style", "template", "noscript", "head", "nav", "button", "select", "svg", "iframe"})
_BLOCKS = BREAKS.keys() | {"td", "th"}
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_LISTS = frozenset({"dl", "ul", "ol"})
_CONTENTS = re.compile(r"(?:^|[\s_-])(?:toc|table-?of-?contents|mw-?editsection|noprint)(?:$|[\s_-])", re.IGNORECASE)
_RULE = re.compile(r"([-_=*~#—–])\1{2,}")
_DATED = re.compile(r"\d[:.hH]\d\d|\d{4}")
_SCHEME = len("http")
_IN_NAMESPACE = re.compile(r"[/=][^\s\"'<>/:?&=#.]{2,60}:[^\s\"'<>/:]{1,80}(?:[\"'&#?]|\Z)")


@dataclass(slots=True)
class _Comment:
    """A comment while its blocks are collected."""

    blocks: list[Any] = field(default_factory=list)
    level: int = 99

    def add(self, block: Any, level: int) -> None:
        """Add a block, but for a written line between the comment and the one before."""
        if not self.blocks and _RULE.fullmatch("".join(block.itertext()).strip()):
            return
        self.blocks.append(block)
        self.level = min(self.level, level)


def arranged(root: Any, shape: Shape) -> Any:
    """Return a copy of a page whose posts have separate elements; without any where nothing of this shape is on it."""
    from .one_message import message

    copy = deepcopy(root)
    (signed if shape == "signed" else message)(copy)
    return copy


def may_be_signed(links: Iterable[str]) -> bool:
    """Return True if a page links to pages in a namespace, as `User:Ida`."""
    return len({href for href in links if href.rfind(":") > _SCHEME and _IN_NAMESPACE.search(href)}) > 1


def signed(root: Any, *, least: int = 1, of_wiki: bool = False) -> bool:
    """Arrange the comments of a talk page; return False, and leave the page as it is, where fewer than `least` are signed, most
    are titles with links, or with `of_wiki` none is signed by a link to a user's page.
    """
    signatures: dict[Any, bool] = {}
    titles: list[bool] = []
    for element in root.iter(etree.Element):
        if element.tag in _BLOCKS and element.tag not in _SKIPPED and _DATED.search(_own_text(element)):
            for line in _lines_in(element):
                if (found := signature_of(line)) is not None:
                    signatures[element] = signatures.get(element, False) or found.is_wiki
                    titles.append(is_of_title(line, found))
    if len(signatures) < least or 2 * sum(titles) > len(titles) or (of_wiki and not any(signatures.values())):
        return False
    around = _around(list(signatures))
    _Arranger(around, {up for one in signatures for up in (one, *one.iterancestors())}).arrange()
    return True


class _Arranger:
    """Collects the comments of an element and puts them in its place."""

    def __init__(self, around: Any, opened: set[Any]) -> None:
        self._around = around
        self._opened = opened
        self._comment = _Comment()
        self._posts: list[Any] = []
        self._above: list[tuple[int, str]] = []  # comments of the section to which the next may be an answer
        self._section: str | None = None
        self._ids: dict[str, int] = {}

    def arrange(self) -> None:
        """Replace the content of the element by its comments; headings of the page stay."""
        self._walk(self._around, 0)
        self._unsigned()
        kept = list(self._around.iter("h1"))
        for child in list(self._around):
            self._around.remove(child)
        self._around.text = None
        self._around.extend([*kept, *self._posts])

    def _walk(self, element: Any, level: int) -> None:
        for part in parts_of(element):
            if part.getparent() is not None:
                self._block(part, level)
                continue
            if element.tag == "li" and part.tag == "p":
                part.tag = "div"  # an item's line, without the space between paragraphs
            signature = signature_of(part)
            if signature is not None:
                cut_at(part, signature.at)
            if signature is not None or _is_filled(part):
                self._comment.add(part, level)
            if signature is not None:
                self._end(signature)

    def _block(self, block: Any, level: int) -> None:
        if _is_heading(block, is_signed=block in self._opened):
            self._unsigned()
            self._section, self._above = _heading(block), []
        elif block in self._opened:
            self._walk(block, level + (block.tag in _LISTS or block.tag == "blockquote"))
        elif not is_contents(block):
            copy = deepcopy(block)
            copy.tail = None
            cut([one for one in copy.iter(etree.Element) if is_contents(one)], copy)
            if (text_of_elements([copy]) or "").strip():
                if copy.tag in ("dd", "dt", "li"):
                    copy.tag = "p" if copy.tag == "dd" else "div"
                self._comment.add(copy, level)

    def _unsigned(self) -> None:
        """End a section: what is left without a signature is a comment, unless it stands above all sections."""
        if self._comment.blocks and self._section is not None:
            self._end(None)
        self._comment = _Comment()

    def _end(self, signature: Signature | None) -> None:
        comment, self._comment = self._comment, _Comment()
        while self._above and self._above[-1][0] >= comment.level:
            self._above.pop()
        digits = re.sub(r"\D", "", moment_of(signature.date) or signature.date)[:12] if signature else ""
        name = re.sub(r"\s+", "_", f"{signature.author}-{digits}" if signature else f"-{self._section}")[:150]
        number = self._ids[name] = self._ids.get(name, 0) + 1
        own = name if number == 1 else f"{name}-{number}"
        parent = self._above[-1][1] if self._above else None
        self._above.append((comment.level, own))
        self._posts.append(post_element(comment.blocks, own, signature, parent=parent, section=self._section))


def post_element(
    blocks: list[Any], id_: str, by: Signature | None, *, parent: str | None = None, section: str | None = None
) -> Any:
    """Return the element of a post."""
    post = etree.Element("article", {"class": POST, "data-id": xml_text(id_)})
    for name, value in (("data-parent", parent), ("data-section", section)):
        if value:
            post.set(name, xml_text(value) or "")
    if by is not None:
        named = etree.SubElement(post, "a", {"class": "trawl-author"} | ({"href": xml_text(by.href)} if by.href else {}))
        named.text = xml_text(by.author)
        when = etree.SubElement(post, "time", {"datetime": moment} if (moment := moment_of(by.date)) else {})
        when.text = xml_text(by.date)
    if section and not parent:
        etree.SubElement(post, "h2", {"class": "trawl-section"}).text = xml_text(section)
    body = etree.SubElement(post, "div", {"class": "trawl-text"})
    body.extend(blocks)
    return post


def arranged_posts(root: Any, calendar: Calendar) -> tuple[SeenPost, ...]:
    """Return the posts of an arranged page."""
    found = [post for post in root.iter("article") if post.get("class") == POST]
    times = [post.find("time") for post in found]
    shown = [None if time is None else time.get("datetime") or time.text for time in times]
    dates = calendar.read([spotted(text) if text else None for text in shown])
    return tuple(
        SeenPost(
            text=text_of_elements([post[-1]]) or "", id=None if post.get("data-id") == "message" else post.get("data-id"),
            author=None if (named := post.find("a")) is None else named.text,
            author_url=None if named is None else named.get("href"),
            published=date, parent=post.get("data-parent"), section=post.get("data-section"),
        )
        for post, date in zip(found, dates, strict=True)
    )  # fmt: skip


def _own_text(element: Any) -> str:
    """Return the texts of an element outside of the blocks in it, roughly: enough to see whether it may be dated."""
    parts = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str) and child.tag not in _BLOCKS:
            parts += child.itertext()
        parts.append(child.tail or "")
    return "".join(parts)


def parts_of(element: Any) -> Iterator[Any]:
    """Yield the blocks in an element, and copies of the lines between them, each as a `p`, or as a `div` behind one `br`."""
    line, is_blank = etree.Element("p"), False
    line.text = xml_text(element.text)
    for child in element:
        if not isinstance(child.tag, str) or child.tag in _SKIPPED:
            _append(line, child.tail)
        elif child.tag in _BLOCKS or child.tag == "br":
            yield line
            if child.tag != "br":
                yield child
            is_blank = child.tag != "br" or ((is_blank or line.tag == "div") and not _is_filled(line))
            line = etree.Element("p" if is_blank else "div")
            line.text = xml_text(child.tail)
        elif any(one.tag in _BLOCKS for one in child.iterdescendants()):  # `<font><p>…`: an element of no meaning
            yield line
            yield from parts_of(child)
            line, is_blank = etree.Element("p"), True
            line.text = xml_text(child.tail)
        else:
            line.append(deepcopy(child))
    yield line


def _is_filled(line: Any) -> bool:
    return bool("".join(line.itertext()).strip()) or next(line.iter("img"), None) is not None


def _lines_in(element: Any) -> Iterator[Any]:
    return (part for part in parts_of(element) if part.getparent() is None)


def _append(line: Any, text: str | None) -> None:
    if not text:
        return
    if len(line):
        line[-1].tail = xml_text((line[-1].tail or "") + text)
    else:
        line.text = xml_text((line.text or "") + text)


def _around(elements: list[Any]) -> Any:
    """Return the innermost element around all of these, outside of lists and paragraphs."""
    ways = [[*reversed(list(one.iterancestors())), one] for one in elements]
    found = ways[0][0]
    for level in zip(*ways, strict=False):
        if any(one is not level[0] for one in level):
            break
        found = level[0]
    while found.getparent() is not None and (found.tag in _LISTS or found.tag in ("p", "dd", "dt", "li", "blockquote")):
        found = found.getparent()
    return found


def _is_heading(block: Any, *, is_signed: bool) -> bool:
    if block.tag in HEADINGS:
        return True
    heading = next(block.iter(*HEADINGS), None) if block.tag == "div" and len(block) <= 3 else None
    if heading is None:
        return False
    whole, title = "".join(block.itertext()).strip(), "".join(heading.itertext()).strip()
    is_first = whole.startswith(title) and len(whole) - len(title) <= _BESIDE_HEADING and not is_signed
    return is_first or 2 * len(title) > len(whole)


def _heading(block: Any) -> str:
    heading = block if block.tag in HEADINGS else next(block.iter(*HEADINGS))
    copy = deepcopy(heading)
    copy.tail = None
    cut([one for one in copy.iter(etree.Element) if is_contents(one)], copy)
    return " ".join("".join(copy.itertext()).split())


def is_contents(element: Any) -> bool:
    """Return True if an element is a table of contents, a link for editing, or nothing of the page's text."""
    names = f"{element.get('class') or ''} {element.get('id') or ''}"
    return element.tag in _SKIPPED or element.get("role") == "navigation" or bool(_CONTENTS.search(names))
