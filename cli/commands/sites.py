"""`trawl sites`: the site files, made, tried, listed and shown."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Make, try, list and show site files.")

AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


@app.command("new")
def new(
    url: Annotated[str, typer.Argument(metavar="URL", help="The front page of the forum.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the site; by default taken from its host.", show_default=False)
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="The forum software; by default it is detected.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    ignore_robots: Annotated[
        bool, typer.Option("--ignore-robots", help="Ignore the site's robots.txt, now and in later crawls.")
    ] = False,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Allow a private address, for a forum in your own network.")
    ] = False,
    contact: Annotated[
        str | None,
        typer.Option(metavar="EMAIL|URL", help="How the site's operator reaches you; sent as User-Agent.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Write a site file for a forum: detect its software and list its forums.

    For unknown software the file holds guesses, and comments that say what to fill in. If no forum is found, nothing is written,
    unless --profile is given.

    **Examples:**

        trawl sites new https://forum.example.org/ --contact you@example.org
        trawl sites new https://forum.example.org/board/ --name books --profile phpbb
    """
    from .sites_new import write

    manners = {"obey_robots": not ignore_robots, "allow_private": allow_private}
    return write(url, name, profile, force=force, as_json=as_json, contact=contact, **manners)


@app.command("check")
def check(
    site: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A site file, or the name of a site.")],
    live: Annotated[bool, typer.Option("--live", help="Fetch a page of each kind and show what is read from it.")] = False,
    forum: Annotated[str | None, typer.Option(help="The forum to try; by default the first.", show_default=False)] = None,
    thread: Annotated[
        str | None, typer.Option(help="The thread to try; by default one of the forum.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check a site file; with --live also against the site.

    Exit code 1: a page could not be read, or a required field is empty everywhere. 2: the file is invalid.

    **Examples:**

        trawl sites check demo
        trawl sites check sites/books.toml --live --forum 12
    """
    from .sites_check import run

    return run(site, live=live, forum=forum, thread=thread, as_json=as_json)


@app.command("list")
def list_sites(as_json: AsJson = False) -> int:
    """List the sites, and what is wrong with invalid site files. Exit code 2 if a file is invalid."""
    from .sites_show import list_all

    return list_all(as_json=as_json)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A site file, or the name of a site.")],
    as_json: AsJson = False,
) -> int:
    """Show every value of a site and the file that it comes from. Headers and cookies are not shown."""
    from .sites_show import show_one

    return show_one(name, as_json=as_json)
