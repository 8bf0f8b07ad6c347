"""Forums found by addresses, for software without an index that lists them all: mail archives, tags, boards by their path.

The part of an address that is a forum's id is defined by the profile (`[recognise] forum`), or by the address of its list pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import regex
from lxml import etree

from forum_reader.reading.read_page import ListedForum

MOST = 500
"""Forums taken from one page."""
_LONGEST = 2000  # characters of an address that are read
_LONGEST_ID = 200
_MOST_S = 0.1  # for one address
_PLACE = re.compile(r"\{forum(:path)?\}")


def addressed_forums(
    profile: Mapping[str, Any], base_url: str, page_url: str, root: etree._Element | None
) -> tuple[ListedForum, ...]:
    """Return the forum in the page's own address; else the forums in its links' addresses, with the links' texts: of a thread's
    page the first one, which stands above the posts. `profile`: its table; `root`: the page's tree. Empty where no address has
    one.
    """
    pattern = _forum_pattern(profile)
    if pattern is None:
        return ()
    if own := _forum_of(page_url, base_url, pattern):
        return (ListedForum(id=own, name=own),)
    found: dict[str, ListedForum] = {}
    for url, text in _links(page_url, root):
        forum = _forum_of(url, base_url, pattern)
        if forum and forum not in found:
            found[forum] = ListedForum(id=forum, name=text or forum)
        if len(found) >= (1 if _is_thread(profile, base_url, page_url) else MOST):
            break
    return tuple(found.values())


def _forum_pattern(profile: Mapping[str, Any]) -> regex.Pattern[str] | None:
    """Return a pattern of the forum in an address behind `base_url`; None where nothing distinguishes forums from other pages."""
    if pattern := profile.get("recognise", {}).get("forum"):
        return regex.compile(pattern)
    listed = profile.get("pages", {}).get("list", {})
    template = str(listed.get("first_url") or listed.get("url") or "")
    place = _PLACE.search(template)
    if place is None or not re.search("[a-z]", template[: place.start()]):
        return None  # the pattern would match any address
    before = regex.escape(template[: place.start()])
    if place[1] is None:
        return regex.compile(f"{before}([^/?#&]+)")
    after = regex.escape(re.split(r"[?{]", template[place.end() :])[0].rstrip("/"))
    return regex.compile(f"{before}([^?#]+?)(?:{after})?/?(?:[?#]|$)")


def _is_thread(profile: Mapping[str, Any], base_url: str, url: str) -> bool:
    """Return True if an address is a thread's, by the text before `{thread}` in the profile's addresses."""
    template = str(profile.get("pages", {}).get("comments", {}).get("url", ""))
    before = template.partition("{thread}")[0]
    return bool(re.search("[a-z]", before)) and "{" not in before and (_below(url, base_url) or "").startswith(before)


def _forum_of(url: str, base_url: str, pattern: regex.Pattern[str]) -> str | None:
    address = _below(url, base_url)
    if address is None:
        return None
    try:
        match = pattern.match(address, timeout=_MOST_S)
    except TimeoutError:
        return None
    forum = unquote(match[1]).strip("/") if match else ""
    return forum if 0 < len(forum) <= _LONGEST_ID and not re.search(r"\s", forum) and forum.isprintable() else None


def _below(url: str, base_url: str) -> str | None:
    """Return the part of an address behind the forum's root; None for an address elsewhere."""
    base, here = urlsplit(base_url), urlsplit(urldefrag(url).url[:_LONGEST])
    root = base.path.rstrip("/")
    if (here.netloc, here.scheme) != (base.netloc, base.scheme) or not here.path.startswith(f"{root}/"):
        return None
    return here.path[len(root) :] + (f"?{here.query}" if here.query else "")


def _links(page_url: str, root: etree._Element | None) -> Iterator[tuple[str, str]]:
    for link in root.iter("a") if root is not None else ():
        if href := link.get("href"):
            try:
                yield urljoin(page_url, href.strip()), " ".join("".join(map(str, link.itertext())).split())[:_LONGEST_ID]
            except ValueError:
                continue  # `http://[`
