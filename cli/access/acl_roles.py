"""Redis users for the processes of one fleet, each with the keys and commands that it needs.

Keys come from their one declaration. Commands are Redis's categories without the dangerous ones: nobody gets FLUSHALL, KEYS,
CONFIG, SHUTDOWN, DEBUG, REPLICAOF, MIGRATE or ACL. A script runs with the rights of its caller, so a role without `@write`
changes nothing through EVALSHA either. Functions, which stay in the server and run with the rights of whoever calls them, are
for nobody; a script that never ends is killed by `cli-admin`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from forums.state.keys import ForumFleetKeys
from forums.state.services import FORUM_DETAIL, FORUM_LIST
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from redis_components.server.key_patterns import literal
from redis_components.server.namespace import fleet_namespace

FEEDS = {FORUM_LIST: FORUM_DETAIL}
_ANY = "*"
_READ = ("+@read", "+@connection", "+@transaction", "+time")
_WRITE = (*_READ, "+@write")
_SCRIPTS = ("-@scripting", "+eval", "+evalsha", "+script|load", "+script|exists")  # FUNCTION is of the category, 6.2 lacks it
_SAFE = ("-@dangerous", "+info", "-@admin")
_CELERY = ("_kombu.*", "control*", "*.pidbox", "celery*", "unacked*", "*.reply.celery.pidbox")
"""Keys of the broker that whoever sends a task, or a command of remote control, touches; the namespace stands before each."""


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
        """The rules of ACL SETUSER, the password as its SHA-256 or in the clear, with the sign before it."""
        channels = [f"&{channel}" for channel in self.channels]
        keys = [*(f"~{key}" for key in self.keys), *(f"%R~{key}" for key in self.reads)]
        scripts = (*_SCRIPTS, "+script|kill") if self.kills_scripts else _SCRIPTS
        return ["reset", "on", password, "resetchannels", *keys, *channels, "-@all", *self.commands, *scripts, *_SAFE]


def roles(crawls: Iterable[CrawlKeys]) -> list[Role]:
    """The users of the fleet of this namespace, whose services have these crawls.

    Raises ConfigError without a namespace: Celery's keys cannot be told from others' then.
    """
    within = f"{literal(_namespace())}:"
    every = (f"{within}{_ANY}",)
    celery = tuple(f"{within}{key}" for key in _CELERY)
    of_crawls = tuple(dict.fromkeys(pattern for keys in crawls for pattern in _of_crawl(keys)))
    fleet = _fleet_patterns()
    sent = (f"{within}{_ANY}",)
    heard = (_ANY,)  # kombu subscribes by patterns, which have to stand in the rules letter by letter, and hold the database
    return [
        Role(
            name="crawler",
            purpose="scrapy crawl: the frontier, limits, and what a process says of itself",
            keys=(*of_crawls, *fleet["crawler"]),
            commands=_WRITE,
        ),
        Role(
            name="worker",
            purpose="celery worker, and the crawlers that it starts, which inherit its environment",
            keys=every,
            channels=heard,
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
            channels=heard,
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
    keys, fleet = CrawlKeys.for_spider(service), ForumFleetKeys()
    written = (fleet.crawls(), fleet.errors(), fleet.runs(), fleet.notes(), fleet.breakers())
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
    """What the exchange of the service before writes of this one's start tasks."""
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
    fleet = ForumFleetKeys()
    crawler = [
        *(fleet.crawlers(), fleet.crawls(), fleet.errors(), fleet.runs(), fleet.orders(), fleet.fences(), fleet.holds()),
        *(fleet.breakers(), fleet.wrong_sites(), fleet.notes()),
    ]
    beat = [
        *(fleet.beat_leader(), fleet.beats(), fleet.beat_runs(), fleet.fences(), fleet.schedule(), fleet.errors()),
        fleet.troubles(),
    ]
    slots = [f"{literal(fleet.slot('', 0)[: -len('/0')])}{_ANY}", f"{literal(fleet.met(''))}{_ANY}"]
    return {"crawler": [*map(literal, crawler), *slots], "beat": [*map(literal, beat)]}
