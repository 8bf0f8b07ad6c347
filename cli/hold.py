"""`trawl pause`, `drain`, `stop` and `resume`: hold the fleet, or a part of it, and let it go on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import redis

    from redis_components.fleet_holds import Held
    from redis_components.holds import HoldWord
    from workers.holding import Target

Services = Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Services (spiders).", show_default=False)]
Slots = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SERVICE[/N]]...", help="Services (spiders), or single slots of them.", show_default=False),
]
Site = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only this site: a site file's name, or a host.", show_default=False)
]
Node = Annotated[str | None, typer.Option(metavar="NAME", help="This node, as `trawl nodes` names it.", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="The whole fleet, also services that come later.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; `trawl status` shows it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print everything that is held then as one line of JSON.")]


def pause(services: Services = None, site: Site = None, whole: All = False, reason: Reason = "", as_json: AsJson = False) -> int:
    """Start no more requests; crawlers stay, and what is queued waits. Takes effect on all crawlers within 2 s.

    Pages in flight finish, and what they lead to is stored. A paused **site** does not slow the others: what is queued for it is
    set aside, in its order. A host includes its subdomains. Start tasks of what is paused are not seeded. It lasts until
    `trawl resume`, through restarts of everything.

    **Examples:**

        trawl pause --site demo --reason "they asked us to"
        trawl pause forum_detail
        trawl pause forum_detail --site example.com
        trawl pause --all
    """
    from redis_components.holds import HoldWord

    return _hold(services, site, whole, HoldWord.PAUSE, reason, as_json)


def drain(
    services: Services = None,
    site: Site = None,
    node: Node = None,
    whole: All = False,
    reason: Reason = "",
    as_json: AsJson = False,
) -> int:
    """Let nothing new in: no start task is taken or seeded, and what is queued is crawled to the end.

    A **node** that is drained takes no more crawlers; its own end gracefully, and other nodes take them over. It lasts until
    `trawl resume`, through restarts of everything.

    **Examples:**

        trawl drain --all
        trawl drain --site demo
        trawl drain --node celery@host1
    """
    from redis_components.holds import HoldWord

    if node is None:
        return _hold(services, site, whole, HoldWord.DRAIN, reason, as_json)
    _only_the_node(services, site, whole)
    from redis_components.nodes import Nodes

    from .redis_access import redis_client

    with redis_client() as client:
        nodes = Nodes(client)
        known = [one.name for one in nodes.all()]
        _check_node(node, known)
        nodes.drain(node)
        if not as_json and len(known) == 1:
            print("trawl: it is the only node: its crawlers have no place to go", file=sys.stderr)
    return _show_node(node, as_json, draining=True)


def stop(
    services: Slots = None,
    whole: All = False,
    now: Annotated[bool, typer.Option("--now", help="Do not wait for pages in flight: they are fetched again later.")] = False,
    reason: Reason = "",
    as_json: AsJson = False,
) -> int:
    """End the crawlers of a service, or of one slot, and keep them away. Their number is kept for `trawl resume`.

    Pages in flight finish within the grace time. What is queued waits, and nothing is seeded for a stopped service.

    **Examples:**

        trawl stop forum_detail
        trawl stop forum_detail/2 --reason "for the debugger"
        trawl stop --all --now
    """
    from redis_components.holds import HoldWord

    return _hold(services, None, whole, HoldWord.STOP, reason, as_json, at_once=now)


def resume(
    services: Slots = None,
    site: Site = None,
    node: Node = None,
    whole: All = False,
    breaker: Annotated[
        bool,
        typer.Option("--breaker", help="With --site: close its breaker, too, and take its pages as they are now for normal."),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """End pauses, drains and stops: of services, slots, a site, a node, or with --all every one in the fleet (but of nodes).

    What is still held after it is said: a service does not go on while the fleet is paused. Slots of what is named that were
    given up (crash-looping, refused) are tried again. What the **breaker** of a site holds stays held: it closes by itself when
    the site is well, or by `--breaker`.

    **Examples:**

        trawl resume --site demo
        trawl resume --site demo --breaker
        trawl resume forum_detail
        trawl resume --all
    """
    from workers import holding

    from .redis_access import redis_client

    if node is not None:
        _only_the_node(services, site, whole)
        from redis_components.nodes import Nodes

        with redis_client() as client:
            nodes = Nodes(client)
            if not nodes.undrain(node):
                _check_node(node, [one.name for one in nodes.all()])
        return _show_node(node, as_json, draining=False)
    target = _target(services, site, whole)
    if breaker and (target.services or target.slots or not target.site):
        from redis_components.errors import ConfigError

        raise ConfigError("--breaker is of a site: trawl resume --site NAME --breaker")
    with redis_client() as client:
        left = holding.resume(client, target)  # which checks the name: the site of a breaker may have no file
        if breaker:
            _close_breaker(client, target.site)
            left = holding.overview(client)
        _show(client, left, as_json, f"{_name(target)}: resumed", "still held")
        if any(one.by_breaker and one.site == target.site for one in left) and not as_json:
            print(f"its breaker closes by itself when the site is well; now: trawl resume --site {target.site} --breaker")
    return 0


def _close_breaker(client: redis.Redis, site: str) -> None:
    from workers.breaker import close_breaker, forgive
    from workers.holding import who

    forgive(client, site, forget=True)
    close_breaker(client, site, f"closed by {who()}")


def _hold(
    services: list[str] | None,
    site: str | None,
    whole: bool,
    word: HoldWord,
    reason: str,
    as_json: bool,
    *,
    at_once: bool = False,
) -> int:
    from redis_components.answers import server_time
    from redis_components.beats import Beats
    from redis_components.holds import HoldWord
    from workers import holding

    from .redis_access import redis_client

    target = _target(services, site, whole)
    with redis_client() as client:
        held = holding.hold(client, target, word, reason=reason, at_once=at_once)
        if word is HoldWord.STOP and Beats(client).look(server_time(client)).stalled:
            print("trawl: no beat is at work, so nobody tells the crawlers yet (celery -A tasks beat)", file=sys.stderr)
        _show(client, held, as_json, f"{_name(target)}: {word.state}; go on with: trawl resume {_words(target)}", "held now")
    return 0


def _target(services: list[str] | None, site: str | None, whole: bool) -> Target:
    """Raises ConfigError for what names nothing, or two things."""
    from workers.holding import Target

    from .targets import parse_target

    named = [parse_target(text) for text in services or ()]
    return Target(
        services=tuple(dict.fromkeys(name for name, number in named if number is None)),
        slots=tuple(dict.fromkeys((name, number) for name, number in named if number is not None)),
        site=site or "",
        whole=whole,
    )


def _name(target: Target) -> str:
    from redis_components.fleet_records import slot_name

    places = ", ".join([*target.services, *starmap(slot_name, target.slots)])
    if target.site:
        return f"site {target.site} in {places}" if places else f"site {target.site}"
    return places or "the whole fleet"


def _words(target: Target) -> str:
    """The target as it is typed."""
    from redis_components.fleet_records import slot_name

    words = [*target.services, *starmap(slot_name, target.slots)]
    words += ["--site", target.site] if target.site else []
    return " ".join(words or ["--all"])


def _show(client: redis.Redis, held: Sequence[Held], as_json: bool, said: str, heading: str) -> None:
    from redis_components.answers import server_time

    from .held_view import held_json, held_lines
    from .output import print_json

    now = server_time(client)
    if as_json:
        print_json({"held": [held_json(one) for one in held]})
        return
    print(said)
    if len(held) > 1 or (held and heading == "still held"):
        print(f"{heading}:", *held_lines(held, now), sep="\n  ")


def _only_the_node(services: list[str] | None, site: str | None, whole: bool) -> None:
    from redis_components.errors import ConfigError

    if services or site or whole:
        raise ConfigError("--node is meant by itself: leave services, --site and --all out")


def _check_node(node: str, known: Sequence[str]) -> None:
    from redis_components.errors import ConfigError

    if node not in known:
        raise ConfigError(f"unknown node {node!r}: there are {', '.join(known) or 'none'}; trawl nodes shows them")


def _show_node(node: str, as_json: bool, *, draining: bool) -> int:
    from .output import print_json

    result: dict[str, Any] = {"node": node, "draining": draining}
    if as_json:
        print_json(result)
    else:
        print(f"{node}: draining; go on with: trawl resume --node {node}" if draining else f"{node}: resumed")
    return 0
