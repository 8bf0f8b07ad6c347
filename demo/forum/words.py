"""Texts of the forum's users, made of the vocabulary in `words.toml`, and the cache of rendered pages."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Hashable
from pathlib import Path
from random import Random

import msgspec


class Theme(msgspec.Struct, frozen=True, kw_only=True):
    """One forum's subject."""

    name: str
    about: str
    things: tuple[str, ...]


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """Phrases, in which `{a}` and `{b}` are two of a theme's things, and the halves of authors' names."""

    titles: tuple[str, ...]
    openers: tuple[str, ...]
    sentences: tuple[str, ...]
    reactions: tuple[str, ...]
    author_first: tuple[str, ...]
    author_second: tuple[str, ...]
    themes: tuple[Theme, ...]


_WORDS = msgspec.convert(tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")), Vocabulary)
THEMES = _WORDS.themes


class Prose:
    """Writes text for one theme at a time; the text depends on the state of `rng` alone."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def author(self) -> str:
        """Return a user's name; a few users write often, most of them seldom."""
        first, second = self._rng.choice(_WORDS.author_first), self._rng.choice(_WORDS.author_second)
        number = int(self._rng.paretovariate(1.2))
        return f"{first}_{second}" if number == 1 else f"{first}_{second}{min(number, 99)}"

    def title(self, theme: Theme) -> str:
        """Return one line, not empty, with an upper-case first letter."""
        title = self._fill(self._rng.choice(_WORDS.titles), theme)
        return title[0].upper() + title[1:]

    def post_body(self, theme: Theme) -> str:
        """Return one to four paragraphs, separated by an empty line."""
        first = f"{self._rng.choice(_WORDS.openers)} {self._paragraph(theme)}"
        return "\n\n".join([first, *(self._paragraph(theme) for _ in range(self._rng.randrange(4)))])

    def comment_body(self, theme: Theme) -> str:
        """Return a reaction, a paragraph, or both; seldom two paragraphs."""
        draw = self._rng.random()
        if draw < 0.25:
            return self._reaction(theme)
        if draw < 0.6:
            return f"{self._reaction(theme)} {self._paragraph(theme)}"
        if draw < 0.9:
            return self._paragraph(theme)
        return f"{self._paragraph(theme)}\n\n{self._paragraph(theme)}"

    def _reaction(self, theme: Theme) -> str:
        return self._fill(self._rng.choice(_WORDS.reactions), theme)

    def _paragraph(self, theme: Theme) -> str:
        sentences = self._rng.sample(_WORDS.sentences, self._rng.randint(1, 4))
        return " ".join(self._fill(sentence, theme) for sentence in sentences)

    def _fill(self, phrase: str, theme: Theme) -> str:
        a, b = self._rng.sample(theme.things, 2)
        return phrase.format(a=a, b=b)


PAGE_SIZE = 20


class NoSuchPage(Exception):
    """There is no such forum, post or page, or no longer; the message names it and the existing ones. `status` is HTTP's."""

    def __init__(self, message: str, status: int = 404) -> None:
        super().__init__(message)
        self.status = status


class Bodies:
    """Renders each page once per revision of its owner (a forum, a thread, the world).

    Bounded by the forum's content: an owner's pages of an older revision are dropped when the first page of a newer one is
    requested.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, dict[Hashable, bytes]]] = {}

    def get(self, owner: str, revision: int, page: Hashable, render: Callable[[], bytes]) -> bytes:
        """Return the body of `owner`'s `page` at `revision`, from `render` if it is not cached."""
        kept = self._kept.get(owner)
        if kept is None or kept[0] != revision:
            kept = self._kept[owner] = (revision, {})
        body = kept[1].get(page)
        if body is None:
            body = kept[1][page] = render()
        return body


def page_count(entries: int, size: int = PAGE_SIZE) -> int:
    """Return the number of pages for `entries`, `size` each; an empty list has one, empty, page."""
    return max(1, -(-entries // size))


def page_number(text: str, pages: int, what: str) -> int:
    """Parse a page number. Raises NoSuchPage if it is not a number from 1 to `pages`."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 1 <= number <= pages:
        raise NoSuchPage(f"{what} has pages 1 to {pages}, not {text[:40]!r}")
    return number


def page_slice(number: int) -> slice:
    """Return the slice of the whole list for page `number` (from 1)."""
    return slice((number - 1) * PAGE_SIZE, number * PAGE_SIZE)
