"""Scrapy requests to payloads and back, exactly; only what differs from a plain GET is written.

`Request.to_dict` costs 26 µs because it looks through the whole spider for each callback; here a callback is looked up once.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import scrapy.http
from scrapy import Request, Spider
from scrapy.http.headers import Headers
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.misc import load_object
from scrapy.utils.python import to_bytes
from scrapy.utils.request import request_from_dict

from . import codec
from .errors import ConfigError, Undecodable, Unserializable

_BUILT_IN = {
    f"{cls.__module__}.{cls.__qualname__}": cls
    for cls in (scrapy.http.Request, scrapy.http.FormRequest, scrapy.http.JsonRequest, scrapy.http.XmlRpcRequest)
}
_NO_CALLBACK = "NO_CALLBACK"

# What a stored request may carry beyond its URL: one letter -> constructor argument of Request. Part of the stored format.
_ARGUMENTS = {
    "m": "method",
    "h": "headers",
    "b": "body",
    "k": "cookies",
    "t": "meta",
    "w": "cb_kwargs",
    "p": "priority",
    "d": "dont_filter",
    "f": "flags",
    "n": "encoding",
}
_STORED = frozenset({"u", "c", "e", *_ARGUMENTS})


class Codec(Protocol):
    """Requests of one spider to payloads and back."""

    def encode(self, request: Request) -> bytes:
        """The payload of `request`. Raises Unserializable naming the field at fault."""

    def decode(self, payload: bytes) -> Request:
        """The request of `payload`. Raises Undecodable with the reason."""


class Serializer(Protocol):
    """What `SCHEDULER_SERIALIZER` names: a module or an object."""

    def dumps(self, obj: dict[str, Any], /) -> bytes | str:
        """A payload of `request.to_dict()`."""

    def loads(self, payload: bytes, /) -> dict[str, Any]:
        """That dictionary again."""


def request_codec(spider: Spider, serializer: Serializer | None, allowed: Iterable[str | type[Request]] = ()) -> Codec:
    """The exact codec, or one on the user's own serializer. Raises ConfigError for classes that cannot be loaded."""
    exact = RequestCodec(spider, allowed)
    return exact if serializer is None else SerializerCodec(spider, serializer, exact)


