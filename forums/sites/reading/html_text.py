"""The text of HTML, as a browser shows it: words as they stand, a line for each line, an empty line between paragraphs.

Not by html-text, which puts a space at each inline tag: `un<b>believ</b>able` would be three words, and so would each emphasis
in Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .parse_body import tree_of

_HIDDEN = frozenset(
    {"script", "style", "template", "noscript", "head", "iframe", "object", "svg", "textarea", "select", "button"}
)
_PARAGRAPHS = frozenset(
    {"p", "blockquote", "ul", "ol", "dl", "pre", "table", "h1", "h2", "h3", "h4", "h5", "h6", "figure", "details", "hr"}
)
_LINES = frozenset(
    {
        "div", "li", "dt", "dd", "tr", "section", "article", "aside", "header", "footer", "nav", "main", "address", "center",
        "fieldset", "form", "figcaption", "summary", "caption", "legend", "option",
    }
)  # fmt: skip
# and a cite within a blockquote: boards write "somebody wrote:" into it
_CELLS = frozenset({"td", "th"})
_SPACES = re.compile(r"[ \t\n\r\f\u200b]+")


def text_of(markup: str | None) -> str | None:
    """None where there is no text."""
    if not markup:
        return None
    if "<" not in markup and "&" not in markup:
        return _SPACES.sub(" ", markup).strip() or None
    return text_of_elements([tree_of(markup)])


def text_of_elements(elements: Iterable[Any]) -> str | None:
    """The same of elements, each on separate lines."""
    writer = _Writer()
    for element in elements:
        writer.line()
        writer.element(element)
    return writer.text() or None


def end_lines(parts: list[str]) -> None:
    """Take the line ends off the end of a text in parts, where preformatted text ended: a break follows."""
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
        """Iterative: pages can nest deeper than Python's stack."""
        self._root, self._in_quote = root, None
        waiting: list[tuple[Any, bool, bool, bool]] = [(root, True, False, False)]  # on the way in; within <pre>, <blockquote>
        while waiting:
            element, coming, kept, quoted = waiting.pop()
            tag = element.tag
            if type(tag) is not str:
                tag = None  # a comment
            if coming and tag is not None and tag not in _HIDDEN:
                self._edge(tag, quoted)
                if tag == "br":
                    self._breaks += 1
                inner = kept or tag == "pre"
                self._write(element.text, inner)
                if len(element):
                    waiting.append((element, False, kept, quoted))
                    within = quoted or tag == "blockquote"
                    waiting.extend((child, True, inner, within) for child in reversed(element))
                    continue
            self._edge(tag, quoted)
            if element is not root:
                self._write(element.tail, kept)

    def _edge(self, tag: str | None, quoted: bool) -> None:
        """The beginning or the end of an element."""
        if tag in _PARAGRAPHS:
            self._breaks = max(self._breaks, 2)
        elif tag in _LINES or (tag == "cite" and (quoted or self._is_in_quote())):
            self._breaks = max(self._breaks, 1)
        elif tag in _CELLS:
            self._space = True

    def _is_in_quote(self) -> bool:
        """Whether all of the text is within a <blockquote>; looked up once."""
        if self._in_quote is None:
            self._in_quote = next(self._root.iterancestors("blockquote"), None) is not None
        return self._in_quote

    def _write(self, text: str | None, kept: bool) -> None:
        if not text:
            return
        if kept:
            lines = text.replace("\r\n", "\n")
            if lines := lines if self._parts and not self._breaks else lines.lstrip("\n"):
                self._add(lines)
            return
        words = _SPACES.sub(" ", text)
        if words.startswith(" "):
            self._space = True
        if word := words.strip(" "):
            self._add(word)
            self._space = words.endswith(" ")

    def _add(self, words: str) -> None:
        if self._parts:
            if self._breaks:
                end_lines(self._parts)
                self._parts.append("\n" * min(self._breaks, 2))
            elif self._space:
                self._parts.append(" ")
        self._parts.append(words)
        self._breaks, self._space = 0, False
