"""Requests of pages: templates of addresses, bodies (`[pages.list.body]`) of search forms and of interfaces such as GraphQL, and
places: scheme, host and port. Only places that a site file names are fetched, and only places that it trusts get its secrets.

`{thread}` in a template is a value, `{thread.2}` the second part of an id of several parts (`join` of its field).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, unquote, urlencode

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator
from yarl import URL

if TYPE_CHECKING:
    from .site import Site

_PLACE = re.compile(r"\{(\w+)(?:\.([1-9]))?(:path|:int)?\}")
_LAST_PART = re.compile(r"(?:^|[/?&;}])([^/?&;{}]*)$")  # of an address
_NUMBERED = frozenset({"page", "page0", "offset"})
_NUMBERS = _NUMBERED | {"per_page"}
_ADDRESSES = ("url", "more")


def check(template: str, known: Collection[str]) -> str:
    """Return `template`, if it begins like a path or a URL and holds only names of `known`. Raises ValueError."""
    if not template.startswith(("/", "http://", "https://", *(f"{{{name}}}" for name in _ADDRESSES if name in known))):
        raise ValueError("must start with / (a path behind base_url), or with http:// or https://")
    if unknown := sorted(names(template) - set(known)):
        places = ", ".join(f"{{{name}}}" for name in sorted(known))
        raise ValueError(f"{{{unknown[0]}}} is not known here: may hold {places}")
    if "{" in _PLACE.sub("", template) or "}" in _PLACE.sub("", template):
        raise ValueError("has a brace that belongs to no name: write {name}, or %7B and %7D for braces")
    if any(match[3] == ":int" for match in _PLACE.finditer(template)):
        raise ValueError("{…:int} is for numbers in a body of JSON: leave :int out")
    return template


def check_text(text: str, known: Collection[str]) -> None:
    """Check a text of a body, which may have other braces. Raises ValueError."""
    if unknown := sorted(names(text) - set(known)):
        places = ", ".join(f"{{{name}}}" for name in sorted(known))
        raise ValueError(
            f"{{{unknown[0]}}} is not known here: may hold {places}; write {{ {unknown[0]} }} for a brace of the text"
        )


def names(template: str) -> set[str]:
    """Return the names that are to be filled in."""
    return {match[1] for match in _PLACE.finditer(template)}


def is_numbered(names: Collection[str]) -> bool:
    """Return True if the page n can be made from n, by the names in its address and body."""
    return not _NUMBERED.isdisjoint(names)


def fill(template: str, values: Mapping[str, object], joins: Mapping[str, str] = {}) -> str:
    """Return the template filled with its values, each quoted; slashes too, except in `{name:path}`. An address in `{url}`, and
    in `{more}` at the beginning of the template, stays unquoted. `joins`: separators of the parts of an id, by its name. Raises
    ValueError where an id has fewer parts.
    """

    def value(match: re.Match[str]) -> str:
        text = _value(match, values, joins)
        is_address = match[1] == "url" or (match[1] == "more" and match.start() == 0)
        return text if is_address else quote(text, safe="/" if match[3] == ":path" else "")

    return _PLACE.sub(value, template)


def fill_text(text: str, values: Mapping[str, object], joins: Mapping[str, str] = {}) -> str:
    """Return a text filled with its values, unquoted."""
    return _PLACE.sub(lambda match: _value(match, values, joins), text)


def fill_json(value: Any, values: Mapping[str, object], joins: Mapping[str, str] = {}) -> Any:
    """Return a JSON value filled with its values: a text that is only a page's number, or ends in `:int`, becomes a number, and
    a `{cursor}` without a value null.
    """
    if isinstance(value, Mapping):
        return {key: fill_json(inner, values, joins) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [fill_json(inner, values, joins) for inner in value]
    if not isinstance(value, str):
        return value
    filled, only = fill_text(value, values, joins), _PLACE.fullmatch(value)
    if only is not None and only[1] == "cursor" and not filled:
        return None
    if only is not None and (only[1] in _NUMBERS or only[3] == ":int"):
        return int(filled) if filled.isdecimal() else filled
    return filled


def _value(match: re.Match[str], values: Mapping[str, object], joins: Mapping[str, str]) -> str:
    text = str(values[match[1]])
    if match[2] is None:
        return text
    parts = text.split(joins[match[1]]) if match[1] in joins else [text]
    if len(parts) < int(match[2]):
        raise ValueError(f"{match[0]}: the id {text!r} has {len(parts)} part{'s' if len(parts) > 1 else ''}")
    return parts[int(match[2]) - 1]


def parts_of(template: str) -> set[str]:
    """Return the names of which only a part is filled in."""
    return {match[1] for match in _PLACE.finditer(template) if match[2]}


def number_in(url: str, template: str, per_page: int | None) -> int:
    """Return the number of the page at an address, by the part of the template that holds it (`page-{page}`); 1 where it has
    none.
    """
    for match in _PLACE.finditer(template):
        if match[1] not in _NUMBERED:
            continue
        before = _LAST_PART.search(template[: match.start()])
        found = re.search(rf"(?:^|[/?&;]){re.escape(before[1])}(\d{{1,9}})(?![\w.])", url) if before and before[1] else None
        if found is None:
            return 1
        number = int(found[1])
        if match[1] == "offset":
            return number // (per_page or 1) + 1
        return number + 1 if match[1] == "page0" else max(1, number)
    return 1


_IN_ADDRESSES = '=&:,{}[]"+'  # not quoted behind the # of an address, so that it is readable


class PageBody(BaseModel):
    """Body of the request for a page. Values may hold the same names in braces as `url`."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    form: dict[str, str] | None = Field(default=None, description="the fields of a form")
    json_: Any = Field(
        default=None,
        alias="json",
        description="JSON; a value that is only `{page}`, `{page0}`, `{offset}`, `{per_page}` or `{thread:int}` becomes a number",
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.form is None) == (self.json_ is None):
            raise ValueError("has to be one of both: form = {…} for the fields of a form, json = {…} for JSON")
        return self

    def check(self, known: Collection[str]) -> None:
        """Raise ValueError where a text holds a name that is not of `known`."""
        for text in self._texts():
            check_text(text, known)

    def names(self) -> set[str]:
        """Return the names that are to be filled in."""
        return {name for text in self._texts() for name in names(text)}

    def parts(self) -> set[str]:
        """Return the names of which only a part is filled in."""
        return {name for text in self._texts() for name in parts_of(text)}

    def fill(self, values: Mapping[str, object], joins: Mapping[str, str]) -> str:
        """Return the body as text."""
        if self.form is not None:
            return urlencode({key: fill_text(text, values, joins) for key, text in self.form.items()})
        return json.dumps(fill_json(self.json_, values, joins), ensure_ascii=False, separators=(",", ":"))

    @property
    def content_type(self) -> str:
        """Return the content type of the request."""
        return "application/json" if self.form is None else "application/x-www-form-urlencoded"

    def _texts(self) -> Iterator[str]:
        return _texts(self.json_ if self.form is None else self.form)


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request of a page."""

    url: str
    method: str = "GET"
    body: str = ""
    content_type: str | None = None
    more_headers: dict[str, str] = {}

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of its kind of page and of its body."""
        return self.more_headers | ({} if self.content_type is None else {"Content-Type": self.content_type})


