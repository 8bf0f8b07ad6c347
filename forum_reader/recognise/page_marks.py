"""Marks that identify software: the table `[recognise]` of a profile, and the marks of a page, apart from text that users wrote.

Text between tags is left out: "Powered by MyBB" may be in a post, and so may a link to another forum.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import urlsplit

import regex
from lxml import etree
from pydantic import BaseModel, ConfigDict, Field, field_validator

from forum_reader.definition.selectors import PatternError, class_names, compile_pattern
from forum_reader.reading.html_text import HIDDEN_TAGS
from forum_reader.reading.parse_body import FRAME_TAGS, by_tag, markup_root

if TYPE_CHECKING:
    from forum_reader.page.response import TextResponse

MarkKind = Literal[
    "class", "id", "data", "field", "link", "asset", "meta", "comment", "script", "credit", "root", "header", "cookie"
]
"""`class`, `id`: of any element, ids with # for digits. `data`: name of a `data-` attribute. `field`: name of an input. `link`:
path and query of a link within the site. `asset`: address of a script or style sheet. `meta`: `name=content`. `comment`:
beginning of an HTML comment. `script`: text of a script. `credit`: host of one of the page's last links to other sites. `root`:
attributes of <html> and <body>. `header`: `name: value` of the response, in lower case. `cookie`: name of a cookie that is set.
"""
KINDS = frozenset(get_args(MarkKind))
_WHOLE = frozenset({"class", "id", "data", "field", "credit"})  # kinds whose marks are matched as a whole

_TO_SIGNS = bytes.maketrans(b"0123456789", b"#" * 10)
_DATA = re.compile(r"data-(?<![a-z-]data-)[a-z][a-z-]*+=")  # letters first: `re` looks for these quickly
_COMMENT = re.compile(r"<!--\s*+(?!-->)(.{1,80}?)\s*(?:-->|$)", re.MULTILINE)
_SCRIPT_HEAD = 200_000  # characters of each script
_MOST_SCRIPT = 600_000
_MOST_LINKS = 2000
_LAST_LINKS = 40
_IDS = etree.XPath("//@id", smart_strings=False)
_STRING = etree.XPath("string()", smart_strings=False)
_MARKED = ("a", "input", "script", "meta")  # whose attributes are marks


class Recognise(BaseModel):
    """Profiles: how `trawl sites new` recognises the software of a page, by several independent marks. A mark is a kind and a
    regular expression, as in `class structItem`; kinds are those of `MarkKind`.
    """

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    signatures: tuple[str, ...] = Field(default=(), description="marks that hardly any other software has: each counts 2")
    hints: tuple[str, ...] = Field(default=(), description="further marks: each counts 1")
    requires: tuple[str, ...] = Field(default=(), description="marks that this version always has; they do not count")
    never: tuple[str, ...] = Field(default=(), description="marks that only another software or version has")
    version: str | None = Field(default=None, description="a mark whose first group is the version")
    software: str | None = Field(default=None, description="its name, the same in the profiles of all its versions")
    html_profile: str | None = Field(
        default=None, description="the profile that reads its HTML pages, where this one reads an API"
    )
    rank: int = Field(default=0, description="of several profiles that fit equally well the one of the highest rank is chosen")
    base: str | None = Field(
        default=None,
        description="regular expression whose first group is the path of the forum's root; `/`: the host's, forums are paths",
    )
    forum: str | None = Field(
        default=None,
        description="regular expression for a forum's id (first group) in an address; else the list pages' address",
    )
    comment_ids: str | None = Field(
        default=None,
        description="XPath of the ids (numbers) of comments on a question or an answer, which `trawl read` shows below it",
    )
    about: str | None = Field(default=None, description="one line about the software")

    @cached_property
    def quick(self) -> frozenset[str]:
        """Return the marks without those of scripts."""
        return frozenset(mark for mark in (*self.signatures, *self.hints) if not mark.startswith("script "))

    @field_validator("signatures", "hints", "requires", "never")
    @classmethod
    def _are_marks(cls, marks: tuple[str, ...]) -> tuple[str, ...]:
        for mark in marks:
            compiled_mark(mark)
        return marks


@lru_cache(maxsize=2048)
def compiled_mark(mark: str) -> tuple[str, str, regex.Pattern[str] | None]:
    """Return a mark's kind, and its text where it is plain and of a kind whose marks are whole words, else its expression."""
    kind, _, expression = mark.partition(" ")
    if kind not in KINDS or not expression:
        raise ValueError(
            f"{mark!r} must be a kind and a regular expression, as in 'class structItem': kinds are {', '.join(sorted(KINDS))}"
        )
    is_whole = kind in _WHOLE
    if is_whole and re.escape(expression).replace("\\-", "-").replace("\\#", "#") == expression:
        return kind, expression, None
    try:
        return kind, "", compile_pattern(f"^(?:{expression})$" if is_whole else expression, regex.MULTILINE)
    except PatternError as exc:
        raise ValueError(f"{mark!r} is not a regular expression: {exc}") from None


