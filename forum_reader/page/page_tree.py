"""One pass over a parsed page into flat arrays, in the order of the document.

The elements of a subtree are the range `[i, end[i])`, its words the range `[first_text[i], last_text[i])` of `texts`, so that the
questions which the readers ask thousands of times ("how much text is in here, and how much of that in links?") are two
subtractions. The tree is neither changed nor serialised afterwards.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from lxml import etree

from forum_reader.errors import PageTooLarge
from forum_reader.fields import post_marks
from forum_reader.reading.html_text import BREAKS, HIDDEN, emoji_of, end_lines

MOST_ELEMENTS = 100_000
"""A page of 100 long posts has 10,000."""

_LEFT_OUT = (HIDDEN - {"noscript"}) | {"math", "datalist", "audio", "video", "canvas", "map"}
_CELLS = frozenset({"td", "th"})
_COLUMNS = frozenset({"tr", "div", "section", "font"})
_BREAKS = (
    dict.fromkeys(_CELLS, 1) | {tag: lines + 1 for tag, lines in BREAKS.items()} | dict.fromkeys(("tbody", "thead", "body"), 2)
)
_STATE = re.compile(
    r"^(?:(?:odd|even|first|last|alt|bg|row|unread|read|online|offline|clearfix|cf|js|has|is|no)(?:[-_]?\d*)|\S+[-_](?:odd|even))$",
    re.IGNORECASE,
)
_LAYOUT = re.compile(
    r"(?:-?[mp][trblxyse]?-\S+|(?:d|w|h|z|gap|space|bg|border|rounded|font|min|max|items|justify|self|leading|tracking|"
    r"overflow|align|float|position|order|flex|grid|shrink|grow|col|container|top|inset)(?:-\S+)?|block|inline\S*|"
    r"relative|absolute|sticky|static|truncate|"
    r"text-(?:\d?xs|sm|base|md|lg|\d?xl|left|right|center|muted|break|nowrap|white|black|secondary|primary|body|[a-z]+-\d+))"
)
_DIGITS = re.compile(r"\d+")
LETTER = re.compile(r"[^\W\d_]")
_SPACES = re.compile(r"[ \t\n\r\f\u200b]+")
_SEPARATORS = ("", " ", "\n", "\n\n")
_NOTHING: dict[str, str] = {}

Range = tuple[int, int]


class PageTree:
    """The arrays. Of element `i`: `tag`, `attributes`, `parent`, `end`, `sign` (the same number for elements of the same tag and
    first class), the range of its texts. `counted`: the signs of elements that differ by their place. Of text `k`: the string,
    `owner` (the element around it), `gap` (the separator from the text before: 0 nothing, 1 a space, 2 a line, 3 a paragraph).
    `chars` and `link_chars` are running sums over texts. `keep`: store the tree's elements in `elements`.
    """

    def __init__(self, root: Any, *, keep: bool = False) -> None:
        self.elements: list[Any] = []
        self.tag: list[str] = []
        self.attributes: list[dict[str, str]] = []
        self.parent: list[int] = []
        self.end: list[int] = []
        self.sign: list[int] = []
        self.first_text: list[int] = []
        self.last_text: list[int] = []
        self.texts: list[str] = []
        self.owner: list[int] = []
        self.gap: list[int] = []
        self.chars: list[int] = [0]
        self.link_chars: list[int] = [0]
        self._signs: dict[tuple[str, str], int] = {}
        self._strings: dict[int, str] = {}
        self._labels: dict[int, str] = {}
        self.counted: set[int] = set()
        self.writing_in: list[int] = []
        """The elements around fields for long texts, which are not in the tree."""
        self._walk(root, keep=keep)

    def __len__(self) -> int:
        return len(self.tag)

    def size(self, i: int) -> int:
        """Return the number of characters of text in an element."""
        return self.chars[self.last_text[i]] - self.chars[self.first_text[i]]

    def written(self, start: int, end: int) -> int:
        """Return the number of characters outside of links, of the texts in `[start, end)`."""
        return self.chars[end] - self.chars[start] - (self.link_chars[end] - self.link_chars[start])

    def written_in(self, i: int) -> int:
        """Return the number of characters of an element outside of links."""
        return self.written(self.first_text[i], self.last_text[i])

    def text_range(self, elements: Range) -> Range:
        """Return the range of texts of a range of elements."""
        start, end = elements
        if start >= end:
            return (0, 0)
        # not the last element's own end: where it is a parent's last child, its ancestors' texts follow
        return self.first_text[start], self.first_text[end] if end < len(self.tag) else len(self.texts)

    def string(self, i: int) -> str:
        """Return the text of an element on one line."""
        found = self._strings.get(i)
        if found is None:
            first, last = self.first_text[i], self.last_text[i]
            text = self.texts[first] if last - first == 1 else self.joined(first, last)
            found = self._strings[i] = " ".join(text.split())
        return found

    def label(self, i: int) -> str:
        """Return the text of an element itself, where it has letters; else all text in it."""
        first, last = self.first_text[i], self.last_text[i]
        if last - first < 2:
            return self.string(i)
        found = self._labels.get(i)
        if found is None:
            own = " ".join(self.texts[k].strip() for k in range(first, last) if self.owner[k] == i)
            found = self._labels[i] = own if len(own) > 1 and LETTER.search(own) else self.string(i)
        return found

    def names(self, i: int) -> str:
        """Return the classes and the id of an element."""
        own = self.attributes[i]
        return f"{own.get('class', '')} {own.get('id', '')}" if own else ""

    def joined(self, start: int, end: int, without: Iterable[Range] = ()) -> str:
        """Return the texts in `[start, end)` as a browser shows them, without those in the (ordered) ranges `without`."""
        parts: list[str] = []
        gap = 0
        skips = iter(without)
        skip = next(skips, None)
        k = start
        while k < end:
            while skip is not None and skip[1] <= k:
                skip = next(skips, None)
            gap = max(gap, self.gap[k])
            if skip is not None and skip[0] <= k:
                gap = max(gap, max(self.gap[k : min(skip[1], end)], default=0), 1)
                k = skip[1]
                continue
            text = self.texts[k]
            kept = self.tag[self.owner[k]] == "pre"
            if not kept:
                text = _SPACES.sub(" ", text)
                if text[0] == " ":
                    gap = max(gap, 1)
            word = text.strip(" ") if not kept else text.lstrip("\n") if gap > 1 or not parts else text
            if word:
                if parts:
                    if gap > 1:
                        end_lines(parts)
                    parts.append(_SEPARATORS[gap])
                parts.append(word)
                gap = 1 if not kept and text[-1] == " " else 0
            k += 1
        return "".join(parts).rstrip("\n")

    def _walk(self, root: Any, *, keep: bool) -> None:
        tags, parents, ends, firsts, lasts = self.tag, self.parent, self.end, self.first_text, self.last_text
        texts, attributes, elements, signs, new_sign = self.texts, self.attributes, self.elements, self.sign, self._new_sign
        known_signs: dict[tuple[str, str | None], int] = {}
        breaks, left_out, add = _BREAKS, _LEFT_OUT, self._add
        current, gap, links, is_left_out = -1, 0, 0, False
        walk = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
        for event, element in walk:
            if event == "start":
                tag = element.tag
                if tag in left_out and not (tag == "button" and _holds_date(element)):
                    is_left_out = True
                    walk.skip_subtree()  # its end is next
                    if tag == "textarea":
                        self.writing_in.append(current)
                    continue
                own = dict(items) if (items := element.items()) else _NOTHING
                parents.append(current)
                current = len(tags)
                if current >= MOST_ELEMENTS:
                    raise PageTooLarge(f"has more than {MOST_ELEMENTS:,} elements: no page of a forum has so many")
                tags.append(tag)
                attributes.append(own)
                ends.append(0)
                firsts.append(len(texts))
                lasts.append(0)
                kind = (tag, own.get("class"))
                sign = known_signs.get(kind)
                if sign is None:
                    sign = new_sign(kind, own, known_signs)
                signs.append(sign)
                if keep:
                    elements.append(element)
                if tag == "a":
                    links += not _is_anchor(own)
                least = breaks.get(tag, 0) if tag != "br" else 3 if gap > 1 else 2
                if least > gap:
                    gap = least
                text = element.text if tag != "img" else emoji_of(own)
                if text:
                    gap = (gap or 1) if text.isspace() else add(text, current, gap, links)
                continue
            if event == "end" and not is_left_out:
                tag = tags[current]
                ends[current] = len(tags)
                lasts[current] = len(texts)
                if tag == "a":
                    links -= not _is_anchor(attributes[current])
                parent = parents[current]
                least = breaks.get(tag, 0) if tag != "cite" else 2 * (tags[parent] == "blockquote")  # `ida wrote:`
                if least > gap:
                    gap = least
                current = parent
            is_left_out = False
            text = element.tail
            if text and current >= 0:
                gap = (gap or 1) if text.isspace() else add(text, current, gap, links)

    def _add(self, text: str, owner: int, gap: int, links: int) -> int:
        """Add a text behind a separator, and return that of the next one. `links`: number of links around it."""
        length = len(" ".join(text.split())) if "\n" in text or "  " in text else len(text)
        self.texts.append(text)
        self.owner.append(owner)
        self.gap.append(gap)
        self.chars.append(self.chars[-1] + length)
        self.link_chars.append(self.link_chars[-1] + (length if links else 0))
        return 0

    def _new_sign(self, kind: tuple[str, str | None], own: dict[str, str], known: dict[tuple[str, str | None], int]) -> int:
        tag, classes = kind
        if tag == "a" and not classes:
            return self._sign_of_link(own)
        found = known[kind] = self._sign_of((tag, first_class(classes) if classes else ""))
        return found

    def _sign_of_link(self, attributes: dict[str, str]) -> int:
        """Return the sign of an `a` without a class, which has its target: a name and a button are often side by side."""
        href = attributes.get("href")
        return self._sign_of(("a", "no" if href is None else "profile" if post_marks.is_profile_link(href) else "page"))

    def _sign_of(self, key: tuple[str, str]) -> int:
        found = self._signs.get(key)
        if found is None:
            found = self._signs[key] = len(self._signs)
            if key[0] in _CELLS or key[0] == "tr" or (not key[1] and key[0] in _COLUMNS):
                self.counted.add(found)
        return found


def _is_anchor(attributes: dict[str, str]) -> bool:
    """Return True if an `a` is a link target: where it is not closed, it holds all that comes after it."""
    return "href" not in attributes and ("name" in attributes or "id" in attributes)


def _holds_date(button: Any) -> bool:
    """Return True if a button is the date of a post, which shows the exact time when it is pressed."""
    return any(one.tag == "time" or one.get("itemprop") in ("datePublished", "dateCreated") for one in button.iter())


@lru_cache(maxsize=8192)
def first_class(classes: str) -> str:
    """Return the first class that names an element's role, not its state or layout, without numbers; all classes where each is
    of the layout.
    """
    words = [word for word in classes.split() if not _STATE.match(word)]
    named = next((word for word in words if not _LAYOUT.fullmatch(word)), None)
    return _DIGITS.sub("#", " ".join(words) if named is None else named)


_MOST_OF_PAGE = 0.5  # of the text outside of links, that a menu or a sidebar has
_FRAME_TAGS = frozenset({"nav", "footer", "aside"})
_FRAME = re.compile(
    r"(?:^|[\s_-])(?:nav(?:bar|igation)?|menu|foot(?:er)?|side-?bar|breadcrumbs?|widget)(?:$|[\s_-])", re.IGNORECASE
)


def is_framed(tree: PageTree, i: int) -> bool:
    """Return True if an element stands in a menu, a sidebar, the head or the foot of the page."""
    most = _MOST_OF_PAGE * (tree.chars[-1] - tree.link_chars[-1])
    while i > 0:
        if tree.tag[i] in _FRAME_TAGS:
            return True
        if tree.written_in(i) <= most:
            attributes = tree.attributes[i]
            names = f"{attributes.get('class', '')} {attributes.get('id', '')} {attributes.get('role', '')}" if attributes else ""
            if tree.tag[i] == "header" or (names and _FRAME.search(names)):
                return True
        i = tree.parent[i]
    return False


def around(tree: PageTree, members: Sequence[int]) -> int:
    """Return the innermost element that holds all members."""
    i = tree.parent[members[0]]
    while i > 0 and tree.end[i] <= members[-1]:
        i = tree.parent[i]
    return i


_TYPED = frozenset({"text", "password", "email", "tel", "number", "url"})
_POST_NUMBER = re.compile(r"\d{2,}")  # `1` is "remember me"
_MOST_FORMS = 6
_FORMS = 0.25  # least share of candidate posts with fields on the page of a form
_ENTRY = re.compile(
    r"log-?\s?in|log-?\s?on|sign[-_\s]?(?:in|up|on)(?![a-z])|regist|password|passwor[td]|account|auth|anmeld|einlogg|konto|"
    r"mot[-_ ]de[-_ ]passe|connexion|inscri|contraseña|senha|iniciar sesi|entrar|wachtwoord|inlogg|logga in|lösenord|adgangskode|"
    r"hasł|zaloguj|logowan|přihl|prihl|hesl|belépés|jelsz|giriş|şifre|вход|войти|авториз|регистр|парол|"
    r"ログイン|登録|パスワード|登录|登錄|登入|注册|註冊|로그인|תחבר|دخول|تسجيل",
    re.IGNORECASE,
)
"""Titles and addresses of login and registration pages."""


def typed_fields(tree: PageTree) -> list[int]:
    """Return the elements for typed text, in the order of the page."""
    return [i for i, tag in enumerate(tree.tag) if tag == "input" and _type_of(tree, i) in _TYPED]


def are_forms(tree: PageTree, blocks: Sequence[Range]) -> bool:
    """Return True if candidate posts are parts of a form page: a login, a registration, a search."""
    fields = typed_fields(tree) if len(blocks) <= _MOST_FORMS else []  # answers may have a form each
    return bool(fields) and sum(any(start <= i < end for i in fields) for start, end in blocks) >= _FORMS * len(blocks)


def asks_for_password(tree: PageTree) -> bool:
    """Return True if a password field stands outside of menus, and of the head and the foot of the page. Not where one is for
    deleting one's own post.
    """
    fields = [
        i for i, tag in enumerate(tree.tag) if tag == "input" and _type_of(tree, i) == "password" and not is_framed(tree, i)
    ]
    return bool(fields) and not any(_deletes_posts(tree, i) for i in fields)


def _deletes_posts(tree: PageTree, password: int) -> bool:
    """Return True if a password is for deleting one's own post: its form has no second one, as a registration has, and takes a
    text or a file, or selects posts by their numbers.
    """
    form = password
    while form >= 0 and tree.tag[form] != "form":
        form = tree.parent[form]
    if form < 0:
        return False
    inside = [i for i in range(form, tree.end[form]) if tree.tag[i] == "input"]
    kinds = Counter(_type_of(tree, i) for i in inside)
    numbered = any(
        _type_of(tree, i) == "checkbox" and _POST_NUMBER.fullmatch(tree.attributes[i].get("value", "")) for i in inside
    )
    takes_text = any(form <= i < tree.end[form] for i in tree.writing_in)
    return kinds["password"] == 1 and (takes_text or numbered or "file" in kinds)


def is_entry(tree: PageTree, title: str | None, address: str) -> bool:
    """Return True if a page is a login or a registration: its title or address matches, and it has a password field."""
    return bool(_ENTRY.search(title or "") or _ENTRY.search(address)) and asks_for_password(tree)


def _type_of(tree: PageTree, i: int) -> str:
    return tree.attributes[i].get("type", "text").strip().lower() or "text"
