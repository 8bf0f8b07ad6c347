"""Pages that are requested with a body (`[pages.list.body]`): search forms, and interfaces such as GraphQL."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Self
from urllib.parse import quote, unquote, urlencode

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

from . import url_templates

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
            url_templates.check_text(text, known)

    def names(self) -> set[str]:
        """Return the names that are to be filled in."""
        return {name for text in self._texts() for name in url_templates.names(text)}

    def parts(self) -> set[str]:
        """Return the names of which only a part is filled in."""
        return {name for text in self._texts() for name in url_templates.parts_of(text)}

    def fill(self, values: Mapping[str, object], joins: Mapping[str, str]) -> str:
        """Return the body as text."""
        if self.form is not None:
            return urlencode({key: url_templates.fill_text(text, values, joins) for key, text in self.form.items()})
        return json.dumps(url_templates.fill_json(self.json_, values, joins), ensure_ascii=False, separators=(",", ":"))

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
