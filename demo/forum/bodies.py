"""Cache of rendered pages, valid while their content has not changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable

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
