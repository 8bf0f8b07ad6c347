"""`trawl pause`, `drain`, `stop` and `resume`: hold the fleet or a part of it, and end holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import redis
import typer

from cli.access import redis_client
from cli.views.fleet_tables import held_json, held_table
from cli.views.options import AsJson
from cli.views.output import complain, echo, report
from cli.views.tables import console
from redis_components.errors import ConfigError, unknown_name
from redis_components.frontier.holds import HoldKind
from redis_components.server.untrusted_values import server_time
from workers.fleet import holds
from workers.fleet.holds import HoldTarget, who
from workers.state.beats import Beats
from workers.state.holds import Held
from workers.state.nodes import Nodes

Services = Annotated[list[str] | None, typer.Argument(metavar="SERVICE", help="Services (spiders).")]
Site = Annotated[str | None, typer.Option(metavar="NAME", help="Only this site: the name of a site file, or a host.")]
Node = Annotated[str | None, typer.Option(metavar="NAME", help="Only this node (see `trawl status`).")]
All = Annotated[bool, typer.Option("--all", help="The whole fleet, including services that are added later.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="The reason, which `trawl status` shows.")]


def pause(services: Services = None, site: Site = None, whole: All = False, reason: Reason = "", as_json: AsJson = False) -> int:
    """Start no more requests; crawlers stay, and queued requests wait. Takes effect on all crawlers within 2 s.

    Pages in flight finish, and their results are stored. A paused **site** does not slow the others: its queued requests are set
    aside, in order. A host includes its subdomains. Paused services and sites are not seeded. A pause lasts until
    `trawl resume`, also when the fleet is restarted.

    **Examples:**

        trawl pause --site demo --reason "they asked us to"
        trawl pause forum_detail
        trawl pause forum_detail --site example.com
        trawl pause --all
    """
    return _hold(services, site, whole, HoldKind.PAUSE, reason, as_json)


def drain(
    services: Services = None,
    site: Site = None,
    node: Node = None,
    whole: All = False,
    reason: Reason = "",
    as_json: AsJson = False,
) -> int:
    """Accept no new work: no start task is taken or seeded, and queued requests are crawled to the end.

    A drained **node** takes no more crawlers; its crawlers end gracefully, and other nodes take them over. A drain lasts until
    `trawl resume`, also when the fleet is restarted.

    **Examples:**

        trawl drain --all
        trawl drain --site demo
        trawl drain --node celery@host1
    """
    if node is None:
        return _hold(services, site, whole, HoldKind.DRAIN, reason, as_json)
    _only_the_node(services, site, whole)
    with redis_client() as client:
        nodes = Nodes(client)
        known = [one.name for one in nodes.all()]
        if node not in known:
            raise unknown_name("node", node, known)
        nodes.drain(node)
        if not as_json and len(known) == 1:
            complain("this is the only node: no other node can take over its crawlers")
    return _show_node(node, as_json, draining=True)


def stop(
    services: Services = None,
    whole: All = False,
    now: Annotated[bool, typer.Option("--now", help="Do not finish pages in flight; they are fetched again later.")] = False,
    reason: Reason = "",
    as_json: AsJson = False,
) -> int:
    """Stop the crawlers of a service until `trawl resume` starts the same number again.

    Pages in flight finish within the grace period. Queued requests wait, and a stopped service is not seeded.

    **Examples:**

        trawl stop forum_detail --reason "for the debugger"
        trawl stop --all --now
    """
    return _hold(services, None, whole, HoldKind.STOP, reason, as_json, at_once=now)


def resume(
    services: Services = None,
    site: Site = None,
    node: Node = None,
    whole: All = False,
    breaker: Annotated[
        bool, typer.Option("--breaker", help="With --site: also close its breaker, and accept its present pages as normal.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """End pauses, drains and stops of services, a site or a node; with --all all of them except drains of nodes.

    The command lists what is still held: a service stays paused while the whole fleet is paused. Slots that were given up
    (crash-looping, refused) are tried again. A site that its **breaker** holds stays held: the breaker closes when a probe finds
    the site well again, or with `--breaker`.

    **Examples:**

        trawl resume --site demo
        trawl resume --site demo --breaker
        trawl resume forum_detail
        trawl resume --all
    """
    if node is not None:
        _only_the_node(services, site, whole)
        with redis_client() as client:
            nodes = Nodes(client)
            if not nodes.undrain(node) and node not in (known := [one.name for one in nodes.all()]):
                raise unknown_name("node", node, known)
        return _show_node(node, as_json, draining=False)
    target = _target(services, site, whole, "resume")
    if breaker and (target.services or not target.site):
        raise ConfigError("--breaker needs --site: trawl resume --site NAME --breaker")
    with redis_client() as client:
        left = holds.resume(client, target)  # which checks the name: the site of a breaker may have no file
        if breaker:
            from workers.breaker import close_breaker

            close_breaker(client, target.site, f"closed by {who()}")
            left = holds.overview(client)
        _show(client, left, as_json, f"{_name(target)}: resumed", resumed=True)
        if any(one.by_breaker and one.site == target.site for one in left) and not as_json:
            echo(f"its breaker closes when a probe finds the site well; now: trawl resume --site {target.site} --breaker")
    return 0


def _hold(
    services: list[str] | None,
    site: str | None,
    whole: bool,
    word: HoldKind,
    reason: str,
    as_json: bool,
    *,
    at_once: bool = False,
) -> int:
    target = _target(services, site, whole, word.value)
    with redis_client() as client:
        held = holds.hold(client, target, word, reason=reason, at_once=at_once)
        if word is HoldKind.STOP and Beats(client).look(server_time(client)).stalled:
            complain("no beat is running, so crawlers do not stop yet: start celery -A tasks beat")
        _show(client, held, as_json, f"{_name(target)}: {word.state}, until trawl resume")
    return 0


def _target(services: list[str] | None, site: str | None, whole: bool, command: str) -> HoldTarget:
    """Return the target. Raises ConfigError where nothing is named."""
    if not (services or site or whole):
        raise ConfigError(f"trawl {command} did nothing, because nothing was named: trawl {command} --help has what may be")
    return HoldTarget(services=tuple(dict.fromkeys(services or ())), site=site or "", whole=whole)


def _name(target: HoldTarget) -> str:
    places = ", ".join(target.services)
    if target.site:
        return f"site {target.site} in {places}" if places else f"site {target.site}"
    return places or "the whole fleet"


def _show(client: redis.Redis, held: Sequence[Held], as_json: bool, outcome: str, *, resumed: bool = False) -> None:
    report(as_json, {"held": [held_json(one) for one in held]}, outcome)
    if not as_json and (len(held) > 1 or (held and resumed)):
        echo("still held:" if resumed else "held now:")
        console().print(held_table(held, server_time(client)))


def _only_the_node(services: list[str] | None, site: str | None, whole: bool) -> None:
    if services or site or whole:
        raise ConfigError("--node cannot be combined with services, --site or --all")


def _show_node(node: str, as_json: bool, *, draining: bool) -> int:
    report(
        as_json,
        {"node": node, "draining": draining},
        f"{node}: draining; go on with: trawl resume --node {node}" if draining else f"{node}: resumed",
    )
    return 0
