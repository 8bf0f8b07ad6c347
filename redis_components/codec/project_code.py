"""The code of a project that a payload may name: methods of its spider, and classes of values in `meta` and the like.

A writer to Redis must not be able to call the methods that run the crawl: `__init__` would overwrite a live spider's attributes.
A method that the user's own classes define may be named, private ones too; of the methods of Scrapy or Trawl, also where the
user overrides them, only those made to receive a response or a failure. Start tasks may name less: `start_tasks/feed.py`.

Items, dataclasses, attrs, and `PageMethod` of scrapy-playwright are stored as the path of their class and their fields, and made
again without calling a method of the class. A class counts only where the crawl's spider has loaded it when it was opened, and
it is of the spider's own package, or imported by name in the spider's modules.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy import Spider

PLUMBING = ("scrapy.", "redis_components.", "builtins")
"""Beginnings of the modules whose classes run the crawl."""

_MADE_FOR_RESPONSES = frozenset(
    {
        *("parse", "_parse"),  # Spider
        *("parse_start_url", "parse_with_rules", "_parse_response", "_callback", "_errback"),  # CrawlSpider
        *("parse_rows", "adapt_response"),  # XMLFeedSpider, CSVFeedSpider
        "_parse_sitemap",  # SitemapSpider
        "set_aside",  # RedisSpider
    }
)


def is_plumbing(cls: type) -> bool:
    """Return True if a class belongs to Scrapy, Trawl or Python."""
    return f"{cls.__module__}.".startswith(PLUMBING)


def callback_of(spider: Spider, name: str) -> Callable[..., Any] | None:
    """Return the method of that name, or None where there is none that a stored request may name."""
    if not isinstance(name, str) or (name.startswith("__") and name.endswith("__")):
        return None
    owners = [base for base in type(spider).__mro__ if name in vars(base)]
    if name not in _MADE_FOR_RESPONSES and any(is_plumbing(base) for base in owners):
        return None
    method = getattr(spider, name, None)
    function = getattr(method, "__func__", None)  # a callback is a method: neither a class nor an object that can be called
    if not callable(method) or function is None:
        return None
    if not owners and str(getattr(function, "__module__", None)).startswith(PLUMBING):  # an attribute of the spider alone
        return None
    return method  # type: ignore[no-any-return]


_PAGE_METHOD = "PageMethod"
_known: dict[str, type] = {}
"""Class by path, of all crawls of this process."""


def learn(spider: type, modules: Iterable[str] = ()) -> None:
    """Let objects of the classes be stored that this spider's crawlers have loaded; `modules`: SPIDER_MODULES."""
    own = [base.__module__ for base in spider.__mro__ if not is_plumbing(base)]
    packages = {name.partition(".")[0] for name in (*own, *modules)}
    found = [list(vars(sys.modules[name]).values()) for name in own if name in sys.modules]
    found += [list(vars(base).values()) for base in spider.__mro__ if not is_plumbing(base)]
    loaded = [module for name, module in list(sys.modules.items()) if module and name.partition(".")[0] in packages]
    found += [list(vars(module).values()) for module in loaded]
    for one in (one for values in found for one in values):
        if isinstance(one, type) and not is_plumbing(one) and _has_fields(one):
            _known[_path(one)] = one


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _is_item(cls: type) -> bool:
    return any(base.__module__ == "scrapy.item" and base.__qualname__ == "Item" for base in cls.__mro__)


def _has_fields(cls: type) -> bool:
    if _is_item(cls):
        return True
    has = dataclasses.is_dataclass(cls) or hasattr(cls, "__attrs_attrs__") or cls.__name__ == _PAGE_METHOD
    return has and getattr(cls, "__new__") is object.__new__  # noqa: B009 - not a dictionary or the like as well


def _declared(cls: Any) -> dict[str, None]:
    """Return the names of the fields of a dataclass or a class of attrs, in their order."""
    return dict.fromkeys(one.name for one in getattr(cls, "__attrs_attrs__", None) or dataclasses.fields(cls))


def is_storable(cls: type) -> bool:
    """Return True for a class whose objects may be stored."""
    return _known.get(_path(cls)) is cls


def fields_of(value: Any) -> list[Any]:
    """Return path and fields of an object. Raises ValueError for one with more than its fields, or less."""
    cls = type(value)
    if _is_item(cls):
        return [_path(cls), value._values]
    state = dict(getattr(value, "__dict__", {}))
    if cls.__name__ != _PAGE_METHOD:
        names = _declared(cls)
        if more := state.keys() - names.keys():
            raise ValueError(f"{_path(cls)} with the attribute {min(more)!r}, which is not a field")
        try:
            state = {name: getattr(value, name) for name in names}
        except AttributeError as exc:
            raise ValueError(f"{_path(cls)}: {exc}") from None
    return [_path(cls), state]


def made(stored: list[Any]) -> Any:
    """Return the object of a path and fields. In a process without a crawl, as for `trawl dead`, a dictionary of them. Raises
    ValueError for a class that may not be stored.
    """
    path, state = stored
    if not isinstance(path, str) or type(state) is not dict:
        raise ValueError("an object without path and fields")
    cls = _known.get(path)
    if cls is None:
        if not _known:
            return {"class": path, **state}
        raise ValueError(f"class {path!r:.200} is not among those that the spider has loaded")
    value: Any = getattr(cls, "__new__")(cls)  # noqa: B009 - of an Item its own, which calls nothing of the user's
    if _is_item(cls):
        if unknown := state.keys() - cls.fields.keys():  # type: ignore[attr-defined]  # an Item has them
            raise ValueError(f"{path} has no field {min(unknown)!r}")
        object.__setattr__(value, "_values", state)
        return value
    if cls.__name__ != _PAGE_METHOD and state.keys() != _declared(cls).keys():
        raise ValueError(f"{path} has other fields")
    for name, one in state.items():
        object.__setattr__(value, name, one)
    return value
