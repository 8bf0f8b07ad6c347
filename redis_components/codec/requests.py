"""Scrapy requests to payloads and back, exactly; only what differs from a plain GET is written.

`StoredRequest` has the fields and their types, as they lie in Redis, before they become a request. `Request.to_dict` costs 26 µs
because it looks through the whole spider for each callback; here a callback is looked up once.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Protocol

import msgspec
import scrapy.http
from scrapy import Request, Spider
from scrapy.http.headers import Headers
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.misc import load_object
from scrapy.utils.python import to_bytes
from scrapy.utils.request import request_from_dict

from redis_components.errors import ConfigError, Undecodable, Unserializable

from . import values
from . import values as codec
from .values import callback_of, learn


class StoredRequest(msgspec.Struct, kw_only=True, gc=False):
    """The content of a payload: the URL and all that differs from a plain GET. The letters are part of the stored format
    (docs/decisions/0062-stored-forms.md).

    msgspec checks the types while it reads. `Any` fields may hold tagged values (`values.py`), which `check` checks.
    """

    u: str  # URL
    c: str | None = None  # callback
    e: str | None = None  # errback
    m: str = "GET"  # method
    h: list[list[bytes]] | None = None  # headers: name and values of each
    b: bytes = b""  # body
    k: Any = None  # cookies
    t: Any = None  # meta
    w: Any = None  # cb_kwargs
    p: Any = 0  # priority
    d: bool = False  # dont_filter
    f: list[Any] | None = None  # flags
    n: str = "utf-8"  # encoding
    cls: str | None = msgspec.field(name="_", default=None)  # path of the class, where it is not Request
    x: dict[str, Any] | None = None  # further attributes of that class


# letter -> constructor argument of Request, and its default
ARGUMENTS: dict[str, tuple[str, Any]] = {
    "m": ("method", "GET"),
    "b": ("body", b""),
    "k": ("cookies", None),
    "t": ("meta", None),
    "w": ("cb_kwargs", None),
    "p": ("priority", 0),
    "d": ("dont_filter", False),
    "f": ("flags", None),
    "n": ("encoding", "utf-8"),
}
MAPPING = (dict, type(None))

_decode = msgspec.msgpack.Decoder(StoredRequest, ext_hook=values.ext_hook).decode


def read(payload: bytes) -> StoredRequest:
    """Return the content of a payload. Raises Undecodable; meta, cookies and the like are left to `check`."""
    stored: StoredRequest = values.loads(payload, _decode)
    return stored


def check(stored: StoredRequest) -> None:
    """Raise Undecodable for values of a kind that the reader could not check: they may be tagged."""
    if type(stored.p) is not int:
        raise _unfit("priority", stored.p)
    for name, value in (("meta", stored.t), ("cb_kwargs", stored.w)):
        if type(value) not in MAPPING:
            raise _unfit(name, value)
    cookies = stored.k
    if type(cookies) not in MAPPING and (type(cookies) is not list or any(type(one) is not dict for one in cookies)):
        raise _unfit("cookies", cookies)
    if not is_encoding(stored.n):
        raise Undecodable(f"payload does not make a request: {stored.n!r:.60} is not an encoding of text")


def _unfit(name: str, value: object) -> Undecodable:
    return Undecodable(f"payload does not make a request: {name} of the type {type(value).__name__}")


@lru_cache(maxsize=64)
def is_encoding(name: str) -> bool:
    """Return True if text can be written in this encoding: Python also knows codecs such as `zlib`."""
    try:
        "".encode(name)
    except (LookupError, ValueError):
        return False
    return True


_BUILT_IN = {
    f"{cls.__module__}.{cls.__qualname__}": cls
    for cls in (scrapy.http.Request, scrapy.http.FormRequest, scrapy.http.JsonRequest, scrapy.http.XmlRpcRequest)
}
_NO_CALLBACK = "NO_CALLBACK"


class Codec(Protocol):
    """Requests of one spider to payloads and back."""

    def encode(self, request: Request) -> bytes:
        """Return the payload of `request`. Raises Unserializable naming the field at fault."""

    def decode(self, payload: bytes) -> Request:
        """Return the request of `payload`. Raises Undecodable with the reason."""


class Serializer(Protocol):
    """The object or module of `SCHEDULER_SERIALIZER`."""

    def dumps(self, obj: dict[str, Any], /) -> bytes | str:
        """Return a payload of `request.to_dict()`."""

    def loads(self, payload: bytes, /) -> dict[str, Any]:
        """Return the dictionary of a payload."""


def request_codec(spider: Spider, serializer: Serializer | None, allowed: Iterable[str | type[Request]] = ()) -> Codec:
    """Return the exact codec, or one on the user's own serializer. Raises ConfigError for classes that cannot be loaded."""
    exact = RequestCodec(spider, allowed)
    return exact if serializer is None else SerializerCodec(spider, serializer, exact)