class RequestCodec:
    """Encodes and decodes the requests of one spider.

    `allowed` are request classes beside Scrapy's own that may be stored, as classes or dotted paths; any other class is
    refused on both ways, since a payload must not be able to name code.
    """

    def __init__(self, spider: Spider, allowed: Iterable[str | type[Request]] = ()) -> None:
        self._spider = spider
        self._names: dict[object, str] = {}
        self._classes: dict[str, type[Request]] = dict(_BUILT_IN)
        for entry in allowed:
            try:
                cls = load_object(entry)
            except Exception as exc:  # whatever the user's module raises while it is imported
                raise ConfigError(f"SCHEDULER_REQUEST_CLASSES: {entry!r} cannot be loaded: {type(exc).__name__}: {exc}") from exc
            self._classes[f"{cls.__module__}.{cls.__qualname__}"] = cls

    def encode(self, request: Request) -> bytes:
        """The payload of `request`. Raises Unserializable naming the field at fault."""
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
            self._names[function] = name
        return name

    def decode(self, payload: bytes) -> Request:
        """The request of `payload`. Raises Undecodable with the reason."""
        fields = codec.loads(payload)
        try:
            if "_" not in fields:
                return self._plain(fields)
            url = fields.pop("u")
            cls = self.allowed_class(fields.pop("_"))
            arguments = fields.pop("x", {})
            if "h" in fields:
                fields["h"] = [(name, values) for name, *values in fields["h"]]
            arguments["callback"] = self._method(fields.pop("c", None), "callback")
            arguments["errback"] = self._method(fields.pop("e", None), "errback")
            for letter, value in fields.items():
                arguments[_ARGUMENTS[letter]] = value
            return cls(url, **arguments)
        except Undecodable:
            raise
        except KeyError as exc:
            raise Undecodable(f"payload has no field, or an unknown field, {exc}: written by another Trawl?") from exc
        except Exception as exc:  # whatever a foreign payload makes a constructor raise
            raise Undecodable(f"payload does not make a request: {exc}") from exc

    def _plain(self, fields: dict[str, Any]) -> Request:
        """A `Request`, built without its constructor: URL, method and headers were brought into their form when it was first
        made.

        Takes about 2 µs, the constructor 5. A unit test compares all fields of many requests with the constructor's.
        """
        if not fields.keys() <= _STORED:
            raise KeyError(*(fields.keys() - _STORED))
        if "://" not in fields["u"] and not fields["u"].startswith(("about:", "data:")):
            raise ValueError(f"Missing scheme in request url: {fields['u']}")
        get = fields.get
        request = Request.__new__(Request)
        request._encoding = encoding = get("n", "utf-8")
        request._url = fields["u"]
        request.method = get("m", "GET")
        request._meta = get("t")
        request._body = get("b", b"")
        request._cookies = get("k")
        request._cb_kwargs = get("w")
        request._flags = get("f")
        request.priority = get("p", 0)
        request.dont_filter = get("d", False)
        request.callback = self._method(get("c"), "callback")
        request.errback = self._method(get("e"), "errback")
        request._headers = None
        if "h" in fields:
            request._headers = Headers(encoding=encoding)
            for name, *values in fields["h"]:
                dict.__setitem__(request._headers, name, values)
        return request

    def allowed_class(self, path: str) -> type[Request]:
        """The request class of that path. Raises Undecodable for one that is not allowed."""
        try:
            return self._classes[path]
        except KeyError:
            raise Undecodable(f"request class {path!r} is not allowed; add it to SCHEDULER_REQUEST_CLASSES") from None

    def _method(self, name: str | None, role: str) -> Callable[..., Any] | None:
        if name is None:
            return None
        if name == _NO_CALLBACK:
            return NO_CALLBACK
        method = getattr(self._spider, name, None)
        if not callable(method):
            raise Undecodable(f"{role}: spider {self._spider.name!r} has no method {name!r}; was it renamed by a deploy?")
        return method  # type: ignore[no-any-return]


class ExactFields:
    """The serializer where none is named: dictionaries of plain and tagged values, exactly, and never a pickle."""

    def dumps(self, obj: dict[str, Any], /) -> bytes:
        """A payload of `obj`. Raises Unserializable."""
        return codec.dumps({name: codec.exact(value, name) for name, value in obj.items()})

    def loads(self, payload: bytes, /) -> dict[str, Any]:
        """That dictionary again. Raises Undecodable."""
        return codec.loads(payload)


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
        """The payload of `request`. Raises Unserializable for what `to_dict` or the serializer refuses."""
        try:
            fields = request.to_dict(spider=self._spider)
            if self._exact is None:
                return self._serializer.dumps(fields)  # type: ignore[return-value]  # used alone, what it stores is its own affair
            if "_class" in fields:
                self._exact.allowed_class(fields["_class"])
            return to_bytes(self._serializer.dumps(fields))
        except Undecodable as exc:
            raise Unserializable(f"class: {exc}") from exc
        except Exception as exc:  # whatever a user's serializer raises
            raise Unserializable(f"request: cannot serialize it: {type(exc).__name__}: {exc}") from exc

    def decode(self, payload: bytes) -> Request:
        """The request of `payload`. Raises Undecodable with the reason."""
        try:
            fields = self._serializer.loads(payload)
            if not isinstance(fields, dict):
                raise TypeError(f"it made {type(fields).__name__}, not the fields of a request")
        except Exception as exc:  # whatever a user's serializer raises
            if self._exact is not None and codec.is_ours(payload):
                return self._exact.decode(payload)
            raise Undecodable(
                f"SCHEDULER_SERIALIZER cannot read the payload {reprlib.repr(payload)}: {type(exc).__name__}: {exc}"
            ) from exc
        if self._exact is not None and "_class" in fields:
            self._exact.allowed_class(fields["_class"])
        try:
            return request_from_dict(fields, spider=self._spider)
        except Exception as exc:  # whatever a foreign payload makes a constructor raise
            raise Undecodable(f"payload does not make a request: {type(exc).__name__}: {exc}") from exc
