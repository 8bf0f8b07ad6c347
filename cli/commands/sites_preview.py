"""What a new site file reads of a few threads, and what their pages tell for the file: of `trawl sites new`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from scrapy.http import TextResponse

    from forum_reader.definition.site import Site
    from forum_reader.draft.draft_file import Draft
    from forum_reader.draft.explore import Explorer
    from forum_reader.draft.preview import PreviewedThread
    from forums.sites.http.fetch import Visitor

_TRIED = 3  # forums of which one has threads to show


class Shown(NamedTuple):
    """What the new file reads of a few threads, or why it reads none."""

    threads: list[PreviewedThread]
    problem: str | None

    @property
    def is_read(self) -> bool:
        """Whether a thread was."""
        return any(thread.problem is None for thread in self.threads)


class Pages:
    """Pages of the site, each fetched once."""

    def __init__(self, explorer: Explorer, visitor: Visitor) -> None:
        self._explorer = explorer
        self._visitor = visitor
        self._known: dict[str, TextResponse] = {}

    async def get(self, url: str) -> TextResponse:
        if url not in self._known:
            known = self._explorer.response(url)
            self._known[url] = known if known is not None else await self._visitor.get(url)
        return self._known[url]


def _site_of(draft: Draft) -> Site:
    """The site of a file with this text. Raises SiteError."""
    import tomllib

    from forum_reader.definition import layers
    from forum_reader.definition.load import site_of
    from forum_reader.draft.draft_file import text_of
    from forums.sites import sites_dir

    return site_of(layers.read(sites_dir() / f"{draft.name}.toml", tomllib.loads(text_of(draft))))


async def with_customs(draft: Draft, shown: Shown, pages: Pages) -> tuple[Draft, Shown]:
    """With the language and time zone that the threads' pages tell, where the profile has others."""
    from scrapy.http import HtmlResponse

    from forum_reader.dates.date_customs import customs_of

    threads = [await pages.get(thread.url) for thread in shown.threads if thread.problem is None]
    language, time_zone = customs_of(_site_of(draft), [one for one in threads if isinstance(one, HtmlResponse)])
    if language is None and time_zone is None:
        return draft, shown
    told = msgspec.structs.replace(draft, language=language, time_zone=time_zone)
    again = await preview_of(told, pages)
    return (told, again) if again.is_read else (draft, shown)


async def preview_of(draft: Draft, pages: Pages) -> Shown:
    """Five threads as the file will read them; pages that were fetched already are not fetched again."""
    from forum_reader.draft.preview import preview
    from forums.sites import SiteError

    if not draft.forums:
        return Shown([], None)
    try:
        site = _site_of(draft)
    except SiteError as exc:
        return Shown([], str(exc))
    tried = [draft.wrapper.tried] if draft.wrapper else [forum.id for forum in draft.forums[:_TRIED]]
    shown = Shown([], None)
    for forum in tried:  # the first one may be empty
        shown = Shown(*await preview(site, pages.get, forum))
        if shown.threads:
            break
    return shown
