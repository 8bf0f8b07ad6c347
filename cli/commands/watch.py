"""`trawl watch`: from a forum's address to its posts on the page, in one command."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from typing import Annotated

import typer

from cli.access.addresses import addresses
from cli.processes.node_services import EXPORTER_PORT, FLOWER_PORT, prefer
from cli.views.output import echo
from forum_reader.definition.origins import is_this_machine, place_of
from forums.sites import load_all
from redis_components.errors import ConfigError

from .sites_new import write
from .up import run_fleet, runs_here


def watch(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The front page of the forum, as forum.example.org.")],
    contact: Annotated[
        str | None, typer.Option(metavar="EMAIL|URL", help="How the site's operator reaches you; sent as User-Agent.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the site; by default taken from its host.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page with the newest posts.")] = True,
    logs: Annotated[bool, typer.Option("--logs", help="Show the lines of all processes in place of one screen.")] = False,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Allow a private address, for a forum in your own network.")
    ] = False,
) -> int:
    """Watch a forum: recognise or learn its pages, start everything on this machine, open the page with its newest posts.

    It is `trawl sites new`, then `trawl up`, in this folder: `sites/` gets the site file, `data/` the posts. A forum with a site
    file is not learned again. Where the fleet runs already, it reads the new file within seconds, and nothing else is started.
    You are asked for a contact, which the site's operator sees; without a terminal name it with --contact.

    **Examples:**

        trawl watch forum.example.org
        trawl watch https://forum.example.org/board/ --contact you@example.org --no-browser
    """
    urls = addresses(address)
    places = {place_of(url) for url in urls}
    if site := next((one for one in load_all()[0] if one.places & places), None):
        echo(f"site {site.name} is this forum: its file is used")
    else:
        if contact is None and not is_this_machine(urls[0]) and not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise ConfigError("name an address at which the site's operator can reach you: --contact you@example.org")
        options = {"force": False, "obey_robots": True, "allow_private": allow_private, "as_json": False, "hint": False}
        write(urls, name, None, contact=contact, **options)
    if node := runs_here():
        echo(f"the fleet runs here already, as node {node}: it scans the forum within seconds; trawl forums shows it")
        return 0
    on_page = open_page if browser else None
    return run_fleet(None, prefer(FLOWER_PORT), prefer(EXPORTER_PORT), logs=logs, on_page=on_page)


def open_page(url: str) -> None:
    """Open the page in the user's browser, if there is a desktop: without one the address on the screen has to do."""
    if sys.platform == "darwin" or any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")):
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()  # some browsers are waited for
