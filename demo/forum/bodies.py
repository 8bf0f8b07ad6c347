"""Rendered pages, kept for as long as what they show has not changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable

PAGE_SIZE = 20


class NoSuchPage(Exception):
    """There is no such forum, post or page, or no longer; the message says which and what there is. `status` is HTTP's."""

    def __init__(self, message: str, status: int = 404) -> None:
        super().__init__(message)
        self.status = status


class Bodies:
    """Each page is rendered once per revision of its owner (a forum, a thread, the world).

    Bounded by the content that there ever was: an owner's pages of an older revision are dropped when the first page of a newer
    one is wanted.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, dict[Hashable, bytes]]] = {}

    def get(self, owner: str, revision: int, page: Hashable, render: Callable[[], bytes]) -> bytes:
        """The body of `owner`'s `page` at `revision`, from `render` where it is not there yet."""
        kept = self._kept.get(owner)
        if kept is None or kept[0] != revision:
            kept = self._kept[owner] = (revision, {})
        body = kept[1].get(page)
        if body is None:
            body = kept[1][page] = render()
        return body


def page_count(entries: int, size: int = PAGE_SIZE) -> int:
    """How many pages `entries` fill, `size` each; an empty list has one, empty, page."""
    return max(1, -(-entries // size))


def page_number(text: str, pages: int, what: str) -> int:
    """The page that `text` asks for; NoSuchPage where it is no number from 1 to `pages`."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 1 <= number <= pages:
        raise NoSuchPage(f"{what} has pages 1 to {pages}, not {text[:40]!r}")
    return number


def page_slice(number: int) -> slice:
    """Where the entries of page `number` (from 1) are in the whole list."""
    return slice((number - 1) * PAGE_SIZE, number * PAGE_SIZE)
