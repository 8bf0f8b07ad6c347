"""Exact msgpack: each value is returned as it was stored, or refused with the name of its field.

Plain msgpack silently turns tuples and sets into lists and refuses or changes dates, decimals and the like. Here every value
either comes back with the same type and content, or `Unserializable` names the field and the value. A payload starts with one
byte, the codec's version.

The code of a project that a payload may name: methods of its spider, and classes of values in `meta` and the like.

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
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from redis_components.errors import Undecodable, Unserializable

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
    for one in {id(one): one for values in found for one in values if isinstance(one, type)}.values():  # most modules share them
        if not is_plumbing(one) and _has_fields(one):
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


VERSION = 1
_PREFIX = bytes([VERSION])
_NEWEST_IMAGINABLE = 8  # below any byte with which text or another common format begins
_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
_TEXT = frozenset({str})
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1

_encode = msgspec.msgpack.Encoder().encode


# code -> (type, to something plain, the type of that, back). Codes are part of the stored format: never reuse one. Nothing is
# made of a value of another type: a `bytearray` of a number would be as large as the number, an `int` of a decimal takes minutes.
_TYPES: dict[int, tuple[type, Callable[[Any], Any], type, Callable[[Any], Any]]] = {
    1: (tuple, list, list, tuple),
    2: (set, list, list, set),
    3: (frozenset, list, list, frozenset),
    4: (datetime, lambda v: [v.isoformat(), v.fold], list, lambda v: datetime.fromisoformat(v[0]).replace(fold=v[1])),
    5: (date, date.isoformat, str, date.fromisoformat),
    6: (timedelta, lambda v: [v.days, v.seconds, v.microseconds], list, lambda v: timedelta(*v)),
    7: (Decimal, str, str, Decimal),
    8: (UUID, lambda v: v.bytes, bytes, lambda v: UUID(bytes=v)),
    9: (bytearray, bytes, bytes, bytearray),
    10: (int, str, str, int),  # beyond 64 bits
    11: (dict, lambda v: [list(pair) for pair in v.items()], list, dict),  # keys that are not all text
    12: (time, lambda v: [v.isoformat(), v.fold], list, lambda v: time.fromisoformat(v[0]).replace(fold=v[1])),
}
_CODES = {kind: code for code, (kind, *_) in _TYPES.items()}
_OBJECT = 13
_BACK = {code: (plain, back) for code, (_, _, plain, back) in _TYPES.items()} | {_OBJECT: (list, made)}

_FREE = 64
"""Tagged values of a payload, and values of one hash, that are not looked at."""
_met: list[Any] = []  # the tagged values of the payload that is being read
_by_hash: dict[int, tuple[Any, int]] = {}  # of those beyond the free ones: the first of each hash, and how many others had it


def ext_hook(code: int, data: memoryview) -> Any:
    """Return the value that a tag stands for, for a decoder of msgspec. Raises Undecodable, and other errors for malformed
    values.
    """
    try:
        plain, back = _BACK[code]
    except KeyError:
        raise Undecodable(f"unknown type code {code} in a payload: written by a newer Trawl?") from None
    stored = _decode(data)
    if type(stored) is not plain:
        raise Undecodable(f"payload is corrupt: type code {code} holds {type(stored).__name__}, not {plain.__name__}")
    value = back(stored)
    _met.append(value)
    if len(_met) > _FREE:
        _check_hash(value)
    return value


def _check_hash(value: Any) -> None:
    """Refuse values that were chosen to have one hash: a dictionary or set of them takes the square of their number."""
    try:
        number = hash(value)
    except TypeError:
        return
    first, others = _by_hash.setdefault(number, (value, 0))
    if first != value:
        if others >= _FREE:
            raise Undecodable(f"payload is corrupt: more than {_FREE} different values in it have one hash")
        _by_hash[number] = first, others + 1


_decode = msgspec.msgpack.Decoder(ext_hook=ext_hook).decode


def exact(value: Any, path: str) -> Any:
    """Return `value` itself where it is plain throughout, else a copy in which every non-plain value is tagged.

    Raises Unserializable, which begins with `path` and the way from there, for a value that cannot be stored exactly.
    """
    try:
        return _exact(value)
    except _Refused as refusal:
        raise Unserializable(f"{path}{refusal.where}: cannot store {refusal.what}") from None


class _Refused(Exception):
    """A value that cannot be stored, and its place, which is put together on the way up, so that it costs nothing otherwise."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = ""


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return kind in _PLAIN and (kind is not int or _INT64_MIN <= value <= _UINT64_MAX)


