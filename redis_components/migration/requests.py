"""Conversion of scrapy-redis's `Request.to_dict` to our payload. No spider is loaded: callbacks stay names, and the names (a
method, a request class) are looked up when the request is crawled.
"""

from __future__ import annotations

from typing import Any

from scrapy import Request, Spider

from redis_components.codec import values
from redis_components.codec.requests import RequestCodec
from redis_components.errors import Undecodable

_ARGUMENTS = frozenset(Request.attributes) - {"callback", "errback"}
_encode = RequestCodec(Spider("of any name")).encode


def payload_of(fields: Any) -> bytes:
    """Return the payload of the request that `fields` describe. Raises CodecError, naming the field at fault."""
    if type(fields) is not dict or not all(type(name) is str for name in fields):
        raise Undecodable(f"it holds {type(fields).__name__}, not the fields of a request")
    if "_encoding" in fields:  # Scrapy before 2.6
        fields["encoding"] = fields.pop("_encoding")
    callbacks = {letter: _name(fields, role) for letter, role in (("c", "callback"), ("e", "errback"))}
    kind = fields.pop("_class", None)
    extra = {name: fields.pop(name) for name in fields.keys() - _ARGUMENTS}
    if extra and not kind:
        raise Undecodable(f"unknown field {min(extra)!r} of a request")
    if kind is not None and type(kind) is not str:
        raise Undecodable("_class: not the path of a class")
    try:
        request = Request(**fields)
    except Exception as exc:  # foreign values can make a constructor raise anything
        raise Undecodable(f"it does not make a request: {exc}") from exc
    stored = {letter: values.exact(value, letter) for letter, value in values.loads(_encode(request)).items()}
    stored |= {letter: name for letter, name in callbacks.items() if name is not None}
    if kind is not None:
        stored["_"] = kind
        if extra:
            stored["x"] = {name: values.exact(value, name) for name, value in extra.items()}
    return values.dumps(stored)


def _name(fields: dict[str, Any], role: str) -> str | None:
    name = fields.pop(role, None)
    if name is not None and (type(name) is not str or not name.isidentifier()):
        raise Undecodable(f"{role}: not the name of a method")
    return name
