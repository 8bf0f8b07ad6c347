"""Links to the other pages of a list or a thread."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from parsel import Selector

from forum_reader.definition.selectors import compiled

from .element_selectors import class_selectors
from .link_groups import target_of
from .numbered_paging import numbered_selector

if TYPE_CHECKING:
    from forum_reader.page.response import TextResponse

_PAGE = re.compile(r"(\b(?:page|pg|p)[=/-]?)2(?!\d)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_FORWARD = re.compile(r"[>»›→]|\bnext\b|\bolder\b|\bweiter\b|suivante?|siguiente|следующ|下一|次", re.IGNORECASE)
_LAST = re.compile(r"last\b|letzte|derni[eè]re?|[uú]ltim|последн|末页|末頁|尾页|尾頁|最后|最後", re.IGNORECASE)
_NEXT_NAME = re.compile(r"next|right|forward|older", re.IGNORECASE)


def second_page(response: TextResponse) -> str | None:
    """Return the path of this page's second page, with `{page}` for the number, from a link with the text 2, or with rel=next."""
    for link in Selector(text=response.text, type="html").xpath("//a[@href][normalize-space() = '2' or @rel = 'next']"):
        parts = urlsplit(urljoin(response.url, link.attrib["href"].strip()))
        address = parts.path + (f"?{parts.query}" if parts.query else "")
        if match := _PAGE.search(address):
            return f"{address[: match.end(1)]}{{page}}{address[match.end() :]}"
    return None


def next_selector(root: Any, url: str, following: str | None) -> str | None:
    """Return a selector of the link to `following`, the next page: by its role, its class, its text; by the number of the page
    where none finds just it, or pages have only numbers.
    """
    return (_named_selector(root, url, following) if following is not None else None) or numbered_selector(root, url)


def leads_to(selector: str, root: Any, base: str) -> str | None:
    """Return the address of a selector's first link."""
    href = next((one.get("href") for one in compiled("html", selector)(root)), None)
    return target_of(base, href) if href else None


def _named_selector(root: Any, url: str, following: str) -> str | None:
    page = Selector(root=root, type="html")
    if (wanted := target_of(url, following)) is None:
        return None
    links = [one for one in page.xpath("//a[@href] | //link[@href]") if target_of(url, one.attrib["href"]) == wanted]
    first: str | None = None  # also of the last page, behind it
    for link in sorted(links, key=_is_number_or_last):
        for candidate in _of_link(link):
            found = page.xpath(candidate) if candidate.startswith(("/", "(")) else page.css(candidate)
            targets = [target_of(url, one.attrib.get("href", "")) for one in found]
            if set(targets) == {wanted}:
                return candidate
            if targets[:1] == [wanted] and _NEXT_NAME.search(candidate):
                first = first or candidate
    return first


def _is_number_or_last(link: Selector) -> bool:
    """Return True if a link is to this page only, or to the last page: the second of two pages has several links."""
    text = " ".join(link.xpath("string()").get("").split())
    return text.isdigit() or _LAST.match(text) is not None


def _of_link(link: Selector) -> list[str]:
    element = link.root
    found = [f'{element.tag}[rel~="next"]'] if "next" in (element.get("rel") or "").lower() else []
    inner = next((one for one in element.iterchildren() if isinstance(one.tag, str) and class_selectors(one)), None)
    parent = element.getparent()
    for one, form in ((element, "{}"), (parent, "{} > a"), (inner, "a:has(> {})")):
        named = class_selectors(one) if one is not None else []
        found += [form.format(by_class) for by_class in named if _NEXT_NAME.search(by_class)]
    text = " ".join(link.xpath("string()").get("").split())
    if text and not text.isdigit() and "'" not in text and len(text) < 40:
        found += [f"//a[@href][{_has_text(text)}]"] if _has_text(text) else []
    if title := element.get("title") or element.get("aria-label"):
        name = "title" if element.get("title") else "aria-label"
        if '"' not in title and len(title) < 40:
            found.append(f'a[{name}="{title}"]')
    pictures = (picture.get("alt") or "" for picture in element.iterchildren("img"))
    return found + [f'a:has(> img[alt="{alt}"])' for alt in pictures if alt and '"' not in alt and len(alt) < 40]


def _has_text(text: str) -> str:
    """Return the XPath condition of a link's text; of `Page 2 >>` without the number. Empty where only the number distinguishes
    it.
    """
    words = [word.strip() for word in _NUMBER.split(text)]
    if len(words) == 1:
        return f"normalize-space() = '{text}'"
    if not _FORWARD.search(text):
        return ""
    begins = [f"starts-with(normalize-space(), '{words[0]}')"] if words[0] else []
    return " and ".join(begins + [f"contains(., '{word}')" for word in words[1:] if word])
