"""Pages linked only by numbers: the next page is the link whose number follows that of the page itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

from forum_reader.definition.selectors import compiled
from forum_reader.page.page_kind import is_same_thing

from .element_selectors import NAME

_NUMBER = re.compile(r"^[\[(]?\s*(\d{1,4})\s*[\])]?$")
_ABOVE = 4  # levels above a link that are searched for the others
_MOST_LINKS = 60  # links that are tried
_SHOWN = "number(translate(normalize-space(text()), '[]()', ''))"

_BEFORE = "preceding-sibling::node()[1][self::text()]"
_BEHIND = f"//a[@href][number(.) = number(translate({_BEFORE}, translate({_BEFORE}, '0123456789', ''), '')) + 1]"


def numbered_selector(root: Any, url: str, step: int = 1) -> str | None:
    """Return an XPath of the link to the next page; None where no link has the number after this page's, or this page's number
    is unknown. `step` -1: the link to the page before, on a page with the highest number.
    """
    tried = 0
    for link in root.iter("a"):
        number = _number(link)
        if number is None or not _leads_on(link, url):
            continue
        tried += 1
        if tried > _MOST_LINKS:
            break
        for around in _above(link):
            here = _own(around, url)
            if here is None or _number(here) != number - step or (step < 0 and _is_exceeded(around, here)):
                continue
            if found := _selector(root, around, here, link, step):
                return found
    return _behind_text(root, url) if step > 0 else None


def _behind_text(root: Any, url: str) -> str | None:
    """Return an XPath for pagers whose numbers have no marks (`Pages: [1] <a>2</a> <a>3</a>`): the link right behind its
    predecessor.
    """
    links = compiled("html", _BEHIND)(root)
    targets = {_target(one, url) for one in links if _leads_on(one, url)}
    return _BEHIND if links and len(targets) == 1 and all(_leads_on(one, url) for one in links) else None


def _number(element: Any) -> int | None:
    """Return the number in the element's own text."""
    match = _NUMBER.match(element.text.strip()) if isinstance(element.tag, str) and element.text else None
    return int(match[1]) if match else None


def _leads_on(link: Any, url: str) -> bool:
    """Return True if the link may lead to a page of the same list or thread."""
    target = _target(link, url)
    if target is None or target == urldefrag(url).url:
        return False
    parts, here = urlsplit(target), urlsplit(url)
    return parts.netloc == here.netloc and is_same_thing(parts.path, here.path)


def _target(link: Any, url: str) -> str | None:
    href = (link.get("href") or "").strip()
    if not href or href.startswith(("#", "javascript:")):
        return None
    try:
        target = str(urldefrag(urljoin(url, href)).url)
        urlsplit(target)
    except ValueError:
        return None
    return target


def _above(link: Any) -> Iterator[Any]:
    level = link
    for _ in range(_ABOVE):
        level = level.getparent()
        if level is None or level.tag in ("body", "html"):
            return
        yield level


def _own(around: Any, url: str) -> Any:
    """Return this page's number in a pager: the one without a link, with a link to the page, or with another class."""
    numbers = [one for one in around.iterdescendants() if _number(one) is not None]
    if not 2 <= len(numbers) <= 40:
        return None
    plain = [one for one in numbers if one.tag != "a" or _target(one, url) is None]
    if not plain:
        plain = [one for one in numbers if _target(one, url) == urldefrag(url).url]
    if not plain:
        classes = Counter(one.get("class") for one in numbers)
        plain = [one for one in numbers if len(numbers) > 2 and one.get("class") and classes[one.get("class")] == 1]
    return plain[0] if len(plain) == 1 else None


def _is_exceeded(around: Any, here: Any) -> bool:
    """Return True if a pager has a higher number."""
    return any((_number(one) or 0) > (_number(here) or 0) for one in around.iterdescendants())


def _selector(root: Any, around: Any, here: Any, link: Any, step: int) -> str | None:
    change = "+ 1" if step > 0 else "- 1"
    for scope in _scopes(around):
        for own in _of_page(scope, here):
            shown = f"number(translate(normalize-space(({own})[1]/text()), '[]()', ''))"
            found = f"({scope}//a[@href][{_SHOWN} = {shown} {change}])[1]"
            if _first(root, f"({own})[1]") is here and _number(_first(root, found)) == _number(link):
                return found
    return None


def _first(root: Any, selector: str) -> Any:
    found = compiled("html", selector)(root)
    return found[0] if found else None


def _scopes(around: Any) -> Iterator[str]:
    """Yield XPaths of the pager, or of its ancestors."""
    level: Any = around
    for _ in range(3):
        if level is None or level.tag == "body":
            return
        yield from (f"//{level.tag}[{_has_class(name)}]" for name in _classes(level))
        if NAME.match(level.get("id") or ""):
            yield f"//{level.tag}[@id='{level.get('id')}']"
        level = level.getparent()


def _of_page(scope: str, here: Any) -> Iterator[str]:
    yield from (f"{scope}//{here.tag}[{_has_class(name)}]" for name in _classes(here))
    parent = here.getparent()
    yield from (f"{scope}//{parent.tag}[{_has_class(name)}]/{here.tag}" for name in _classes(parent))
    yield f"{scope}//{here.tag}[{_SHOWN} > 0]" if here.tag != "a" else f"{scope}//a[not(@href)][{_SHOWN} > 0]"


def _classes(element: Any) -> list[str]:
    return [name for name in (element.get("class") or "").split() if NAME.match(name)]


def _has_class(name: str) -> str:
    return f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')"
