"""Finding out how an unknown forum is made: from its front page, a forum's page and a thread's page to the keys of a site file.

What repeats is a row: links whose addresses differ in a number lead to forums or threads, and the largest elements around each of
them that hold no other one are the rows. Elements whose ids differ in a number, with the most text in them, are the posts. A
guess to begin with: `trawl sites check --live` shows what it is worth.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

import msgspec
from parsel import Selector, SelectorList

if TYPE_CHECKING:
    from scrapy.http import TextResponse

_WITH_NUMBER = re.compile(r"^(.*[/=])([^/=&?#]*\d[^/=&?#]*)([^\d]*)$", re.DOTALL)  # the last part that has a number
_WITH_TITLE = re.compile(r"^(.*/)([A-Za-z]{0,3}\d+/(?![A-Za-z]{0,3}\d+/?$)[^/=&?#]+)(/?)$", re.DOTALL)  # an id, then a title
_NUMBER = re.compile(r"\d+")
_FIRST_NUMBER = re.compile(r"[A-Za-z]{0,3}\d+(?![^/.-])")
_PLAIN_ID = re.compile(r"[A-Za-z]{0,3}\d+")
_NOT_CONTENT = re.compile(
    r"user|member|profile|author|login|register|tag|search|page[=/]|feed|static|media|avatar|\.(?:png|jpe?g|gif|css|js)",
    re.IGNORECASE,
)
_NEXT = re.compile(r"^(?=.*(?:next|right|forward))[A-Za-z_-][\w-]*$", re.IGNORECASE)
_PAGE = re.compile(r"(\b(?:page|pg|p)[=/-]?)2(?!\d)", re.IGNORECASE)
_TO_FORUMS = re.compile(r"forum|categor|board|section|channel|fid=|/[cf]/", re.IGNORECASE)
_TO_THREADS = re.compile(r"topic|thread|discussion|question|post|tid=|/[td]/", re.IGNORECASE)
_TEXTS = 12  # shown of a row
_PEOPLE = re.compile(r"/(?:users?|u|members?|profiles?|author)/", re.IGNORECASE)


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """Links of one make: what stands before and after the part that differs; that part of each; the rows that they are in."""

    before: str
    after: str
    ids: tuple[str, ...]
    urls: tuple[str, ...]
    rows: str | None
    link: str  # a selector of the links

    @property
    def has_slug(self) -> bool:
        """Whether the part that differs is more than an id: a title that may change."""
        return not all(_PLAIN_ID.fullmatch(one) for one in self.ids)

    @property
    def rank(self) -> int:
        """By the words in the address: -1 leads to forums, 1 to threads, 0 to either."""
        return bool(_TO_THREADS.search(self.mark)) - bool(_TO_FORUMS.search(self.mark))

    @property
    def has_slash(self) -> bool:
        """Whether the title is a part of the path by itself."""
        return any("/" in one for one in self.ids)

    @property
    def mark(self) -> str:
        """What stands before it in every such link, also of other forums: behind the last number."""
        return re.sub(r"^.*\d[^/?&=#]*(?=[/?&=#])", "", self.before)

    def id_regex(self, *, whole: bool = False) -> str:
        """The part that differs; unless `whole`, of one with a title the number, which is before it or behind it."""
        if whole or not self.has_slug:
            return re.escape(self.mark) + (r"([^/?&#]+/[^/?&#]+)" if self.has_slash else r"([^/?&#]+)")
        is_first = all(_FIRST_NUMBER.match(one) for one in self.ids)
        return re.escape(self.mark) + (r"([A-Za-z]{0,3}\d+)" if is_first else r"(?:[^/?&#]*[-.])?(\d+)")


class Posts(msgspec.Struct, frozen=True, kw_only=True):
    """The posts of a thread's page: their rows, and within them the text and the author."""

    rows: str
    id: str
    body: str
    author: str | None
    count: int
    opening: str | None  # the opening post, where it is no row


