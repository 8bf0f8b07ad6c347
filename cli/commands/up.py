"""`trawl up`: the whole fleet on this machine, until Ctrl-C; `trawl watch`: for one forum; `trawl api`: the HTTP API."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import psutil
import redis
import typer

from cli.access import addresses, redis_client, running_url
from cli.names import project_spiders
from cli.processes import (
    EXPORTER_PORT,
    FLOWER_PORT,
    FlowerAccess,
    Interrupts,
    PageAccess,
    Services,
    answers,
    node_services,
    prefer,
    take,
)
from cli.views.environment import rows, unknown
from cli.views.options import AllowPrivate, Contact, SiteName
from cli.views.output import complain, echo
from cli.views.tables import console
from cli.views.up_screen import LOOK_S, UpLog, UpScreen
from fleet_operations.overview import Overview, OverviewReader
from redis_components.embedded import data_dir, redis_url
from redis_components.errors import ConfigError, TrawlError, unknown_name
from redis_components.server.printable import masked
from redis_components.server.untrusted_values import server_time
from redis_components.server.url import impatient
from redis_components.server.variables import refuse_example_secrets, variable
from workers.application import application
from workers.fleet.sizes import check_service, declarations, declared_fleet, default_fleet, largest_fleet, node_crawlers, scale
from workers.process import start_checks
from workers.process.config_digest import differences, shared_digests
from workers.process.run_module import own_module
from workers.state.nodes import NodeRecord, Nodes
from workers.state.registry import Registry
from workers.state.services import Autoscaling
from workers.state.services import Services as Declared

from .scale import parse_sizes, sentence

TICK_S = 0.1
INTERRUPTED = 130


def up(
    fleet: Annotated[
        str | None, typer.Option(metavar="SERVICE=N,...", help="Number of crawlers of services, or of spiders of this project.")
    ] = None,
    port_flower: Annotated[int, typer.Option(min=0, max=65_535, help="Port of Flower; 0 takes a free one.")] = 5555,
    port_exporter: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port of metrics and status page; 0 takes a free one.")
    ] = 9410,
    logs: Annotated[bool, typer.Option("--logs", help="Show the lines of all processes in place of one screen.")] = False,
) -> int:
    """Start Redis, a worker with its crawlers, beat, Flower and the exporter on this machine, until Ctrl-C.

    Everything listens on loopback only. A process that dies is restarted. Ctrl-C stops everything in order: crawlers finish
    their pages, and queued requests wait in `data/` for the next start; a second Ctrl-C does not wait. The exit code is 0
    after Ctrl-C or SIGTERM, 1 where something did not start or did not stay up.

    A second `trawl up` with the same Redis is a second node of the same fleet, and prints that; on one machine it takes
    other ports (`--port-flower 0 --port-exporter 0`). Another fleet has another TRAWL_DATA_DIR, or another TRAWL_NAMESPACE.

    A terminal shows one screen: addresses, figures, and what needs attention. The link of the page is logged in, so that its
    buttons act, with a new token each time, or TRAWL_API_ACT_TOKEN. Flower asks for a password: a new one each time, or
    TRAWL_FLOWER_AUTH (`user:password`). With --logs, and into a pipe or file, it shows a line for each event, of
    crawlers only warnings and errors; `trawl logs -f` shows everything.

    **Examples:**

        trawl up
        trawl up --fleet forum_list=1,forum_detail=4 --port-flower 0
    """
    return run_fleet(fleet, port_flower, port_exporter, logs=logs)


def run_fleet(
    fleet: str | None,
    port_flower: int,
    port_exporter: int,
    *,
    logs: bool,
    on_page: Callable[[str], None] | None = None,
) -> int:
    """Run everything until Ctrl-C; return the exit code. `on_page` gets the link of the status page once it answers."""
    refuse_example_secrets(os.environ)
    _refuse_wrong_variables()
    start_checks.require_for_worker(node_crawlers())
    application().check()
    interrupts = Interrupts()
    interrupts.listen()
    if variable("TRAWL_LOG_STREAM") is None:
        os.environ["TRAWL_LOG_STREAM"] = "WARNING"  # of crawlers; everything is in their files
    flower = FlowerAccess.on(take(port_flower))
    page = PageAccess.on(take(port_exporter))
    first = runs_here()
    _warn_of_what_is_missing()
    with redis_client() as client:
        _refuse_to_differ(client)
        _check_names(client)
        size = _resize(client, fleet)
    if interrupts.count:
        return INTERRUPTED
    to = console()
    shown = UpScreen(to) if to.is_terminal and not logs else UpLog(to)
    if first:
        shown.line("trawl", f"this fleet runs here already, as node {first}: this is a second node of it, not a second fleet")
    services = Services(node_services(flower, page), shown.line)
    try:
        with shown.running(_welcome(size, flower, page), _overview):
            services.start()
            while not interrupts.asked:
                services.tend()
                if on_page is not None and answers(page.port):
                    on_page(page.link)
                    on_page = None
                time.sleep(TICK_S)
        shown.line("trawl", "stopping: crawlers finish their pages (Ctrl-C again: at once)")
    finally:
        services.stop(hurry=lambda: interrupts.impatient)
    shown.line("trawl", "everything is stopped; what is queued and stored stays")
    return 0


def _overview() -> Overview:
    with redis_client(impatient(redis_url(), LOOK_S)) as client:
        return OverviewReader(client).read()


def _refuse_wrong_variables() -> None:
    """Raise ConfigError for a value that crawlers or another process would refuse again and again; report unknown names."""
    if wrong := [row.fault for row in rows() if row.fault]:
        raise ConfigError("; ".join(wrong))
    for line in unknown():
        complain(line)


def _warn_of_what_is_missing() -> None:
    """Print what the services lack; not the missing site file of a project that has other spiders."""
    if not (lines := application().start_warnings(default_fleet())):
        return
    from forums import FORUM_DETAIL, FORUM_LIST  # the only application with such a warning

    if not project_spiders() - {FORUM_DETAIL, FORUM_LIST}:
        for line in lines:
            complain(line)


def runs_here() -> str | None:
    """Return the node of another `trawl up` of this fleet on this machine; None where none runs."""
    if (url := running_url()) is None:
        return None
    with suppress(TrawlError), redis_client(url) as client:
        now, here = server_time(client), re.compile(rf"up-(\d+)@{re.escape(socket.gethostname())}")
        for node in Nodes(client).all():
            # The heartbeat of a killed node is valid for some seconds more.
            if (found := here.fullmatch(node.name)) and node.alive(now) and psutil.pid_exists(int(found[1])):
                return node.name
    return None


def _refuse_to_differ(client: redis.Redis) -> None:
    """Raise TrawlError where this machine has another database or other files than the nodes that run elsewhere."""

    application().check_node(client)
    here, now = socket.gethostname(), server_time(client)
    others = [node for node in Nodes(client).all() if node.alive(now) and not node.name.endswith(f"@{here}")]
    if found := differences([*others, NodeRecord(name=f"this machine ({here})", files=shared_digests())]):
        raise TrawlError(f"{'; '.join(found)}: copy them from one to the other, then start again")


def _check_names(client: redis.Redis) -> None:
    """Raise ConfigError for a name in TRAWL_FLEET that is neither declared elsewhere nor a spider of this project."""
    named = [name for name, one in declarations(client).items() if one.origin == "TRAWL_FLEET"]
    if spiders := project_spiders() if named else set():
        for name in named:
            if name not in spiders:
                raise ConfigError(f"TRAWL_FLEET: {unknown_name('spider', name, spiders)}")


def _declare_spiders(client: redis.Redis, names: Collection[str]) -> None:
    """Declare the spiders of this project among `names` that no declaration has. Raises ConfigError for unknown names."""
    if missing := sorted(set(names) - (known := declared_fleet(client)).keys()):
        spiders = project_spiders()
        for name in missing:
            if name not in spiders:
                raise unknown_name("spider", name, {*spiders, *known})
        for name in missing:
            Declared(client).declare(name, check_service(name, {"size": 0}, name))


def _resize(client: redis.Redis, fleet: str | None) -> dict[str, int]:
    """Scale as requested, and make room for that on this node; return the size of every service. Raises ConfigError."""
    autoscaling = Autoscaling(client)
    sizes = parse_sizes([fleet]) if fleet else {}
    _declare_spiders(client, sizes)
    desired = scale(Registry(client), autoscaling, sizes)
    _make_room(largest_fleet(desired, autoscaling))
    return desired


def _make_room(largest: dict[str, int]) -> None:
    """Size the node, which is a child, for the requested fleet; report crawlers that have no room."""
    room, wanted = node_crawlers(), sum(largest.values())
    named = variable("TRAWL_NODE_CRAWLERS") is not None
    if named and room < wanted:
        complain(f"TRAWL_NODE_CRAWLERS={room}: this node has no room for {wanted - room} of {wanted} crawlers; raise or unset it")
    # The worker would make room for the default fleet only.
    if not named:
        os.environ["TRAWL_NODE_CRAWLERS"] = str(max(room, wanted))


def _welcome(size: dict[str, int], flower: FlowerAccess, page: PageAccess) -> list[tuple[str, str]]:
    logs, here = data_dir() / "logs", Path.cwd()
    login = "log in with TRAWL_API_ACT_TOKEN to act" if page.given else "logged in"
    seed = f"{first}, " if (first := application().first_command(size)) else ""
    return [
        ("page", f"{page.link}  ({login})"),
        ("Flower", f"{flower.url}  user {flower.user}, {flower.how_to_log_in}"),
        ("exporter", f"{page.url}  (/metrics)"),
        ("Redis", masked(redis_url())),
        ("logs", f"{logs.relative_to(here) if logs.is_relative_to(here) else logs}  (one for each crawler)"),
        ("size", sentence(size) or "no service is declared; jobs are served"),
        ("next", f"{seed}trawl status --watch" if size else "trawl job start SPIDER, or for ever: trawl services add SPIDER"),
    ]


def api(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="0 takes any free one.")] = 6800,
) -> NoReturn:
    """Serve the fleet's HTTP API until Ctrl-C or SIGTERM.

    It needs TRAWL_API_READ_TOKEN or TRAWL_API_ACT_TOKEN, in the environment or in `.env`. Exit code 1 if it cannot serve.

    **Examples:**

        trawl api
        trawl api --host 0.0.0.0 --port 6801
    """
    command = own_module("monitoring.api", f"--host={host}", f"--port={port}")
    os.execv(command[0], command)  # noqa: S606 - no shell is what we want


def watch(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The front page of the forum, as forum.example.org.")],
    contact: Contact = None,
    name: SiteName = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page with the newest posts.")] = True,
    logs: Annotated[bool, typer.Option("--logs", help="Show the lines of all processes in place of one screen.")] = False,
    allow_private: AllowPrivate = False,
) -> int:
    """Watch a forum: recognise or learn its pages, start everything on this machine, open the page with its newest posts.

    It is `trawl sites new`, then `trawl up`, in this folder: `sites/` gets the site file, `data/` the posts. A forum with a site
    file is not learned again. Where the fleet runs already, it reads the new file within seconds, and nothing else is started.
    You are asked for a contact, which the site's operator sees; without a terminal name it with --contact.

    **Examples:**

        trawl watch forum.example.org
        trawl watch https://forum.example.org/board/ --contact you@example.org --no-browser
    """
    from forum_reader.definition.page_requests import is_this_machine, place_of
    from forums.sites import load_all

    from .sites_new import write

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
