"""`trawl sites`: make, try and list site files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.access import addresses
from cli.views.options import AllowPrivate, AsJson, Contact, SiteName, Yes, command_group
from cli.views.output import complain, echo
from cli.views.tables import show
from forums.sites import load_all, sites_dir
from forums.sites.load import site_path

from .sites_data import reparse

app = command_group()
app.command()(reparse)


@app.command()
def new(
    url: Annotated[str, typer.Argument(metavar="ADDRESS", help="The front page of the forum, as forum.example.org.")],
    name: SiteName = None,
    profile: Annotated[str | None, typer.Option(help="The forum software; by default it is detected.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an existing file; let the fleet read one that looks wrong.")
    ] = False,
    ignore_robots: Annotated[
        bool, typer.Option("--ignore-robots", help="Ignore the site's robots.txt, now and in later crawls.")
    ] = False,
    allow_private: AllowPrivate = False,
    contact: Contact = None,
    as_json: AsJson = False,
) -> int:
    """Write a site file for a forum: detect its software and list its forums.

    For unknown software the file holds guesses, and comments on what to fill in. If no forum is found, nothing is written,
    unless --profile is given. Exit code 1: the file looks wrong, so it is written as NAME.wrong, which
    the fleet does not read.

    **Examples:**

        trawl sites new https://forum.example.org/ --contact you@example.org
        trawl sites new https://forum.example.org/board/ --name books --profile phpbb
    """
    from .sites_new import write

    allowed = {"obey_robots": not ignore_robots, "allow_private": allow_private}
    return write(addresses(url), name, profile, force=force, as_json=as_json, contact=contact, **allowed)


@app.command("check")
def check(
    site: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A site file, or the name of a site.")],
    live: Annotated[bool, typer.Option("--live", help="Fetch a page of each kind and show what is read from it.")] = False,
    forum: Annotated[str | None, typer.Option(help="The forum to try; by default the first.")] = None,
    thread: Annotated[str | None, typer.Option(help="The thread to try; by default one of the forum.")] = None,
    as_json: AsJson = False,
) -> int:
    """Check a site file; with --live also against the site.

    Exit code 1: a page could not be read, or what was read from it looks wrong. 2: the file is invalid.

    **Examples:**

        trawl sites check demo
        trawl sites check sites/books.toml --live --forum 12
    """
    from .sites_check import run

    return run(site, live=live, forum=forum, thread=thread, as_json=as_json)


@app.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a site.")],
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Remove a site with all its data: file, posts and comments with their history and events, what waits in Redis, kept
    pages, and alerts for it alone.

    Shows the numbers and asks first; without a terminal it needs --yes. While a fleet runs, crawlers stop asking the site
    within 2 s, and what was under way is dropped. Other machines delete their kept pages within an hour. Backups keep
    what they have. A new site file of that name makes a new site.

    **Examples:**

        trawl sites remove example
        trawl sites remove example --yes
    """
    from .sites_data import remove_site

    return remove_site(name, crawled_only=False, yes=yes, as_json=as_json)


@app.command("forget-rows")
def forget_rows(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a site.")],
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Take out what a wrong site file stored, so that the site is read again: rows with their history and events, and what
    Redis knows of its boards and threads.

    Correct the file first. Shows the numbers and asks; without a terminal it needs --yes. The file, limits, alerts, holds
    and kept pages stay; trawl sites reparse reads kept pages again without requests.

    **Examples:**

        trawl sites forget-rows example
        trawl sites forget-rows example --yes
    """
    from .sites_data import remove_site

    return remove_site(name, crawled_only=True, yes=yes, as_json=as_json)


@app.command("list")
def list_sites(as_json: AsJson = False) -> int:
    """List the sites, and the faults of invalid site files. Exit code 2 if a file is invalid."""
    sites, wrong = load_all()
    rows = [
        {
            "name": one.name,
            "profile": one.profile,
            "base_url": str(one.base_url),
            "forums": list(one.forums),
            "discover": one.discover is not None,
        }
        for one in sites
    ]
    columns: dict[str, Any] = {
        "site": "name",
        "profile": lambda row: row["profile"] or "",
        "where": "base_url",
        "forums": lambda row: f"{len(row['forums']) or ''} discovered".strip() if row["discover"] else str(len(row["forums"])),
    }
    if rows or as_json:
        show(rows, columns, as_json, whole={"sites": rows, "wrong": [str(error) for error in wrong.values()]})
    elif not wrong:
        echo(f"no site file in {sites_dir()}: trawl sites new URL writes one", stderr=True)
    for error in wrong.values() if not as_json else ():
        for line in str(error).splitlines():
            complain(line)
    return 2 if wrong else 0


def path_of(site: str) -> Path:
    """Return the file of a path or of a site's name. Raises SiteError."""
    return Path(site) if site.endswith(".toml") or "/" in site else site_path(site)
