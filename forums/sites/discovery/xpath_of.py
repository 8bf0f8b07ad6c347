"""Site file selectors as XPath, for conditions that CSS lacks: the first, the last, the text of several."""

from __future__ import annotations

import re

from forums.sites.definition.selectors import is_xpath

_ATTRIBUTE = re.compile(r"(.+)::attr\(([\w-]+)\)$", re.DOTALL)


def xpath_of(selector: str, prefix: str) -> str:
    """Return the selector as XPath; CSS gets `prefix` (`//`, `descendant::`) before it."""
    attribute = _ATTRIBUTE.match(selector)
    path, end = (attribute[1], f"/@{attribute[2]}") if attribute else (selector, "")
    if is_xpath(path):
        return path + end
    from cssselect import HTMLTranslator

    return HTMLTranslator().css_to_xpath(path, prefix=prefix) + end
