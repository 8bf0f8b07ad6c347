"""`trawl migrate scrapy-redis`: continue a crawl that scrapy-redis began."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import redis
import typer

from cli.access import redis_client
from cli.names import check_import
from cli.views.options import AsJson, command_group
from cli.views.output import echo, print_json, working
from redis_components.connection import explain, get_redis_from_settings
from redis_components.errors import ConfigError
from redis_components.frontier.messages import QueueOrder
from redis_components.migration import MigrationReport, Project
from redis_components.server.variables import variable

SHOWN_REASONS = 10

app = command_group()


@app.callback()
def migrate() -> None:
    """Continue a crawl that another package started.

    **Examples:**

        trawl migrate scrapy-redis --help
    """


@app.command("scrapy-redis")
def scrapy_redis(
    spiders: Annotated[list[str], typer.Argument(metavar="SPIDER", help="Names of the spiders whose crawls are imported.")],
    settings: Annotated[
        str | None, typer.Option(metavar="MODULE", help="The project's settings module, when Scrapy does not find it.")
    ] = None,
    allow_pickle: Annotated[bool, typer.Option("--allow-pickle", help="Read pickled requests, in a confined process.")] = False,
    order: Annotated[
        Literal["fifo", "lifo"] | None, typer.Option(help="Order of a list queue, where the project's settings have none.")
    ] = None,
    watch: Annotated[
        float, typer.Option(min=0, max=25, metavar="SECONDS", help="How long to look for running crawlers; 0: not at all.")
    ] = 6.0,
    as_json: AsJson = False,
) -> int:
    """Import the queue and the dupefilter that scrapy-redis left in Redis, so that the crawl continues.

    Stop the crawlers of scrapy-redis first. Run the command in the project's folder, after replacing `scrapy_redis` by
    `redis_components` in its settings. It may be interrupted and repeated; requests that cannot be imported are kept with the
    reason (`trawl dead`). Start tasks stay where they are, and items need no import. See docs/migrating-from-scrapy-redis.md.

    **Examples:**

        trawl migrate scrapy-redis forum --allow-pickle
    """
    from redis_components.migration import Options, migrate, project_of

    options = Options(allow_pickle=allow_pickle, order=QueueOrder(order) if order else None, watch_s=watch)
    sys.path.insert(0, os.getcwd())  # noqa: PTH109  # as `scrapy` has it; a console script has not
    reports = []
    for spider in dict.fromkeys(spiders):
        project = project_of(spider, settings)
        with _client(project) as client, working(spider, shown=not as_json) as progress:
            check_import(client, spider, project)
            report = migrate(client, spider, project, options, lambda what, done, total: progress(done, total, what))
        reports.append(report)
        if not as_json:
            _show(report, project)
    if as_json:
        print_json({report.spider: report for report in reports})
    return 1 if any(report.late for report in reports) else 0


@contextmanager
def _client(project: Project) -> Iterator[redis.Redis]:
    """Yield the Redis of TRAWL_REDIS_URL, else of the project's settings; never the private one, which is empty."""
    if named := variable("TRAWL_REDIS_URL"):
        with redis_client(named) as client:
            yield client
        return
    settings = project.settings
    if not any(settings.get(name) for name in ("REDIS_URL", "REDIS_HOST", "REDIS_PARAMS")):
        raise ConfigError("no Redis is configured: set TRAWL_REDIS_URL, or run this in the folder of a project with a REDIS_URL")
    in_bytes = settings.copy()  # even when the project decodes: members of the queue are bytes
    in_bytes.set("REDIS_DECODE_RESPONSES", False, priority="cmdline")
    in_bytes.set("REDIS_PARAMS", {**settings.getdict("REDIS_PARAMS"), "decode_responses": False}, priority="cmdline")
    try:
        yield get_redis_from_settings(in_bytes)
    except redis.RedisError as error:
        raise explain(error, settings.get("REDIS_URL") or f"redis://{settings.get('REDIS_HOST', 'localhost')}") from error


def _show(report: MigrationReport, project: Project) -> None:
    requests, fingerprints = report.requests, report.fingerprints
    if not requests.found and not fingerprints.found:
        echo(f"{report.spider}: scrapy-redis has left nothing to import in {project.keys.theirs.requests} or its dupefilter")
    else:
        _show_import(report)
    for line in _advice(report, project):
        echo(f"  {line}")


def _show_import(report: MigrationReport) -> None:
    requests, fingerprints = report.requests, report.fingerprints
    echo(f"{report.spider}: {requests.imported:,} requests imported, {requests.dead.total():,} kept among the dead,")
    echo(f"  {fingerprints.imported:,} fingerprints imported, in {report.seconds:.1f} s")
    for reason, count in requests.dead.most_common(SHOWN_REASONS):
        echo(f"  dead: {count:,} because {reason}")


def _advice(report: MigrationReport, project: Project) -> Iterator[str]:
    """Yield the remaining steps."""
    if project.order is None:
        yield f"the queue is left as it is: the project's own queue class goes on with {project.keys.theirs.requests}"
    if project.filter is None:
        yield f"the dupefilter is left as it is: the project's own class goes on with {project.keys.theirs.dupefilter}"
    if report.late:
        yield f"{report.late:,} requests or fingerprints came meanwhile: an old crawler still runs; stop it, and repeat this"
    fingerprinter = str(project.settings.get("REQUEST_FINGERPRINTER_CLASS"))
    if report.fingerprints.imported and not fingerprinter.startswith("redis_components."):
        yield 'set REQUEST_FINGERPRINTER_CLASS = "redis_components.fingerprint.ScrapyRedisFingerprinter"'
        yield "  (OldScrapyFingerprinter if scrapy-redis before 0.8 began the dupefilter; neither if your project makes its own)"
    if report.requests.classes:
        yield f"SCHEDULER_REQUEST_CLASSES must hold {', '.join(sorted(report.requests.classes))}"