class RequestCodec:
    """Encodes and decodes the requests of one spider.

    `allowed` are request classes, in addition to Scrapy's, that may be stored, as classes or dotted paths; any other class is
    refused on both ways, since a payload must not be able to name code.
    """

    def __init__(self, spider: Spider, allowed: Iterable[str | type[Request]] = ()) -> None:
        self._spider = spider
        settings = getattr(spider, "settings", None)
        learn(type(spider), settings.getlist("SPIDER_MODULES") if settings else ())
        self._names: dict[object, str] = {}
        # By the names that a request may have. Kept: Scrapy parses the source of a callback again, for a millisecond, when the
        # equal one that it saw first is gone.
        self._callbacks: dict[str, Callable[..., Any]] = {}
        self._classes: dict[str, type[Request]] = dict(_BUILT_IN)
        for entry in allowed:
            try:
                cls = load_object(entry)
            except Exception as exc:  # the user's module may raise anything while it is imported
                raise ConfigError(f"SCHEDULER_REQUEST_CLASSES: {entry!r} cannot be loaded: {type(exc).__name__}: {exc}") from exc
            self._classes[f"{cls.__module__}.{cls.__qualname__}"] = cls

    def encode(self, request: Request) -> bytes:
        """Return the payload of `request`. Raises Unserializable naming the field at fault."""
        fields: dict[str, Any] = {"u": request.url}
        if request.callback is not None:
            fields["c"] = self._name(request.callback, "callback")
        if request.errback is not None:
            fields["e"] = self._name(request.errback, "errback")
        if request.method != "GET":
            fields["m"] = request.method
        if request._headers:
            fields["h"] = [[name, *values] for name, values in dict.items(request._headers)]
        if request.body:
            fields["b"] = request.body
        if request._cookies:
            fields["k"] = codec.exact(request._cookies, "cookies")
        if request._meta:
            fields["t"] = codec.exact(request._meta, "meta")
        if request._cb_kwargs:
            fields["w"] = codec.exact(request._cb_kwargs, "cb_kwargs")
        if request.priority:
            fields["p"] = codec.exact(int(request.priority), "priority")
        if request.dont_filter:
            fields["d"] = True
        if request._flags:
            fields["f"] = codec.exact(request._flags, "flags")
        if request.encoding != "utf-8":
            fields["n"] = request.encoding
        if type(request) is not Request:
            self._add_class(request, fields)
        return codec.dumps(fields)

    def _add_class(self, request: Request, fields: dict[str, Any]) -> None:
        cls = type(request)
        path = f"{cls.__module__}.{cls.__qualname__}"
        if self._classes.get(path) is not cls:
            raise Unserializable(
                f"class: {path} is not among the request classes that may be stored; add it to SCHEDULER_REQUEST_CLASSES"
            )
        fields["_"] = path
        extra = {name: codec.exact(getattr(request, name), name) for name in cls.attributes if name not in Request.attributes}
        if extra:
            fields["x"] = extra

    def _name(self, method: Callable[..., Any], role: str) -> str:
        if method is NO_CALLBACK:
            return _NO_CALLBACK
        function = getattr(method, "__func__", None)  # two bound methods of one function are two objects
        name = self._names.get(function)
        if name is None:
            name = getattr(function, "__name__", "")
            if function is None or getattr(getattr(self._spider, name, None), "__func__", None) is not function:
                raise Unserializable(f"{role}: {method!r} is not a method of spider {self._spider.name!r}; make it one")
            if callback_of(self._spider, name) is None:
                raise Unserializable(f"{role}: {name!r} runs the crawl and is not made for responses; name another method")
            self._names[function] = name
        return name

    def decode(self, payload: bytes) -> Request:
        """Return the request of `payload`. Raises Undecodable with the reason."""
        stored = read(payload)
        if stored.cls is not None:
            return self._of_class(stored, stored.cls)
        url, meta, cb_kwargs, priority = stored.u, stored.t, stored.w, stored.p
        if "://" not in url and not url.startswith(("about:", "data:")):
            raise Undecodable(f"payload does not make a request: Missing scheme in request url: {url}")
        if type(priority) is not int or type(meta) not in MAPPING or type(cb_kwargs) not in MAPPING:
            check(stored)
        # Built without its constructor, which takes 5 µs: URL, method and headers were brought into their form when it was first
        # made. A unit test compares all fields of many requests with the constructor's.
        request = Request.__new__(Request)
        request._encoding = encoding = stored.n
        request._url = url
        request.method = stored.m
        request._meta = meta
        request._body = stored.b
        request._cookies = cookies = stored.k
        request._cb_kwargs = cb_kwargs
        request._flags = stored.f
        request.priority = priority
        request.dont_filter = stored.d
        request.callback = None if stored.c is None else self._method(stored.c, "callback")
        request.errback = None if stored.e is None else self._method(stored.e, "errback")
        request._headers = None
        if cookies is not None or encoding != "utf-8":
            check(stored)
        if stored.h is not None:
            request._headers = Headers(encoding=encoding)
            try:
                for name, *values in stored.h:
                    dict.__setitem__(request._headers, name, values)
            except ValueError:
                raise Undecodable("payload does not make a request: a header has no name") from None
        return request

    def _of_class(self, stored: StoredRequest, path: str) -> Request:
        """Make a request of another class, by its constructor."""
        cls = self.allowed_class(path)
        check(stored)
        arguments = dict(stored.x or ())
        if unknown := arguments.keys() - (set(cls.attributes) - set(Request.attributes)):
            raise Undecodable(f"payload does not make a request: {path} has no attribute {min(unknown)!r}")
        arguments["callback"] = None if stored.c is None else self._method(stored.c, "callback")
        arguments["errback"] = None if stored.e is None else self._method(stored.e, "errback")
        if stored.h is not None:
            arguments["headers"] = [(entry[0], entry[1:]) for entry in stored.h if entry]
        for letter, (name, default) in ARGUMENTS.items():  # only stored fields: a class may have other defaults than Request
            if (value := getattr(stored, letter)) != default:
                arguments[name] = value
        try:
            return cls(stored.u, **arguments)
        except Exception as exc:  # a foreign payload may make a constructor raise anything
            raise Undecodable(f"payload does not make a request: {exc}") from exc

    def allowed_class(self, path: str) -> type[Request]:
        """Return the request class of that path. Raises Undecodable for one that is not allowed."""
        try:
            return self._classes[path]
        except KeyError:
            raise Undecodable(f"request class {path!r} is not allowed; add it to SCHEDULER_REQUEST_CLASSES") from None

    def _method(self, name: str, role: str) -> Callable[..., Any]:
        if known := self._callbacks.get(name):
            method: Callable[..., Any] = getattr(self._spider, name)
            return known if method == known else method
        if name == _NO_CALLBACK:
            return NO_CALLBACK
        self._callbacks[name] = method = _callback(self._spider, name, role)
        return method