def with_body(url: str, body: str) -> str:
    """Return the address of a page that is requested with a body: the body stands behind the `#`, which is not sent. So one text
    identifies a page wherever addresses are stored, compared and shown.
    """
    return f"{url}#{quote(body, safe=_IN_ADDRESSES)}"


def apart(address: str) -> tuple[str, str]:
    """Split such an address into the URL and the body."""
    url, _, body = address.partition("#")
    return url, unquote(body)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


Place = tuple[str, str | None, int | None]

NOWHERE: Place = ("", None, None)
"""The place of no site."""
THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


@lru_cache(maxsize=1024)  # called several times for each request
def place_of(url: str) -> Place:
    """Return the place of a URL, read by the parser that the crawlers and `trawl sites` connect with, so that an odd address has
    one meaning. NOWHERE for an unreadable URL.

    As in browsers, `http` and `https`, two ports, and a name with a dot at its end and without are different places; upper and
    lower case, the long and the short form of an IPv6 address, and a port that is the scheme's own are not. An international
    name counts in the form that is sent (`xn--…`) only, as there is more than one way to encode the other form.
    """
    try:
        parsed = URL(url)
        host = parsed.raw_host
        if not url.isascii() and not (URL(url, encoded=True).raw_host or "").isascii():
            return NOWHERE
        return (parsed.scheme, host.lower(), parsed.port) if host else (parsed.scheme, None, None)
    except (ValueError, TypeError, IndexError):  # a port that is not a number; IndexError: `http://[::1]@/`, by yarl
        return NOWHERE


def is_this_machine(url: str) -> bool:
    """Return True if a URL leads to this machine by name."""
    return place_of(url)[1] in THIS_MACHINE


def shown(place: Place) -> str:
    """Return the place as users write it: `https://forum.example.org`, with a port that is not the scheme's own."""
    scheme, host, port = place
    named = f"[{host}]" if host and ":" in host else host or "?"
    return f"{scheme}://{named}" if port in (None, {"http": 80, "https": 443}.get(scheme)) else f"{scheme}://{named}:{port}"


def elsewhere(site: Site, url: str, came_from: str | None = None) -> str | None:
    """Return why this URL does not belong to the site, in a line that names both places; None for a URL at one of the site's
    places.

    `came_from`: the requested URL that redirected there.
    """
    place = place_of(url)
    if place in site.places:
        return None
    own = ", ".join(shown(one) for one in sorted(site.places, key=str))
    what = url if came_from is None else f"{came_from} redirects to {url}, which"
    return f"{what} is at no place of site {site.name!r} ({own}): if it belongs to the site, add {shown(place)} to `also_allowed`"


def may_have_secrets(site: Site, url: str, proxy: str | None = None) -> bool:
    """Return True if the site's headers and cookies may be sent with a request of this URL, through this proxy, if any.

    A proxy reads HTTP requests; of HTTPS it sees only the name of the host.
    """
    place = place_of(url)
    if place not in site.trusted_places:
        return False
    return proxy is None or place[0] == "https" or place_of(proxy) in site.trusted_places
