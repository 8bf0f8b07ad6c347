"""Every `TRAWL_*` variable of the fleet, in the groups in which they are read; `forums/environment.py` has those of forums."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from redis_components.embedded import data_dir
from redis_components.server.names import MOST_SLOTS, fleet_namespace
from redis_components.server.signing import parse_keys

from .declaration import (
    DEFAULT_FLEET,
    EmptyIsNone,
    Number,
    Secret,
    Switch,
    Variables,
    Whole,
    declare,
    parse_fleet,
    parse_hosts,
    parse_login,
    parse_names,
    parsed_by,
)
from .machine import cores, memory_bytes, places

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
_LOWER, _UPPER = parsed_by(str.lower), parsed_by(str.upper)
_LEVELS = "DEBUG, INFO, WARNING, ERROR, CRITICAL"


def _health_dir(text: object) -> Path:
    return Path(str(text)).expanduser().absolute() if text else data_dir() / "run" / "health"


class Frontier(Variables):
    """Redis and folders; the frontier reads these without the fleet, too"""

    redis_url: Annotated[Secret | None, EmptyIsNone] = declare(
        None,
        "Redis for everything: one server, Sentinel or Cluster, in the forms of [deployment.md](../deployment.md#connections)",
        shown="a private server",
    )
    namespace: Annotated[str, parsed_by(lambda _: fleet_namespace())] = declare(
        "",
        "name before every key of fleet and crawls ([its form](#form-of-a-namespace))",
        shown="none",
    )
    redis_bin: Annotated[Path | None, EmptyIsNone] = declare(None, "server program for the private Redis", shown="found on PATH")
    data_dir: Annotated[Path, parsed_by(lambda _: data_dir())] = declare(
        meaning="database, logs, the private Redis", shown="`data` next to `scrapy.cfg`", derived=lambda _: data_dir()
    )
    env_file: str | None = declare(
        None,
        "file with more variables, one `NAME=value` a line, for all that are not set; empty: none ([below](#files))",
        shown="`.env` next to `scrapy.cfg`",
    )


class Health(Variables):
    """Health checks"""

    health_dir: Annotated[Path, parsed_by(_health_dir)] = declare(
        meaning="status files of workers and beats, which `trawl health` reads; on a file system in memory it costs no disk",
        shown="`run/health` in the data folder",
        derived=lambda _: _health_dir(""),
    )


class Fleet(Variables):
    """The fleet"""

    broker_url: Annotated[Secret | None, EmptyIsNone] = declare(
        None,
        "another Redis for Celery's messages and results, but no Cluster",
        shown="`TRAWL_REDIS_URL`",
    )
    redis_users: Annotated[Path | None, EmptyIsNone] = declare(
        None,
        "file of `trawl config acl --service NAME --passwords FILE`: each service's own user of Redis"
        " ([security.md](../security.md#a-user-for-each-service))",
        shown="the worker's user",
    )
    fleet: Annotated[dict[str, int], parsed_by(lambda text: parse_fleet(text or DEFAULT_FLEET))] = declare(
        meaning="services, by the names of their spiders ([names](../deployment.md#names)), and their sizes until `trawl scale`"
        " changes them",
        shown=f"`{DEFAULT_FLEET}`",
        derived=lambda _: parse_fleet(DEFAULT_FLEET),
    )
    config: Annotated[Path | None, EmptyIsNone] = declare(
        None,
        "file that declares the fleet: services, events, limits, schedule and variables ([below](#trawltoml))",
        shown="`trawl.toml` next to `scrapy.cfg`, if there is one",
    )
    services: Annotated[Path | None, EmptyIsNone] = declare(
        None,
        "file with [services], which is read for one release; they belong into `trawl.toml`",
        shown="`services.toml` next to `scrapy.cfg`, if there is one",
    )
    node_crawlers: Whole = declare(
        meaning="crawlers that one worker may host",
        rule=f"the crawlers of one node are a whole number from 1 to {MOST_SLOTS}",
        shown="4 for each core, one for each 192 MB, at most 16; the fleet if larger",
        derived=lambda before: max(places(cores(), memory_bytes()), sum(before.get("fleet", {}).values())),
        ge=1,
        le=MOST_SLOTS,
    )
    shutdown_grace_s: Number = declare(
        10.0,
        "s that pages in flight get when crawlers are stopped ([who waits longer](../deployment.md#stopping-and-updating))",
        rule="must be a number of seconds from 0 to 3600",
        ge=0,
        le=3600,
    )
    warm_start: Switch = declare(
        True,
        "0: execute each crawler, do not fork it from a process that has imported Scrapy and Trawl"
        " ([runs.md](../runs.md#what-a-member-costs))",
        rule="must be 1 or 0",
        shown="1",
    )
    wheels_dir: Annotated[Path | None, EmptyIsNone] = declare(
        None,
        "folder of `trawl deploy`'s wheels, from which nodes install them: the same, or a copy, on every node",
        shown="`wheels` in the data folder",
    )
    job_retention_s: Number = declare(
        604_800.0,
        "s for which keys and record of a job (`trawl job start`) are kept after its end; items stay until taken",
        rule="must be a number of seconds from 60 to 31536000",
        ge=60,
        le=31_536_000,
    )
    task_modules: Annotated[tuple[str, ...], parsed_by(parse_names)] = declare(
        (),
        "modules with an operator's own Celery tasks, `shop.tasks,shop.reports`"
        " ([deployment.md](../deployment.md#your-own-tasks))",
        shown="none",
    )


def _default_application() -> str:
    """Return the forum crawl where it can be imported."""
    try:
        return "forums.application" if all(map(find_spec, ("forums", "forum_reader"))) else ""
    except ModuleNotFoundError:
        return ""


class FleetApplication(Variables):
    """The application"""

    application: str = declare(
        meaning="module of the application, with its tasks, settings and sites (`workers/application.py`); empty: a fleet without"
        " the forum crawl",
        shown="`forums.application` where it is installed",
        derived=lambda _: _default_application(),
    )


class Crawlers(Variables):
    """Crawlers with the fleet's Scrapy settings (`workers/settings.py`)"""

    allow_private: Switch = declare(
        False,
        "1: names of every site may resolve to private addresses, as with `allow_private = true`"
        " ([security.md](../security.md#the-owner-of-a-name))",
        rule="must be 1 or 0",
        shown="0",
    )
    max_queued_threads: Whole = declare(
        10_000,
        "SCHEDULER_MAX_FED_TASKS of the fleet's crawlers: threads of one site that may wait for `forum_detail`",
        rule="must be a whole number from 1 to 1000000000",
        ge=1,
        le=1_000_000_000,
    )
    log_level: Annotated[Level, _UPPER] = declare("INFO", "of the crawlers", rule=f"must be a level, {_LEVELS}")


