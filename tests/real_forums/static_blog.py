"""A blog of static pages whose comments are filled by a service: the pages are ours, the service is others' software."""

from __future__ import annotations

import html
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tests.real_forums.environment import bare_environment, free_port
from tests.real_forums.software import Software, Topic

PER_PAGE = 40
HEAD = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
    '<body><nav><a href="/">Garden</a></nav>'
)
FOOT = "<footer>Made by hand</footer></body></html>"


class StaticBlog(Software):
    """Pages in the folder `www`, served by Python; `mark` is what each page has for its comments."""

    profile: ClassVar[str] = "generic"
    given: ClassVar[str | None] = "/"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.pages: dict[int, str] = {}

    def serve_pages(self) -> None:
        """Serve an empty folder; sets `base_url`."""
        (self.folder / "www" / "blog").mkdir(parents=True)
        port = free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        self.launch(
            [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"],
            environment=bare_environment(),
            cwd=self.folder / "www",
        )

    def mark(self, number: int) -> str:
        """What the page has for its comments."""
        raise NotImplementedError

    def write_pages(self) -> None:
        """Write all pages, and the lists of them, the newest first."""
        for number, text in self.pages.items():
            date = self._date(number)
            article = (
                f'<article><h1>Post {number}</h1><time datetime="{date}">{date[:10]}</time><p>{html.escape(text)}</p></article>'
            )
            (self.folder / "www" / self._path(number)).write_text(
                HEAD.format(title=f"Post {number}") + article + self.mark(number) + FOOT
            )
        newest = sorted(self.pages, reverse=True)
        parts = [newest[start : start + PER_PAGE] for start in range(0, len(newest), PER_PAGE)]
        for place, numbers in enumerate(parts):
            self._write_list(place, numbers, is_last=place == len(parts) - 1)

    def topics(self) -> dict[str, Topic]:
        return {
            self._path(number): Topic(
                forum_id="all",
                title=f"Post {number}",
                text=text,
                author=None,
                replies=None,
                at=self._date(number)[:16].replace("T", " "),
            )
            for number, text in self.pages.items()
        }

    def forums(self) -> list[str]:
        return ["all"]

    def _write_list(self, place: int, numbers: Sequence[int], *, is_last: bool) -> None:
        rows = "".join(
            f'<li><a href="/{self._path(number)}">Post {number}</a> <time datetime="{self._date(number)}">'
            f"{self._date(number)[:10]}</time></li>"
            for number in numbers
        )
        following = "" if is_last else f'<a rel="next" href="/page-{place + 2}.html">Older posts</a>'
        name = "index.html" if place == 0 else f"page-{place + 1}.html"
        page = HEAD.format(title="Garden") + f"<h1>Garden</h1><ul>{rows}</ul>{following}{FOOT}"
        (self.folder / "www" / name).write_text(page)

    @staticmethod
    def _path(number: int) -> str:
        return f"blog/post-{number}.html"

    @staticmethod
    def _date(number: int) -> str:
        return f"2026-{1 + number // 25:02}-{1 + number % 25:02}T10:00:00Z"