class PageMarks:
    """The marks of one page, each kind collected on first use. `root`: its root element, where it was parsed already."""

    def __init__(self, response: TextResponse, root: Any = None) -> None:
        self._response = response
        root = markup_root(response) if root is None else root
        self._root = etree.Element("json") if root is None else root
        self._known: dict[str, frozenset[str]] = {}
        self._joined: dict[str, str] = {}

    def of(self, kind: str) -> frozenset[str]:
        """Return the marks of a kind."""
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = frozenset(getattr(self, "_root_attributes" if kind == "root" else f"_{kind}")())
        return known

    def lines(self, kind: str) -> str:
        """Return the marks of a kind, one a line."""
        joined = self._joined.get(kind)
        if joined is None:
            joined = self._joined[kind] = "\n".join(sorted(self.of(kind)))
        return joined

    def addresses(self) -> str:
        """Return the page's links and addresses in its head, one a line in one form, to find the forum's root."""
        lines = [f'href="{href}"' for href in self.hrefs[:_MOST_LINKS]]
        linked = (one for one in self.elements["link"] if one.get("href") is not None)
        lines += [f'<link rel="{one.get("rel", "")}" href="{one.get("href")}"' for one in linked]
        named = (one for one in self.elements["meta"] if one.get("name") is not None and one.get("content") is not None)
        lines += [f'<meta name="{one.get("name")}" content="{one.get("content")}"' for one in named]
        return "\n".join(lines)

    @cached_property
    def hrefs(self) -> list[str]:
        """Return the addresses of the page's links."""
        return [href for _, href in self.links]

    @cached_property
    def links(self) -> list[tuple[str, str]]:
        """Return the text of each link on one line, and its address."""
        links = ((one, one.get("href")) for one in self.elements["a"])
        return [(" ".join(_text(one).split()), href) for one, href in links if href is not None]

    @cached_property
    def ids(self) -> frozenset[str]:
        """Return the ids of the page's elements."""
        return frozenset(_IDS(self._root))

    @cached_property
    def elements(self) -> dict[str, list[Any]]:
        """Return the elements of the tags that are asked for, by tag."""
        return by_tag(self._root, *_MARKED, *FRAME_TAGS, *HIDDEN_TAGS)

    def _attributes(self, tag: str, name: str) -> list[str]:
        return [value for element in self.elements[tag] if (value := element.get(name)) is not None]

    def _class(self) -> Iterable[str]:
        return class_names(self._root)

    def _id(self) -> Iterable[str]:
        marked = "\n".join(self.ids).encode("utf-8", "replace").translate(_TO_SIGNS)
        while b"##" in marked:
            marked = marked.replace(b"##", b"#")
        return marked.decode().split("\n")

    def _data(self) -> Iterable[str]:
        return (found.rstrip("=") for found in _DATA.findall(self._response.text))

    def _field(self) -> Iterable[str]:
        return [name for tag in ("input", "button", "select") for name in self._attributes(tag, "name")]

    def _link(self) -> Iterable[str]:
        here = urlsplit(self._response.url).netloc
        for href in set(self.hrefs[:_MOST_LINKS]):
            if "://" not in href[:12]:
                yield href.strip() if href[:1] == "/" else f"/{href.strip()}"
            elif href.split("/", 3)[2:3] == [here]:
                yield "/" + "".join(href.split("/", 3)[3:])

    def _asset(self) -> Iterable[str]:
        return [*self._attributes("script", "src"), *self._attributes("link", "href")]

    def _meta(self) -> Iterable[str]:
        for element in self.elements["meta"]:
            name = element.get("name") or element.get("property")
            if name and (content := element.get("content")) is not None:
                yield f"{name.lower()}={' '.join(content.split())}"

    def _comment(self) -> Iterable[str]:
        return _COMMENT.findall(self._response.text)

    def _script(self) -> Iterable[str]:
        left = _MOST_SCRIPT
        for script in (element.text for element in self.elements["script"]):
            if script and left > 0:
                yield script[: min(_SCRIPT_HEAD, left)]
                left -= len(script)

    def _credit(self) -> Iterable[str]:
        here = urlsplit(self._response.url).netloc
        hosts = [_host(href.strip()) for href in self.hrefs[-_LAST_LINKS:] if "//" in href[:10]]
        return [host for host in hosts if host and host != here]

    def _root_attributes(self) -> Iterable[str]:
        """Yield the attributes of <html> and <body>."""
        if self._root.tag != "html":
            return []
        frames = [self._root, *self.elements["body"][:1]]
        return [f"{one.tag} {name}={value}" for one in frames for name, value in one.items()]

    def _header(self) -> Iterable[str]:
        return [
            f"{name.decode('latin-1')}: {value.decode('latin-1')}".lower()
            for name, values in self._response.headers.items()
            for value in values
        ]

    def _cookie(self) -> Iterable[str]:
        return [cookie.decode("latin-1").partition("=")[0] for cookie in self._response.headers.getlist("Set-Cookie")]


def _text(element: Any) -> str:
    return str(_STRING(element)) if len(element) else element.text or ""


def _host(url: str) -> str | None:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.") or None
    except ValueError:
        return None
