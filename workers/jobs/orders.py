"""Settings that a task or an API call may set for a crawl; an operator's commands may set any."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import redis

from redis_components.errors import ConfigError
from redis_components.frontier.holds import HoldKind
from workers.fleet.sizes import desired_fleet
from workers.state.holds import FleetHolds, word_of
from workers.state.jobs import Job, JobState
from workers.state.nodes import Nodes, shortages
from workers.state.registry import Registry

# Who can send a task could have any class loaded, or any file written, by the settings that name them.
ALLOWED_SETTINGS = frozenset(
    {
        "AUTOTHROTTLE_ENABLED",
        "AUTOTHROTTLE_MAX_DELAY",
        "AUTOTHROTTLE_START_DELAY",
        "AUTOTHROTTLE_TARGET_CONCURRENCY",
        "CLOSESPIDER_ERRORCOUNT",
        "CLOSESPIDER_ITEMCOUNT",
        "CLOSESPIDER_PAGECOUNT",
        "CLOSESPIDER_TIMEOUT",
        "CONCURRENT_ITEMS",
        "CONCURRENT_REQUESTS",
        "CONCURRENT_REQUESTS_PER_DOMAIN",
        "COOKIES_ENABLED",
        "DEPTH_LIMIT",
        "DEPTH_PRIORITY",
        "DOWNLOAD_DELAY",
        "DOWNLOAD_MAXSIZE",
        "DOWNLOAD_TIMEOUT",
        "RANDOMIZE_DOWNLOAD_DELAY",
        "REDIRECT_ENABLED",
        "REDIRECT_MAX_TIMES",
        "RETRY_ENABLED",
        "RETRY_TIMES",
        "ROBOTSTXT_OBEY",
        "USER_AGENT",
    }
)


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise ConfigError for a setting that only an operator's command or the project may set, and for a value that is neither a
    switch, a finite number nor another text.
    """
    if foreign := sorted(set(settings) - ALLOWED_SETTINGS):
        raise ConfigError(
            f"{', '.join(foreign)}: cannot be set by a task or by the API, which have fewer rights than an operator; set it in"
            f" the project's settings, or use trawl run -s. Allowed: {', '.join(sorted(ALLOWED_SETTINGS))}"
        )
    for name, value in settings.items():
        try:
            is_wrong = not isinstance(value, bool | int | float | str) or not math.isfinite(float(value))
        except ValueError:  # a text
            is_wrong = False
        except OverflowError:
            is_wrong = True
        if is_wrong:
            raise ConfigError(f"{name} = {str(value)!r:.100}: must be a switch, a finite number or a text")


NO_NODE = "no node is running: start one with trawl up, or with celery -A tasks worker"
NODE_FOR_IT = "start one that does (celery -A tasks worker, without -Q)"
MAKE_ROOM = "start another node, end another job (trawl jobs cancel), or scale a service down"


def delay(client: redis.Redis, job: Job) -> str:
    """Return one line with the fix; "" where its crawlers work, or are about to. Raises `redis.RedisError`."""
    if job.state is not JobState.RUNNING:
        return ""
    held = FleetHolds(client).all([job.id])
    if (word := word_of(job.id, held)) in (HoldKind.STOP, HoldKind.PAUSE):
        what = next(one for one in held if one.hold.word is word and one.slot is None and not one.site)
        return f"{what.what} is {word.state}: trawl resume {what.service or '--all'}"
    registry = Registry(client)
    crawlers, now, desired = registry.crawlers(), registry.now(), desired_fleet(registry)
    slots = registry.slots(desired, crawlers)
    if any(view.spider == job.id and (view.token is not None or view.launching_on) for view in slots):
        return ""
    nodes = Nodes(client).all()
    if not any(node.alive(now) for node in nodes):
        return NO_NODE
    if not (lacking := shortages(desired, slots, nodes, now).get(job.id)):
        return ""
    return f"{lacking}; {MAKE_ROOM if any(job.id in node.services for node in nodes) else NODE_FOR_IT}"
