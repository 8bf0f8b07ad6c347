"""Redis users for the processes of one fleet, each with the keys and commands that it needs.

Keys come from their one declaration. Commands are Redis's categories without the dangerous ones: no user gets FLUSHALL, KEYS,
CONFIG, SHUTDOWN, DEBUG, REPLICAOF, MIGRATE or ACL. A script runs with the rights of its caller, so a role without `@write`
changes nothing through EVALSHA either. No user may load functions, which stay in the server and run with the rights of each
caller. `cli-admin` may kill a script that never ends.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from cli.views.options import AsJson
from cli.views.output import echo, print_json, write_private
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from redis_components.server.names import fleet_namespace, literal, service_name
from workers.application import application
from workers.fleet.sizes import default_fleet
from workers.state.keys import FleetKeys

_ANY = "*"
_READ = ("+@read", "+@connection", "+@transaction", "+time")
_WRITE = (*_READ, "+@write")
_SCRIPTS = ("-@scripting", "+eval", "+evalsha", "+script|load", "+script|exists")  # FUNCTION is of the category, 6.2 lacks it
_SAFE = ("-@dangerous", "+info", "-@admin")
_CELERY = ("_kombu.*", "control*", "*.pidbox", "celery*", "unacked*", "*.reply.celery.pidbox")
"""Keys of the broker that senders of tasks and of remote control use, without the namespace before each."""


@dataclass(frozen=True, kw_only=True)
class Role:
    """One user: key patterns with the namespace, channel patterns, and commands as ACL SETUSER takes them."""

    name: str
    purpose: str
    keys: tuple[str, ...]
    reads: tuple[str, ...] = ()  # key patterns that it reads only; Redis 7
    channels: tuple[str, ...] = ()
    commands: tuple[str, ...]
    kills_scripts: bool = False

    def rules(self, password: str) -> list[str]:
        """Return the rules of ACL SETUSER, the password as its SHA-256 or in the clear, with the sign before it."""
        channels = [f"&{channel}" for channel in self.channels]
        keys = [*(f"~{key}" for key in self.keys), *(f"%R~{key}" for key in self.reads)]
        scripts = (*_SCRIPTS, "+script|kill") if self.kills_scripts else _SCRIPTS
        return ["reset", "on", password, "resetchannels", *keys, *channels, "-@all", *self.commands, *scripts, *_SAFE]


def roles(crawls: Iterable[CrawlKeys]) -> list[Role]:
    """Return the users of the fleet of this namespace, whose services have these crawls.

    Raises ConfigError without a namespace: Celery's keys cannot be distinguished from others' then.
    """
    within = f"{literal(_namespace())}:"
    every = (f"{within}{_ANY}",)
    celery = tuple(f"{within}{key}" for key in _CELERY)
    of_crawls = tuple(dict.fromkeys(pattern for keys in crawls for pattern in _of_crawl(keys)))
    fleet = _fleet_patterns()
    sent = (f"{within}{_ANY}",)
    subscribed = (_ANY,)  # kombu subscribes by patterns, which have to stand in the rules letter by letter, and hold the database
    return [
        Role(
            name="crawler",
            purpose="scrapy crawl: the frontier, limits, and the records of a process",
            keys=(*of_crawls, *fleet["crawler"]),
            commands=_WRITE,
        ),
        Role(
            name="worker",
            purpose="celery worker, and the crawlers that it starts, which inherit its environment",
            keys=every,
            channels=subscribed,
            commands=(*_WRITE, "+@pubsub"),
        ),
        Role(
            name="beat",
            purpose="celery beat: its lock, its rounds, and sending tasks",
            keys=(*celery, *fleet["beat"]),
            channels=sent,
            commands=(*_WRITE, "+publish"),
        ),
        Role(name="exporter", purpose="metrics and status page; changes nothing", keys=every, commands=_READ),
        Role(
            name="flower",
            purpose="Flower: events, remote control and results of Celery; no queue of pages",
            keys=celery,
            channels=subscribed,
            commands=(*_WRITE, "+@pubsub"),
        ),
        Role(name="cli-read", purpose="trawl status, forums, nodes, doctor; changes nothing", keys=every, commands=_READ),
        Role(
            name="cli-admin",
            purpose="every trawl command",
            keys=every,
            channels=sent,
            commands=(*_WRITE, "+@pubsub"),
            kills_scripts=True,
        ),
    ]


def service_role(service: str, feeds: str | None) -> Role:
    """Return the user of the crawlers of one service, which makes start tasks for `feeds`, if for any.

    What all crawlers share is the limits of sites, which each has to count, and the lists below, which have no key for each
    service. Raises ConfigError without a namespace.
    """
    _namespace()
    keys, fleet = CrawlKeys.for_spider(service), FleetKeys()
    written = [fleet.crawls(), fleet.errors(), fleet.runs(), fleet.notes(), fleet.breakers()]
    if any(service in pair for pair in application().feeds().items()):
        written += application().crawler_keys()
    slots = (fleet.fences(), fleet.crawlers(), fleet.orders())  # of all services: one script renews a slot
    begun = (fleet.slot(service, 0)[: -len("0")], fleet.met(""), fleet.error_news(""))
    shared = (*map(literal, (*written, *slots)), *(f"{literal(key)}{_ANY}" for key in begun))
    fed = CrawlKeys.for_spider(feeds) if feeds else None
    return Role(
        name=f"crawler-{service}",
        purpose=f"the crawlers of {service}: its queue, items and stats, the limits of sites; no other service's",
        keys=(*_of_crawl(keys), *(_fed_patterns(fed) if fed else ()), *shared),
        reads=tuple(map(literal, (fleet.holds(), fleet.services(), *((fed.threads(),) if fed else ())))),
        commands=_WRITE,
    )


def _fed_patterns(fed: CrawlKeys) -> list[str]:
    """Return the keys of start tasks that the exchange of the feeding service writes."""
    tasks = (fed.start_tasks(), fed.start_tokens(), fed.fed_tasks, fed.fed_turns, fed.fed_ids(), fed.fed_waiting())
    return list(dict.fromkeys(map(literal, (*tasks, fed.overflow(), fed.overflow_order(), fed.backlog()))))


def _namespace() -> str:
    if namespace := fleet_namespace():
        return namespace
    raise ConfigError("users need a namespace, which all keys of the fleet begin with: set TRAWL_NAMESPACE")


def _of_crawl(keys: CrawlKeys) -> list[str]:
    own = (keys.requests, keys.dupefilter, keys.start_urls, *keys.more_start_urls, keys.items, keys.stats)
    of_sites = (keys.limits, keys.robots(), keys.robots_bytes())
    return [pattern for base in (*own, *of_sites) for pattern in (literal(base), f"{literal(base)}:{_ANY}")]


def _fleet_patterns() -> dict[str, list[str]]:
    fleet = FleetKeys()
    crawler = [
        *(fleet.crawlers(), fleet.crawls(), fleet.errors(), fleet.runs(), fleet.orders(), fleet.fences(), fleet.holds()),
        *(fleet.breakers(), fleet.notes(), *application().crawler_keys()),
    ]
    beat = [
        *(fleet.beat_leader(), fleet.beats(), fleet.beat_runs(), fleet.fences(), fleet.schedule(), fleet.errors()),
        fleet.troubles(),
    ]
    slots = [f"{literal(fleet.slot('', 0)[: -len('/0')])}{_ANY}", f"{literal(fleet.met(''))}{_ANY}"]
    return {"crawler": [*map(literal, crawler), *slots], "beat": [*map(literal, beat)]}


def acl(
    services: Annotated[
        list[str] | None,
        typer.Option("--service", metavar="NAME", help="Only a user for the crawlers of this service; may be repeated."),
    ] = None,
    feeds: Annotated[
        str | None, typer.Option(metavar="NAME", help="The service that those of --service make start tasks for.")
    ] = None,
    passwords: Annotated[
        Path | None,
        typer.Option("--passwords", metavar="FILE", help="Write new passwords into this new file; only its owner may read it."),
    ] = None,
    aclfile: Annotated[bool, typer.Option("--aclfile", help="Print lines of an aclfile instead of commands.")] = False,
    as_json: AsJson = False,
) -> int:
    """Print Redis users for crawler, worker, beat, exporter, Flower and people, each with the keys and commands that it needs.

    Nothing is changed in Redis. Without --passwords the lines have PASSWORD in their place; with it they have the SHA-256 of new
    ones. A process gets its user by TRAWL_REDIS_URL in its environment, redis://beat:PASSWORD@host:6379/0. A namespace is needed.

    With --service the user is `crawler-NAME`, which reads and writes the keys of that service and no other's (Redis 7). A worker
    gives it to the crawlers that it starts: TRAWL_REDIS_USERS names the file of --passwords.

    **Examples:**

        TRAWL_NAMESPACE=job42 trawl config acl
        TRAWL_NAMESPACE=job42 trawl config acl --passwords users.txt | redis-cli --user default
        TRAWL_NAMESPACE=job42 trawl config acl --service books --passwords books.txt | redis-cli --user default
    """
    if feeds is not None and not services:
        raise typer.BadParameter("--feeds goes with --service")
    if services:
        made = [service_role(service_name(service), feeds or application().feeds().get(service)) for service in services]
    else:
        made = roles(CrawlKeys.for_spider(service) for service in default_fleet())
    given = {role.name: secrets.token_urlsafe(24) for role in made} if passwords else {}
    if passwords:
        write_private(passwords, "".join(f"{name} {password}\n" for name, password in given.items()))
    rules = {
        role.name: role.rules(f"#{sha256(given[role.name].encode()).hexdigest()}" if given else ">PASSWORD") for role in made
    }
    if as_json:
        print_json([{"user": role.name, "purpose": role.purpose, "rules": rules[role.name]} for role in made])
        return 0
    for role in made:
        if not aclfile and not passwords:
            echo(f"# {role.purpose}")
        echo(f"{'user' if aclfile else 'ACL SETUSER'} {role.name} {' '.join(rules[role.name])}")
    return 0