def _callback(spider: Spider, name: str, role: str) -> Callable[..., Any]:
    method = callback_of(spider, name)
    if method is None:
        end = " that a request may name" if isinstance(name, str) and hasattr(spider, name) else "; was it renamed by a deploy?"
        raise Undecodable(f"{role}: spider {spider.name!r} has no method {name!r}{end}")
    return method


class ExactFields:
    """The serializer where none is named: dictionaries of plain and tagged values, exactly, and never a pickle."""

    def dumps(self, obj: dict[str, Any], /) -> bytes:
        """Return a payload of `obj`. Raises Unserializable."""
        return codec.dumps({name: codec.exact(value, name) for name, value in obj.items()})

    def loads(self, payload: bytes, /) -> dict[str, Any]:
        """Return the dictionary of a payload. Raises Undecodable."""
        fields: dict[str, Any] = codec.loads(payload)
        return fields


exact_fields = ExactFields()


class SerializerCodec:
    """Requests as `Request.to_dict` gives them, through a serializer of the user's choice.

    A payload that the serializer does not read, but the exact codec does, was written before the serializer was chosen, or by a
    crawler that has not been deployed again: it is read all the same. `exact` None: any request class may be stored, and old
    payloads are not read.
    """

    def __init__(self, spider: Spider, serializer: Serializer, exact: RequestCodec | None = None) -> None:
        for name in ("loads", "dumps"):
            if not callable(getattr(serializer, name, None)):
                raise ConfigError(f"SCHEDULER_SERIALIZER: {serializer!r} has no function {name!r}")
        self._spider = spider
        self._serializer = serializer
        self._exact = exact

    def encode(self, request: Request) -> bytes:
        """Return the payload of `request`. Raises Unserializable if `to_dict` or the serializer refuses it."""
        try:
            fields = request.to_dict(spider=self._spider)
            if self._exact is None:
                return self._serializer.dumps(fields)  # type: ignore[return-value]  # used alone, what it stores is its own affair
            if "_class" in fields:
                self._exact.allowed_class(fields["_class"])
            return to_bytes(self._serializer.dumps(fields))
        except Undecodable as exc:
            raise Unserializable(f"class: {exc}") from exc
        except Exception as exc:  # a user's serializer may raise anything
            raise Unserializable(f"request: cannot serialize it: {type(exc).__name__}: {exc}") from exc

    def decode(self, payload: bytes) -> Request:
        """Return the request of `payload`. Raises Undecodable with the reason."""
        try:
            fields = self._serializer.loads(payload)
            if not isinstance(fields, dict):
                raise TypeError(f"it made {type(fields).__name__}, not the fields of a request")
        except Exception as exc:  # a user's serializer may raise anything
            if self._exact is not None and codec.is_ours(payload):
                return self._exact.decode(payload)
            raise Undecodable(
                f"SCHEDULER_SERIALIZER cannot read the payload {reprlib.repr(payload)}: {type(exc).__name__}: {exc}"
            ) from exc
        if self._exact is not None and "_class" in fields:
            self._exact.allowed_class(fields["_class"])
        for role in ("callback", "errback"):
            if fields.get(role):
                _callback(self._spider, fields[role], role)
        try:
            return _checked(request_from_dict(fields, spider=self._spider))
        except Exception as exc:  # a foreign payload can make a constructor raise anything
            raise Undecodable(f"payload does not make a request: {type(exc).__name__}: {exc}") from exc


def _checked(request: Request) -> Request:
    """Return `request` if the arguments that its constructor does not check are valid. Raises TypeError or LookupError."""
    for name, kinds in (("_meta", dict), ("_cb_kwargs", dict), ("_cookies", (dict, list)), ("_flags", list), ("_body", bytes)):
        if not isinstance(getattr(request, name), (*((kinds,) if isinstance(kinds, type) else kinds), type(None))):
            raise TypeError(f"{name[1:]} is {type(getattr(request, name)).__name__}")
    if not isinstance(request.encoding, str) or not is_encoding(request.encoding):
        raise LookupError(f"{request.encoding!r:.60} is not an encoding of text")
    return request
