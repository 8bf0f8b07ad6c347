"""Posts by the marks for search engines: schema.org in JSON-LD.

Forums mark their posts as `DiscussionForumPosting` with `Comment`s, as a `Question` with `Answer`s, or as an article with
comments. Many mark only some posts, or shorten their text; the comparison with other readers shows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from forum_reader.dates.dates_in_text import Spotted, machine_date
from forum_reader.dates.post_calendar import Calendar
from forum_reader.page.records import SeenPost
from forum_reader.reading.html_text import text_of

OPENING = frozenset(
    {"discussionforumposting", "question", "socialmediaposting", "article", "newsarticle", "blogposting", "techarticle"}
)
ANSWERS = frozenset({"comment", "answer", "usercomments", "review"})
_ASKED = frozenset({"question", "answer"})
_INNER = ("suggestedAnswer", "acceptedAnswer", "comment", "comments", "commentText", "review")
_HOLDERS = ("mainEntity", "@graph", "hasPart", "itemListElement", "item", "mainEntityOfPage", "about")
_REFERENCE = frozenset({"@id", "@type"})  # keys of a reference to a node
_MOST_POSTS = 5000
_MOST_NODES = 100_000
_DEEPEST = 60
_ID = re.compile(
    r"(?:#|[/=?&_-])(?:post|comment|msg|p|c|answer|reply|entry|message|Comment)?[-_]?(\d{1,15})/?$|^#?(?:[a-z_-]*)?(\d{1,15})$"
)
_WRAPPING = ("<!--", "//", "/*", "<![CDATA[", "*/")  # in this order
_DECODER = json.JSONDecoder(strict=False)
_PREFIX = re.compile(r'"(?:schema:|https?://schema\.org/)(?=\w)')
_LAST_COMMA = re.compile(r",(?=\s{0,200}[}\]])")
_PARENTS = ("parentItem", "discusses", "about", "isPartOf")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")


class Marked(NamedTuple):
    """A marked post: its node, its text, the node of its author, and the number of the post that it answers."""

    node: Mapping[str, Any]
    text: str
    person: Any
    parent: int | None


_KINDS = "|".join(sorted(OPENING | ANSWERS))
_OF_ELEMENTS = re.compile(rf"itemtype\s{{0,3}}=\s{{0,3}}[\"']?(?:https?:)?//schema\.org/(?i:{_KINDS})\b")
_OF_JSON = re.compile(rf'"@type"\s{{0,3}}:\s{{0,3}}(?:\[\s{{0,3}})?"(?:schema:|https?://schema\.org/)?(?i:{_KINDS})"')


def most_marked(html: str) -> int:
    """Return the most posts that a page may have marked."""
    if "schema.org" not in html:
        return 0
    elements = len(_OF_ELEMENTS.findall(html)) if "itemtype" in html else 0
    return max(elements, len(_OF_JSON.findall(html)) if '"@type"' in html else 0)


def marked_posts(scripts: Iterable[str], calendar: Calendar) -> tuple[tuple[SeenPost, ...], frozenset[int]]:
    """Return the posts, and the indexes of comments on a question or an answer."""
    posts = _json_ld(scripts)
    return tuple(_seen(posts, calendar)), _comments(posts)


def _comments(posts: list[Marked]) -> frozenset[int]:
    """Return the comments of a page that has answers; without any, its comments are the answers."""
    kinds = [_types(post.node) for post in posts]
    if not any("answer" in own for own in kinds):
        return frozenset()
    found: set[int] = set()
    for n, post in enumerate(posts):
        parent = post.parent
        if parent is not None and "comment" in kinds[n] and (kinds[parent] & _ASKED or parent in found):
            found.add(n)
    return frozenset(found)


def _seen(posts: list[Marked], calendar: Calendar) -> Iterator[SeenPost]:
    names = (("datePublished", "dateCreated", "commentTime"), ("dateModified",))
    dates, edits = (calendar.read([_date(_named(post.node, own)) for post in posts]) for own in names)
    ids = [_id(_named(post.node, ("identifier", "@id", "url"))) for post in posts]
    for n, (post, date, edit) in enumerate(zip(posts, dates, edits, strict=True)):
        person = post.person if isinstance(post.person, Mapping) else {"name": post.person}
        yield SeenPost(
            text=post.text,
            id=ids[n],
            author=_string(person.get("name") or person.get("alternateName")),
            author_url=_string(person.get("url") or person.get("sameAs")),
            published=date,
            edited=edit if edit and date and edit > date else None,
            parent=ids[post.parent] if post.parent else None,
            url=_named(post.node, ("url", "@id")),
        )


def _date(value: str | None) -> Spotted | None:
    return machine_date(value) if value else None


def _json_ld(scripts: Iterable[str]) -> list[Marked]:
    values = []
    for script in scripts:
        script = _PREFIX.sub('"', script.strip())
        for mark in _WRAPPING:
            script = script.removeprefix(mark).lstrip()
        for text in (script, _LAST_COMMA.sub("", script)):
            with suppress(ValueError, RecursionError):
                values.append(_DECODER.raw_decode(text)[0])
                break
    graph = _Graph(values)
    found = [graph.posts_of(opening) for opening in _openings(values, 0)]
    return max(found, key=lambda posts: (len(posts), sum(len(post.text) for post in posts)), default=[])


class _Graph:
    """The nodes of a page's JSON-LD: `{"@id": "#c1"}` refers to a node anywhere on the page; a node may name its parent
    (`@reverse`, `parentItem`) in place of being in the parent's list.
    """

    def __init__(self, values: list[Any]) -> None:
        self._nodes: dict[str, Mapping[str, Any]] = {}
        self._fragments: dict[str, Mapping[str, Any] | None] = {}
        self._inner: dict[str, list[Mapping[str, Any]]] = {}
        waiting: list[tuple[Any, int]] = [(values, 0)]
        for _ in range(_MOST_NODES):
            if not waiting:
                break
            value, depth = waiting.pop()
            if isinstance(value, Mapping):
                self._add(value)
            inner = value.values() if isinstance(value, Mapping) else value
            if depth < _DEEPEST:
                waiting += [(one, depth + 1) for one in reversed(list(inner)) if isinstance(one, (list, Mapping))]

    def _add(self, value: Mapping[str, Any]) -> None:
        name, parents = value.get("@id"), value.get("@reverse")
        if isinstance(name, str) and len(value) > len(_REFERENCE.intersection(value)):
            self._nodes.setdefault(name, value)
            fragment = name.rpartition("#")[2]
            self._fragments[fragment] = None if fragment in self._fragments else value
        named = [parents[name] for name in _INNER if name in parents] if isinstance(parents, Mapping) else []
        named += [value.get(name) for name in (_PARENTS if _types(value) & ANSWERS else _PARENTS[:1])]
        for parent in _listed(named) if _types(value) else ():
            if isinstance(parent, Mapping) and isinstance(of := parent.get("@id"), str):
                self._inner.setdefault(of.rpartition("#")[2], []).append(value)

    def node(self, value: Any) -> Any:
        """Return the node that a value refers to; else the value."""
        name = value.get("@id") if isinstance(value, Mapping) else None
        if not isinstance(name, str):
            return value
        return self._nodes.get(name) or self._fragments.get(name.rpartition("#")[2]) or value

    def posts_of(self, opening: Mapping[str, Any]) -> list[Marked]:
        """Return an opening post and the posts below it, each once."""
        posts: list[Marked] = []
        seen: set[int] = set()
        waiting: list[tuple[Any, int | None]] = [(opening, None)]
        while waiting and len(posts) < _MOST_POSTS:
            value, parent = waiting.pop()
            value = self.node(value)
            if not isinstance(value, Mapping) or id(value) in seen or _REFERENCE.issuperset(value):
                continue
            seen.add(id(value))
            own, answers = value.get("@id"), value.get("@reverse")
            below = [one for name in _INNER for one in _listed(value.get(name))]
            below += _listed(answers.get("parentItem")) if isinstance(answers, Mapping) else []
            below += self._inner.get(own.rpartition("#")[2], []) if isinstance(own, str) else []
            waiting += [(one, len(posts)) for one in reversed(below)]
            texts = (_plain(_string(value.get(name))) for name in ("articleBody", "text", "commentText", "description"))
            person = self.node(_first(value.get("author") or value.get("creator")))
            posts.append(Marked(value, next(filter(None, texts), ""), person, parent))
        return posts


def _listed(value: Any) -> list[Any]:
    """Return the values of a property, which may be one value, a list or an `ItemList`."""
    if isinstance(value, list):
        return [one for inner in value for one in (inner if isinstance(inner, list) else _listed(inner))]
    if isinstance(value, Mapping):
        items = value.get("@list") or value.get("itemListElement")
        if isinstance(items, list):
            return [one.get("item", one) if isinstance(one, Mapping) else one for one in items]
    return [] if value is None else [value]


def _first(value: Any) -> Any:
    return next((one for one in value if one), None) if isinstance(value, list) else value


def _types(value: Mapping[str, Any]) -> set[str]:
    types = value.get("@type")
    return {str(one).rsplit("/", 1)[-1].lower() for one in (types if isinstance(types, list) else [types]) if one}


def _openings(value: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if depth > 8:
        return
    if isinstance(value, list):
        for one in value[:200]:
            yield from _openings(one, depth + 1)
    elif isinstance(value, Mapping):
        if _types(value) & OPENING:
            yield value
            return
        for name in _HOLDERS:
            if isinstance(value.get(name), (list, Mapping)):
                yield from _openings(value[name], depth + 1)


def _named(value: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of these properties that is a text or a number."""
    return next(filter(None, (_string(value.get(name)) for name in names)), None)


def _string(value: Any) -> str | None:
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, Mapping):
        value = value.get("@value") or value.get("@id")
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value).strip() or None
    return None


def _plain(text: str | None) -> str:
    if not text:
        return ""
    return (text_of(text) or "") if _TAG.search(text) or "&" in text else text


def _id(text: str | None) -> str | None:
    match = _ID.search(text) if text else None
    return next((group for group in match.groups() if group), None) if match else None
