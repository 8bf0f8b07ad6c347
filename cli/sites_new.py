"""`trawl sites new`: a site file from a forum's address."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from redis_components.errors import ConfigError, TrawlError

from .output import print_json

if TYPE_CHECKING:
    from pathlib import Path

    from workers.sites.draft import Draft
    from workers.sites.fetch import Visitor
    from workers.sites.reading import ListedForum
    from workers.sites.recognise import Guess

_INDEX_PAGES = 20  # most pages of an index
_SHOWN = 20  # forums in the table


def write(url: str, name: str | None, profile: str | None, *, force: bool, obey_robots: bool, as_json: bool) -> int:
    """Look at the page, write the file, say what was found."""
    from workers.sites import sites_dir
    from workers.sites.draft import name_of, text_of
    from workers.sites.fetch import is_web_address

    if not is_web_address(url):
        raise ConfigError(f"{url!r} is no address of a web page: write http://… or https://…")
    name = name or name_of(url)
    path = sites_dir() / f"{name}.toml"
    if path.exists() and not force:
        raise ConfigError(f"{path} exists: choose another --name, or overwrite it with --force")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise ConfigError(f"--name {name}: must be letters, digits, '.', '_', '-', and begin with a letter or digit")
    draft, guess = asyncio.run(_look(url, name, profile, obey_robots=obey_robots))
    if not draft.forums and profile is None:
        raise TrawlError(
            f"no forum was found at {url} ({draft.software}), so nothing is written: give the address of the front page, or "
            "name a --profile (generic for unknown software) for a file to fill in"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(draft), "utf-8")
    except OSError as exc:
        raise ConfigError(f"{path} cannot be written: {exc.strerror}: TRAWL_SITES_DIR names the folder of site files") from exc
    if as_json:
        print_json(
            {
                "file": str(path),
                "profile": draft.profile or "generic",
                "marks": list(guess.marks) if guess else [],
                "base_url": draft.base_url,
                "forums": [forum.id for forum in draft.forums],
            }
        )
    else:
        _say(path, draft, guess)
    return 0


async def _look(url: str, name: str, profile: str | None, *, obey_robots: bool) -> tuple[Draft, Guess | None]:
    from workers.sites import layers
    from workers.sites.draft import Draft
    from workers.sites.fetch import Visitor
    from workers.sites.look_around import guessed_forums, look_around
    from workers.sites.recognise import base_of, guesses, link_shapes

    if profile is not None and profile not in layers.profile_names():
        raise ConfigError(f"--profile {profile}: there is none; profiles are {', '.join(layers.profile_names())}")
    async with Visitor(obey_robots=obey_robots) as visitor:
        response = await visitor.get(url)
        if response.status != 200:
            raise TrawlError(f"{url} answers with status {response.status}: give the address of a page that everybody can read")
        _refuse_another_host(url, response.url)
        found = guesses(response)
        guess = next((one for one in found if profile in (None, one.profile)), None)
        chosen = profile or (guess.profile if guess else None)
        chosen = None if chosen == "generic" else chosen
        fixed = layers.profile_table(chosen).get("base_url") if chosen else None
        base_url = str(fixed or (guess.base_url if guess else base_of(response.url)))
        guessed = None if chosen else await look_around(visitor, response)
        if guessed:
            base_url = urljoin(response.url, "/").rstrip("/")
        if chosen:
            forums, can_discover = await _forums(visitor, name, chosen, base_url)
        else:
            forums, can_discover = guessed_forums(response, guessed), guessed is not None
    draft = Draft(
        name=name,
        profile=chosen,
        software=_title(chosen) if chosen else "unknown software",
        base_url=base_url,
        base_in_profile=fixed is not None,
        forums=forums,
        can_discover=can_discover,
        obey_robots=obey_robots,
        shapes=() if chosen else link_shapes(response),
        guessed=guessed,
    )
    return draft, guess


def _refuse_another_host(asked: str, found: str) -> None:
    """The site that somebody named may lead to one that he does not mean."""
    hosts = [(urlsplit(one).hostname or "").removeprefix("www.") for one in (asked, found)]
    if hosts[0] != hosts[1]:
        raise TrawlError(f"{asked} leads to another host, {found}: if that is the forum, trawl sites new {found}")


async def _forums(visitor: Visitor, name: str, profile: str, base_url: str) -> tuple[tuple[ListedForum, ...], bool]:
    """The forums that the index lists, and whether the profile knows where the index is."""
    from workers.sites import SiteError, layers, sites_dir
    from workers.sites.fetch import FetchFailed
    from workers.sites.load import site_of
    from workers.sites.reading import ListedForum, read_index

    table = {"profile": profile, "base_url": base_url, "forums": ["?"]}
    site = site_of(layers.read(sites_dir() / f"{name}.toml", table))
    if site.pages.index is None:
        fixed = layers.profile_table(profile).get("forums", ())
        return tuple(ListedForum(id=forum, name=forum) for forum in fixed), False
    forums: dict[str, ListedForum] = {}
    url: str | None = site.url("index")
    number = 1
    try:
        while url and number <= _INDEX_PAGES:
            page = read_index(site, await visitor.get(url), number)
            known = len(forums)
            forums |= {forum.id: forum for forum in page.forums if forum.id not in forums}
            url, number = (page.next if len(forums) > known else None), number + 1
    except (SiteError, FetchFailed) as exc:
        print(f"trawl: the forums could not be listed: {exc}", file=sys.stderr)
    return tuple(forums.values()), True


def _title(profile: str) -> str:
    from workers.sites import layers

    return str(layers.profile_table(profile).get("recognise", {}).get("about") or profile)


def _say(path: Path, draft: Draft, guess: Guess | None) -> None:
    from rich.text import Text

    from .output import console, plain_table

    marks = f", by {' and '.join(repr(mark) for mark in guess.marks[:3])}" if guess else ""
    print(f"{path} written: {draft.software}{marks}")
    if draft.forums:
        table = plain_table("  forum", "name", "threads")
        for forum in draft.forums[:_SHOWN]:
            threads = "" if forum.threads is None else str(forum.threads)
            table.add_row(Text(f"  {forum.id}"), Text(forum.name), threads)
        console().print(table)
        if len(draft.forums) > _SHOWN:
            print(f"  and {len(draft.forums) - _SHOWN} more")
    if draft.profile is None:
        print("No profile knows this software: what could be guessed is in the file; open it and follow its comments.")
    elif not draft.forums:
        print("No forums were found: write their ids into `forums`.")
    print(f"Next: trawl sites check {draft.name} --live")
