"""Which forum software made a page: the `[recognise]` tables of the profiles, against its source, headers and cookies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import msgspec
from parsel import Selector
from pydantic import BaseModel, ConfigDict, Field, field_validator

from .layers import profile_names, profile_table

if TYPE_CHECKING:
    from scrapy.http import TextResponse

_NUMBER = re.compile(r"\d+")
_SLUG_AFTER = re.compile(r"(?<=\d)([-.])(?!html?\b|php\b)[^\W\d][^/?&#=]*")  # 123-a-title
_SLUG_BEFORE = re.compile(r"(?<=/)[^/?&#=]*[^\W\d][^/?&#=]*\.(?=\d+(?:[/?&#]|$))")  # a-title.123


class Recognise(BaseModel):
    """Profiles: how `trawl sites new` knows the software from a page."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    html: tuple[str, ...] = Field(default=(), description="regular expressions, each found in the page's source counts 1")
    headers: tuple[str, ...] = Field(default=(), description="regular expressions over the answer's headers, as `name: value`")
    cookies: tuple[str, ...] = Field(default=(), description="regular expressions over the names of cookies that are set")
    base: str | None = Field(default=None, description="regular expression whose first group is the path of the forum's root")
    about: str | None = Field(default=None, description="one line about the software")

    @field_validator("html", "headers", "cookies")
    @classmethod
    def _are_regexes(cls, expressions: tuple[str, ...]) -> tuple[str, ...]:
        for expression in expressions:
            try:
                re.compile(expression)
            except re.error as exc:
                raise ValueError(f"{expression!r} is no regular expression: {exc}") from None
        return expressions


class Guess(msgspec.Struct, frozen=True, kw_only=True):
    """A profile that may fit: how many of its marks the page has, and which."""

    profile: str
    score: int
    marks: tuple[str, ...]
    base_url: str


def guesses(response: TextResponse) -> list[Guess]:
    """The profiles that the page has marks of, the likeliest first."""
    found = []
    for name in profile_names():
        marks = _marks(name)
        seen = tuple(_seen(marks, response))
        if seen:
            found.append(Guess(profile=name, score=len(seen), marks=seen, base_url=_base(marks, response)))
    return sorted(found, key=lambda guess: (-guess.score, guess.profile))


def base_of(url: str) -> str:
    """The folder that a page is in, which is where most forums have their root."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rpartition('/')[0]}"


def link_shapes(response: TextResponse, most: int = 12) -> list[tuple[str, int, str]]:
    """What the links of a page look like with `{n}` for numbers: shape, how often, an example. For whoever has to find out how a
    forum's addresses are made.
    """
    here = urlsplit(response.url).netloc
    shapes: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for link in Selector(text=response.text, type="html").xpath("//a/@href").getall():
        parts = urlsplit(urljoin(response.url, link.strip()))
        if parts.netloc != here or parts.scheme not in ("http", "https"):
            continue
        address = parts.path + (f"?{parts.query}" if parts.query else "")
        shape = _NUMBER.sub("{n}", _SLUG_AFTER.sub(r"\1…", _SLUG_BEFORE.sub("….", address)))
        if "{n}" in shape:
            shapes[shape] += 1
            examples.setdefault(shape, address)
    return [(shape, count, examples[shape]) for shape, count in shapes.most_common(most)]


def _marks(name: str) -> Recognise:
    return Recognise.model_validate(profile_table(name).get("recognise", {}))


def _seen(marks: Recognise, response: TextResponse) -> Iterator[str]:
    headers = [
        f"{name.decode('latin-1')}: {value.decode('latin-1')}" for name, values in response.headers.items() for value in values
    ]
    cookies = [cookie.decode("latin-1").partition("=")[0] for cookie in response.headers.getlist("Set-Cookie")]
    for pattern in marks.html:
        if re.search(pattern, response.text):
            yield pattern
    for pattern in marks.headers:
        if any(re.search(pattern, header, re.IGNORECASE) for header in headers):
            yield pattern
    for pattern in marks.cookies:
        if any(re.search(pattern, cookie) for cookie in cookies):
            yield pattern


def _base(marks: Recognise, response: TextResponse) -> str:
    match = re.search(marks.base, response.text) if marks.base else None
    return (urljoin(response.url, match[1] or ".") if match else base_of(response.url)).rstrip("/")