def _exact(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        if _TEXT.issuperset(map(type, value)):  # a generator takes twice as long
            return value if all(map(_is_plain, value.values())) else {key: _inner(item, key) for key, item in value.items()}
        return _tagged(value)
    if kind is list:
        return value if all(map(_is_plain, value)) else [_inner(item, place) for place, item in enumerate(value)]
    if kind.__module__ == "lxml.etree" and isinstance(value, str):  # text of a link, as CrawlSpider has it in `link_text`
        return str(value)
    return value if _is_plain(value) else _tagged(value)


def _inner(value: Any, key: object) -> Any:
    try:
        return _exact(value)
    except _Refused as refusal:
        refusal.where = f"[{key!r}]{refusal.where}"
        raise


def _tagged(value: Any) -> msgspec.msgpack.Ext:
    kind = type(value)
    code, plain = _CODES.get(kind), None
    if code is None and is_storable(kind):
        code, plain = _OBJECT, fields_of
    zone = getattr(value, "tzinfo", None)
    if code is None or (zone is not None and type(zone) is not timezone):
        what = f"{kind.__module__}.{kind.__qualname__}" if code is None else f"{kind.__name__} in time zone {zone!r}"
        raise _Refused(
            f"{what} exactly; use plain values, an Item or a dataclass of the project, or"
            " SCHEDULER_SERIALIZER = redis_components.picklecompat"
        )
    try:
        return msgspec.msgpack.Ext(code, _encode(_exact((plain or _TYPES[code][1])(value))))
    except (ValueError, OverflowError, RecursionError) as exc:  # lone surrogates, depth
        raise _Refused(f"it: {exc}") from exc


def dumps(fields: dict[str, Any]) -> bytes:
    """Return a payload of `fields`, which holds plain values or results of `exact`. Raises Unserializable for text that is not
    Unicode.
    """
    try:
        return _PREFIX + _encode(fields)
    except (TypeError, ValueError, OverflowError, RecursionError) as exc:  # lone surrogates, depth
        raise Unserializable(f"{_culprit(fields)}: cannot store it: {exc}") from exc


def _culprit(fields: dict[str, Any]) -> str:
    """Return the first field that cannot be encoded; called only after an error."""
    for name, value in fields.items():
        try:
            _encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return name
    return "request"


def is_ours(payload: bytes) -> bool:
    """Return True if the first byte of a payload is that of this codec."""
    return payload[:1] == _PREFIX


def _whose(payload: bytes) -> str:
    """Return the likely origin of a foreign payload, and the fix."""
    first = payload[:1]
    if not first:
        return "payload is empty"
    if first == b"\x80":
        return (
            "payload is a pickle, and pickles are not read, since they can run code; crawlers of this queue have another"
            " SCHEDULER_SERIALIZER: give all of them the same, then replay"
        )
    if first[0] <= _NEWEST_IMAGINABLE:
        age = "an older" if first[0] < VERSION else "a newer"
        return f"payload has codec version {first[0]}, this process knows {VERSION}: written by {age} Trawl"
    return (
        f"payload starts with {payload[:20]!r}, not with codec version {VERSION}: foreign, or written with another"
        " SCHEDULER_SERIALIZER"
    )


def loads(payload: bytes, decode: Callable[[memoryview], Any] = _decode) -> Any:
    """Return the fields of a payload, a dictionary; with another decoder of msgspec (its `ext_hook` is the one here) its result.

    Raises Undecodable with the reason for every other payload: also for one that is nested too deeply, or too large.
    """
    if payload[:1] != _PREFIX:
        raise Undecodable(_whose(payload))
    if _met:
        _met.clear()
        _by_hash.clear()
    try:
        fields = decode(memoryview(payload)[1:])
    except Undecodable:
        raise
    except Exception as exc:  # what foreign values make a constructor raise, RecursionError and MemoryError among it
        raise Undecodable(f"payload is corrupt: {str(exc) or type(exc).__name__}") from exc
    if decode is _decode and type(fields) is not dict:
        raise Undecodable(f"payload holds {type(fields).__name__}, not the fields of a request")
    return fields
