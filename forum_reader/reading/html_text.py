"""Text of HTML, as a browser shows it (words unbroken, a line for each line, an empty line between paragraphs), and elements
within elements: which row is in which, reading a row without the rows in it, cutting parts out. The time is linear in the page's
size, however its elements nest.

html-text is not used: it puts a space at each inline tag, so `un<b>believ</b>able` would be three words, and so would each
emphasis in Chinese.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lxml import etree

from forum_reader.definition.selectors import xml_text

from .parse_body import tree_of

HIDDEN = frozenset({"script", "style", "template", "noscript", "head", "iframe", "object", "svg", "textarea", "select", "button"})
HIDDEN_TAGS = ("script", "style", "select", "button", "textarea")
"""Those with much text."""
_PARAGRAPHS = frozenset(
    {"p", "blockquote", "ul", "ol", "dl", "pre", "table", "h1", "h2", "h3", "h4", "h5", "h6", "figure", "details", "hr"}
)
_LINES = frozenset(
    {
        "div", "li", "dt", "dd", "tr", "section", "article", "aside", "header", "footer", "nav", "main", "address", "center",
        "fieldset", "form", "figcaption", "summary", "caption", "legend", "option",
    }
)  # fmt: skip
# and a cite within a blockquote: boards write "ida wrote:" into it
_CELLS = frozenset({"td", "th"})
BREAKS = dict.fromkeys(_LINES, 1) | dict.fromkeys(_PARAGRAPHS, 2)
"""Elements that begin a line (1) or a paragraph (2)."""
_EDGES = BREAKS.keys() | _CELLS | {"br", "cite"}
_EMOJI = re.compile("[\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]")
_NAMED_EMOJI = re.compile(r"emoji|smil(?:ey|ie)|emoticon", re.IGNORECASE)
_LONGEST_EMOJI = 30  # characters
_STRING = etree.XPath("string()", smart_strings=False)
_SPACE = frozenset(" \t\n\r\f\u200b")
_SPACES = re.compile(r"[ \t\n\r\f\u200b]+")


def text_of(markup: str | None) -> str | None:
    """Return the text of HTML; None where there is none."""
    if not markup:
        return None
    if "<" not in markup and "&" not in markup:
        return _SPACES.sub(" ", markup).strip() or None
    return text_of_elements([tree_of(markup)])


def text_of_elements(elements: Iterable[Any]) -> str | None:
    """Return the text of elements, each on separate lines; None where there is none."""
    writer = _Writer()
    for element in elements:
        writer.line()
        writer.element(element)
    return writer.text() or None


_NO_LETTERS = re.compile(r"[\W_]+")


def letters_of(text: str) -> str:
    """Return the letters and digits of a text, by which texts are compared."""
    return _NO_LETTERS.sub("", text)


def shown_characters(root: Any, elements: Mapping[str, Sequence[Any]]) -> int:
    """Return the number of characters that a page shows. `elements`: its elements by tag."""
    text, parts, at = str(_STRING(next(iter(elements["body"]), root))), [], 0
    hidden = {tag: [one for one in elements[tag] if one.getparent().tag != "head"] for tag in HIDDEN_TAGS}
    for script in hidden.pop("script"):
        whole = script.text
        if whole and (start := text.find(whole, at)) >= 0:
            parts.append(text[at:start])
            at = start + len(whole)
    shown = _length("".join((*parts, text[at:])))
    return shown - sum(_length(str(_STRING(one))) for several in hidden.values() for one in several)


def _length(text: str) -> int:
    return len(" ".join(text.split()))


def emoji_of(picture: Any) -> str | None:
    """Return the alt of a picture that is an emoji: `😀`, or `:)` where class or address name it so."""
    alt = (picture.get("alt") or "").strip()
    if not 0 < len(alt) <= _LONGEST_EMOJI or any(map(str.isspace, alt)):
        return None
    is_named = _NAMED_EMOJI.search(f"{picture.get('class', '')} {picture.get('src', '')}")
    is_sign = sum(map(str.isalnum, alt)) < 2  # `:)`, `:D`, and not `Smile`, `:door:`
    return alt if (is_named and is_sign) or (_EMOJI.search(alt) and not any(map(str.isalpha, alt))) else None


def end_lines(parts: list[str]) -> None:
    """Remove line ends from the end of a text in parts, where preformatted text ended: a break follows."""
    while parts and parts[-1].endswith("\n"):
        parts[-1] = parts[-1].rstrip("\n")
        if not parts[-1]:
            parts.pop()


class _Writer:
    def __init__(self) -> None:
        self._root: Any = None
        self._in_quote: bool | None = None
        self._parts: list[str] = []
        self._breaks = 0  # line breaks that are due before the next word
        self._space = False  # a space that is due, unless a line begins or ends here

    def text(self) -> str:
        return "".join(self._parts).rstrip("\n")

    def line(self) -> None:
        self._breaks = max(self._breaks, 1)

    def element(self, root: Any) -> None:
        self._root, self._in_quote = root, None
        tag = root.tag
        if type(tag) is not str or tag in HIDDEN:
            return
        self._edge(tag, quoted=False)
        kept = tag == "pre"
        if text := root.text:
            self._write(text, kept)
        if len(root):
            self._children(root, kept)
        self._edge(tag, quoted=False, ends=True)

    def _children(self, root: Any, kept: bool) -> None:
        """Write the children. Iterative: pages can nest deeper than Python's stack."""
        waiting: list[tuple[Any, Any, bool, bool]] = []  # the elements around, with the rest of their children
        element, children, quoted = root, iter(root), root.tag == "blockquote"
        while True:
            for child in children:
                tag = child.tag
                if type(tag) is str and tag not in HIDDEN:  # else a comment
                    edge = tag in _EDGES
                    if edge:
                        self._edge(tag, quoted)
                    if text := child.text or (emoji_of(child) if tag == "img" else None):
                        self._write(text, kept or tag == "pre")
                    if len(child):
                        waiting.append((element, children, kept, quoted))
                        element, children = child, iter(child)
                        kept, quoted = kept or tag == "pre", quoted or tag == "blockquote"
                        break
                    if edge:
                        self._edge(tag, quoted, ends=True)
                if tail := child.tail:
                    self._write(tail, kept)
            else:
                if not waiting:
                    return
                child = element
                element, children, kept, quoted = waiting.pop()
                if child.tag in _EDGES:
                    self._edge(child.tag, quoted, ends=True)
                if tail := child.tail:
                    self._write(tail, kept)

    def _edge(self, tag: str, quoted: bool, *, ends: bool = False) -> None:
        """Write the break at the beginning or the end of an element."""
        breaks = BREAKS.get(tag)
        if breaks is not None:
            if self._breaks < breaks:
                self._breaks = breaks
        elif tag == "br":
            self._breaks += not ends
        elif tag in _CELLS:
            self._space = True
        elif tag == "cite" and (quoted or self._is_in_quote()):
            self._breaks = max(self._breaks, 1)

    def _is_in_quote(self) -> bool:
        """Return True if all of the text is within a <blockquote>; looked up once."""
        if self._in_quote is None:
            self._in_quote = next(self._root.iterancestors("blockquote"), None) is not None
        return self._in_quote

    def _write(self, text: str, kept: bool) -> None:
        if kept:
            lines = text.replace("\r\n", "\n")
            if lines := lines if self._parts and not self._breaks else lines.lstrip("\n"):
                self._add(lines)
            return
        words = " ".join(text.split()) if text.isascii() else _SPACES.sub(" ", text).strip(" ")  # the first is faster
        if not words:
            self._space = self._space or text[0] in _SPACE
            return
        if self._breaks or self._space or text[0] in _SPACE:
            self._space = True
            self._add(words)
        else:
            self._parts.append(words)
        self._space = text[-1] in _SPACE

    def _add(self, words: str) -> None:
        if self._parts:
            if self._breaks:
                end_lines(self._parts)
                self._parts.append("\n" * min(self._breaks, 2))
            elif self._space:
                self._parts.append(" ")
        self._parts.append(words)
        self._breaks, self._space = 0, False


