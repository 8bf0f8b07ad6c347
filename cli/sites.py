"""`trawl sites`: the site files, made, tried, listed and shown."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Make, try, list and show site files.")

AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


@app.command("new")
def new(
    url: Annotated[str, typer.Argument(metavar="URL", help="The front page of the forum.")],
    name: Annotated[str | None, typer.Option(help="Name of the site; else from its host.", show_default=False)] = None,
    profile: Annotated[str | None, typer.Option(help="The software; else it is recognised.", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")] = False,
    ignore_robots: Annotated[
        bool, typer.Option("--ignore-robots", help="Look at it, and crawl it later, whatever its robots.txt says.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Write a site file for a forum: its software is recognised, its forums are listed.

    For unknown software what can be guessed is written, and what is to be filled in. Where no forum is found nothing is written,
    unless you name a --profile.

    **Examples:**

        trawl sites new https://forum.example.org/
        trawl sites new https://forum.example.org/board/ --name books --profile phpbb
    """
    from .sites_new import write

    return write(url, name, profile, force=force, obey_robots=not ignore_robots, as_json=as_json)


@app.command("check")
def check(
    site: Annotated[str, typer.Argument(metavar="FILE|NAME", help="A site file, or the name of a site.")],
    live: Annotated[bool, typer.Option("--live", help="Fetch a page of each kind and show what is read from it.")] = False,
    forum: Annotated[str | None, typer.Option(help="The forum to try; else the first one.", show_default=False)] = None,
    thread: Annotated[str | None, typer.Option(help="The thread to try; else one of the forum's.", show_default=False)] = None,
    as_json: AsJson = False,
) -> int:
    """Check a site file; with --live also on the site itself.

    Exit code 1: a page could not be read, or a field that has to be there is empty everywhere. 2: the file is wrong.

    **Examples:**

        trawl sites check demo
        trawl sites check sites/books.toml --live --forum 12
    """
    from .sites_check import run

    return run(site, live=live, forum=forum, thread=thread, as_json=as_json)


@app.command("list")
def list_sites(as_json: AsJson = False) -> int:
    """List the sites; a file that is wrong says why. Exit code 2 where there is one."""
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