def links_of(response: TextResponse, besides: Links | None = None) -> list[Links]:
    """The links of a page that may lead to forums or threads, those first of which there are most; not such as `besides`."""
    root = Selector(text=response.text, type="html").root
    here = urlsplit(response.url)
    groups: dict[tuple[str, str], dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for link in root.iterfind(".//a[@href]"):
        parts = urlsplit(urljoin(response.url, link.get("href").strip()))
        address = unquote(_address(parts))
        match = _WITH_TITLE.match(address) or _WITH_NUMBER.match(address)
        if parts.netloc != here.netloc or not match or _NOT_CONTENT.search(address) or not "".join(link.itertext()).strip():
            continue
        if besides is None or (match[1], match[3]) != (besides.before, besides.after):
            groups[match[1], match[3]][match[2]].append(link)
    found = [_links(response, root, before, after, by_id) for (before, after), by_id in groups.items()]
    return sorted(found, key=lambda one: -len(one.ids))


def posts_of(response: TextResponse, *others: TextResponse) -> Posts | None:
    """The posts of a thread's page; `others`: pages of other threads, in which no post has an id of this page's."""
    root = Selector(text=response.text, type="html").root
    groups: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for element in root.iterfind(".//*[@id]"):
        if _NUMBER.search(element.get("id")) and not _is_within_another(element):
            groups[element.tag, _NUMBER.sub("N", element.get("id"))].append(element)
    if not groups:
        return None
    rows = max(groups.values(), key=lambda rows: (sum(map(_size, rows)), len(rows)))
    body, selector = _body(max(rows, key=_size)), _selector(root, rows)
    if selector is None or body is None:
        return None
    people = next((found for link in rows[0].iterfind(".//a[@href]") if (found := _PEOPLE.search(link.get("href")))), None)
    alone = [other[0] for other in groups.values() if len(other) == 1 and other is not rows and other[0].tag == rows[0].tag]
    opening = next((one for one in alone if _size(one) > 1), None)
    return Posts(
        rows=selector,
        id=_id(rows, [Selector(text=other.text, type="html").css(selector) for other in others]),
        body=body,
        author=f'a[href*="{people[0]}"]' if people else None,
        count=len(rows),
        opening=None if opening is None else _selector(root, [opening]),
    )


def texts_of(response: TextResponse, rows: str | None, body: str | None = None) -> tuple[tuple[str, str], ...]:
    """Texts within the first of these rows but not in its `body`, and moments in attributes: a selector and what it finds, for
    whoever fills in fields.
    """
    page = Selector(text=response.text, type="html")
    row = next(iter(page.css(rows)), None) if rows else None
    if row is None:
        return ()
    skipped = {inner for one in (row.css(body) if body else ()) for inner in one.root.iter()}
    names = Counter(name for one in page.xpath("//@class").getall() for name in one.split())
    found: dict[str, str] = {}
    for element in row.root.iterdescendants():
        if not isinstance(element.tag, str) or element in skipped:
            continue
        selector = _by_class(element, names) or " > ".join(filter(None, (_by_class(element.getparent(), names), element.tag)))
        own = " ".join("".join(element.xpath("text()")).split())
        shown = {selector: own} | {f"{selector}::attr({key})": element.get(key, "") for key in ("datetime", "title")}
        found |= {key: value for key, value in shown.items() if value and key not in found}
    return tuple(found.items())[:_TEXTS]


def _by_class(element: Any, names: Counter[str]) -> str | None:
    """Its tag and the rarest of its classes."""
    classes = [name for name in (element.get("class") or "").split() if re.fullmatch(r"[A-Za-z_-][\w-]*", name)]
    return f"{element.tag}.{min(classes, key=lambda name: (names[name], -len(name)))}" if classes else None


def second_page(response: TextResponse) -> str | None:
    """The path of this page's second page, with `{page}` for the number, from a link that says 2, or next."""
    for link in Selector(text=response.text, type="html").xpath("//a[@href][normalize-space() = '2' or @rel = 'next']"):
        address = _address(urlsplit(urljoin(response.url, link.attrib["href"].strip())))
        if match := _PAGE.search(address):
            return f"{address[: match.end(1)]}{{page}}{address[match.end() :]}"
    return None


def next_link(response: TextResponse) -> str | None:
    """A selector of the link to the next page: on a first page it leads where the link "2" leads, and says something else."""
    root = Selector(text=response.text, type="html")
    second = root.xpath("//a[normalize-space() = '2']/@href").get()
    for link in root.xpath("//a[@href = $second and normalize-space() != '2']", second=second) if second else ():
        text = " ".join(link.xpath("string()").get("").split())
        classes = link.xpath("./@class | ./*/@class | ./parent::*/@class").getall()
        named = next((name for one in classes for name in one.split() if _NEXT.search(name)), None)
        candidates = ["a[rel~=next]"] + [f"a.{named}", f".{named} > a", f"a:has(> .{named})"] * bool(named)
        candidates += [f"//a[normalize-space() = {text!r}]"] * bool(text and "'" not in text)
        for candidate in candidates:
            found = root.xpath(candidate) if candidate.startswith("/") else root.css(candidate)
            if found and {one.attrib.get("href") for one in found} == {second}:
                return candidate
    return None


def _address(parts: SplitResult) -> str:
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _links(response: TextResponse, root: Any, before: str, after: str, by_id: dict[str, list[Any]]) -> Links:
    rows = []
    for key, links in by_id.items():
        others = {id(link) for other, inner in by_id.items() if other != key for link in inner}
        rows.append(_row(links[0], others))
    urls = tuple(urljoin(response.url, links[0].get("href").strip()) for links in by_id.values())
    found = Links(before=before, after=after, ids=tuple(by_id), urls=urls, rows=None, link="")
    link = _selector(root, [links[0] for links in by_id.values()]) or f'a[href*="{found.mark}"]'
    selector = _selector(root, rows) if len(by_id) > 1 else None
    if selector and len(Selector(root=root, type="html").css(selector)) > len(rows):
        selector += f":has({link})"
    return msgspec.structs.replace(found, rows=selector, link=link)


def _row(link: Any, others: set[int]) -> Any:
    """The largest element around the link without any of the others."""
    row = link
    while (parent := row.getparent()) is not None and not any(id(inner) in others for inner in parent.iter("a")):
        row = parent
    return row


def _selector(root: Any, rows: list[Any]) -> str | None:
    """A CSS selector of these elements: tag and class; with the parent's class where that finds others, too."""
    tag, count = Counter(row.tag for row in rows).most_common(1)[0]
    rows = [row for row in rows if row.tag == tag]
    if count < 0.8 * len(rows):
        return None
    classes = [(row.get("class") or "").split() for row in rows]
    shared = [name for name in classes[0] if all(name in others for others in classes)]
    shared = [name for name in shared if re.fullmatch(r"[A-Za-z_-][\w-]*", name)]
    candidates = [f"{tag}.{name}" for name in (*shared, ".".join(shared)) if name]
    parent = rows[0].getparent()
    for name in (parent.get("class") or "").split() if parent is not None else ():
        if re.fullmatch(r"[A-Za-z_-][\w-]*", name):
            candidates += [f"{parent.tag}.{name} > {candidate}" for candidate in (*candidates, tag)]
    sizes = {candidate: len(Selector(root=root, type="html").css(candidate)) for candidate in candidates}
    fitting = [candidate for candidate in candidates if len(rows) <= sizes[candidate] <= len(rows) * 1.3 + 1]
    return min(fitting, key=sizes.__getitem__, default=None)


def _body(post: Any) -> str | None:
    """Down to where the text is: the innermost element with a class that has most of the post's text."""
    found, node = None, post
    while (child := max(node, key=_size, default=None)) is not None and _size(child) >= 0.6 * _size(post):
        node = child
        name = next((name for name in (node.get("class") or "").split() if re.fullmatch(r"[A-Za-z_-][\w-]*", name)), None)
        if name and isinstance(node.tag, str):
            found = f"{node.tag}.{name}"
    return found


def _id(rows: list[Any], elsewhere: list[SelectorList[Selector]]) -> str:
    """XPath of the attribute with a post's id: that of the element, unless it only numbers the posts of a thread."""
    for name in ("id", *(name for name in rows[0].attrib if name.startswith("data-"))):
        own = [row.get(name) or "" for row in rows]
        is_of_site = not any(value in own for others in elsewhere for value in others.xpath(f"./@{name}").getall())
        if is_of_site and len(set(own)) == len(own) and all(map(_NUMBER.search, own)):
            return f"./@{name}"
    return "./@id"


def _is_within_another(element: Any) -> bool:
    return any(_NUMBER.search(up.get("id") or "") for up in element.iterancestors())


def _size(element: Any) -> int:
    return len("".join(element.itertext()).split()) if isinstance(element.tag, str) else 0