_PLACE = "trawl: a row"
PLACEHOLDER = f"<!--{_PLACE}-->"
"""In the HTML of a row that is read without its inner rows, in place of each."""


def parents_of(rows: Sequence[Any]) -> dict[Any, Any]:
    """Return for each of these elements the innermost other one around it, or None. Each element of the page is visited once."""
    members = frozenset(rows)
    known: dict[Any, Any] = {}
    parents = {}
    for row in rows:
        path, element = [], row.getparent()
        while element is not None and element not in members and element not in known:
            path.append(element)
            element = element.getparent()
        found = element if element is None or element in members else known[element]
        known.update(dict.fromkeys(path, found))
        parents[row] = found
    return parents


def outermost(found: list[Any]) -> list[Any]:
    """Leave out matches within another match, whose text includes theirs."""
    elements = [one for one in found if isinstance(one, etree._Element)]
    if len(elements) < 2:
        return found
    parents = parents_of(elements)
    return [one for one in found if not isinstance(one, etree._Element) or parents[one] is None]


def inner_rows(rows: Sequence[Any]) -> dict[Any, list[Any]]:
    """Return for each row with inner rows the outermost of these."""
    if len(rows) < 2:
        return {}
    inner: dict[Any, list[Any]] = {}
    for row, parent in parents_of(rows).items():
        if parent is not None:
            inner.setdefault(parent, []).append(row)
    return inner


@contextmanager
def left_out(row: Any, inner: Mapping[Any, list[Any]]) -> Iterator[Any]:
    """Yield `row` without the rows within it; they are put back afterwards. The tree around the row stays."""
    places = []
    try:
        for one in inner.get(row, ()) if inner else ():
            place = etree.Comment(_PLACE)
            place.tail, one.tail = xml_text(one.tail), None
            one.getparent().replace(one, place)
            places.append((place, one))
        yield row
    finally:
        for place, one in places:
            one.tail, place.tail = place.tail, None
            place.getparent().replace(place, one)


def cut(elements: Iterable[Any], root: Any) -> None:
    """Take these elements (in document order) out of `root`; the text behind each stays."""
    texts: dict[tuple[Any, bool], list[str]] = {}  # joined at the end: each addition to a text copies all of it
    for element in elements:
        parent = element.getparent() if isinstance(element, etree._Element) and element is not root else None
        if parent is None:
            continue
        before = element.getprevious()
        at = (parent, False) if before is None else (before, True)
        parts = texts.get(at)
        if parts is None:
            parts = texts[at] = [(parent.text if before is None else before.tail) or ""]
        parts.append(element.tail or "")
        parent.remove(element)
    for (element, is_tail), parts in texts.items():
        if is_tail:
            element.tail = xml_text("".join(parts))
        else:
            element.text = xml_text("".join(parts))


WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
"""Words of numbers, and texts in the place of deleted posts, in the languages of forums."""