class Logs(Variables):
    """Logs"""

    log_format: Annotated[Literal["text", "json"], _LOWER] = declare(
        "text",
        "`json`: each line of worker and beat is a JSON object, those of crawlers with their slots"
        " ([operations.md](../operations.md#logs-for-a-collector))",
        rule="must be text or json",
    )
    log_max_mb: Number = declare(
        10.0,
        "MiB of a crawler's log file; then it is rotated",
        rule="must be a number of MiB, such as 10 or 0.5",
        ge=0.001,
        le=10_000,
    )
    log_files: Whole = declare(
        3, "rotated log files that are kept of each slot", rule="must be a whole number from 1 to 100", ge=1, le=100
    )
    log_stream: Annotated[Level | Literal["OFF"], _UPPER] = declare(
        "INFO",
        "from which level on a crawler's lines also stand in its worker's log; `OFF`: none",
        rule=f"must be a level, {_LEVELS}, or OFF",
        shown="`INFO`; `WARNING` under `trawl up`",
    )


class Flower(Variables):
    """Flower"""

    flower_auth: Annotated[Secret | None, EmptyIsNone, parsed_by(lambda text: parse_login(text) and text)] = declare(
        None, "`user:password` of the Flower that `trawl up` starts", shown="a new password each time"
    )


class Exporter(Variables):
    """The exporter"""

    exporter_hosts: Annotated[frozenset[str], parsed_by(parse_hosts)] = declare(
        frozenset(),
        "more names, without ports, with commas between them, by which the exporter may be asked"
        " ([monitoring.md](../monitoring.md#who-may-see-it))",
        shown="none",
    )


class Api(Variables):
    """The HTTP API"""

    api_read_token: Annotated[Secret | None, EmptyIsNone] = declare(
        None,
        "token for reading the API ([http-api.md](../http-api.md)) and the page"
        " ([monitoring.md](../monitoring.md#who-may-see-it)), at least 16 characters",
        shown="none",
    )
    api_act_token: Annotated[Secret | None, EmptyIsNone] = declare(
        None, "token for reading and acting through the API and the page, at least 16 characters", shown="none"
    )


class Signing(Variables):
    """Signed messages"""

    signing_key: Annotated[Secret | None, EmptyIsNone, parsed_by(lambda text: parse_keys(text) and text)] = declare(
        None,
        "keys that sign messages and schedule, of 32 characters or more; better a file, `TRAWL_SIGNING_KEY_FILE`"
        " ([security.md](../security.md#signed-messages))",
        shown="none: nothing is signed",
    )
    signing_max_age: Number = declare(
        3600.0,
        "s for which the signature of a message holds; an older message is set aside",
        rule="must be a number of seconds from 60 to 31536000",
        ge=60,
        le=31_536_000,
    )


class S3(Variables):
    """S3-compatible storage"""

    s3_endpoint: str = declare(
        "https://s3.amazonaws.com",
        "server of buckets that `trawl items consume` writes to ([services.md](../services.md#objects-in-s3-compatible-storage))",
        rule="must be https://HOST or http://HOST:PORT",
        pattern=r"^https?://[^/\s@]+/?$",
    )
    s3_access_key: Annotated[Secret | None, EmptyIsNone] = declare(
        None, "name of the login there", shown="`AWS_ACCESS_KEY_ID`, or the role of the machine"
    )
    s3_secret_key: Annotated[Secret | None, EmptyIsNone] = declare(None, "its secret", shown="`AWS_SECRET_ACCESS_KEY`")
    s3_region: str | None = declare(None, "region of the bucket", shown="asked of the server")


class Tool(Variables):
    """The command `trawl`"""

    debug: Switch = declare(False, "1: show tracebacks of errors in `trawl`", rule="must be 1 or 0", shown="0")


COMPOSE = (
    *("redis_password", "redis_maxmemory", "redis_memory", "list_crawlers", "detail_crawlers", "list_queues", "detail_queues"),
    *("list_replicas", "detail_replicas", "list_memory", "detail_memory", "control_memory", "list_cpus", "detail_cpus"),
    *("control_cpus", "env_file", "stop_grace", "image", "tag"),
)
"""Names that `docker-compose.yml` alone reads; docs/reference/settings.md has their meanings."""

GROUPS: tuple[type[Variables], ...] = (
    Frontier,
    Fleet,
    Health,
    Crawlers,
    Logs,
    FleetApplication,
    Signing,
    Exporter,
    Api,
    S3,
    Flower,
    Tool,
)
