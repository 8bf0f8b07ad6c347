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
from cli.views.output import echo, print_json, progress_bar
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
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Keep the requests as they are, for the SCHEDULER_SERIALIZER of the project.")
    ] = False,
    order: Annotated[
        Literal["fifo", "lifo"] | None, typer.Option(help="Order of a list queue, where the project's settings have none.")
    ] = None,
    convert_start_tasks: Annotated[
        bool, typer.Option("--convert-start-tasks", help="Move fields that scrapy-redis sent as a form into formdata.")
    ] = False,
    watch: Annotated[
        float, typer.Option(min=0, max=25, metavar="SECONDS", help="How long to look for running crawlers; 0: not at all.")
    ] = 6.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would be done.")] = False,
    as_json: AsJson = False,
) -> int:
    """Import the queue and the dupefilter that scrapy-redis left in Redis, so that the crawl continues.

    Stop the crawlers of scrapy-redis first. Run the command in the project's folder, after replacing `scrapy_redis` by
    `redis_components` in its settings. It may be interrupted and repeated; requests that cannot be imported are kept with the
    reason (`trawl dead`). Start tasks stay where they are, and items need no import. See docs/migrating-from-scrapy-redis.md.

    **Examples:**

        trawl migrate scrapy-redis forum --dry-run --allow-pickle
        trawl migrate scrapy-redis forum --allow-pickle
    """
    from redis_components.migration import Options, migrate, project_of

    options = Options(
        allow_pickle=allow_pickle,
        as_is=as_is,
        order=QueueOrder(order) if order else None,
        convert_start_tasks=convert_start_tasks,
        dry_run=dry_run,
        watch_s=watch,
    )
    sys.path.insert(0, os.getcwd())  # noqa: PTH109  # as `scrapy` has it; a console script has not
    reports = []
    for spider in dict.fromkeys(spiders):
        project = project_of(spider, settings)
        with _client(project) as client, progress_bar(spider, shown=not as_json) as progress:
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
    for tasks in report.start_tasks:
        converted = f", {tasks.converted:,} of them converted" if tasks.converted else ""
        echo(f"  {tasks.waiting:,} start tasks wait in {tasks.key}{converted}")
    for line in _advice(report, project):
        echo(f"  {line}")


def _show_import(report: MigrationReport) -> None:
    requests, fingerprints = report.requests, report.fingerprints
    would = "would be " if report.dry_run else ""
    echo(
        f"{report.spider}: {requests.imported:,} requests {would}imported, {requests.dead.total():,} {would}kept among the dead,"
    )
    echo(f"  {fingerprints.imported:,} fingerprints {would}imported, in {report.seconds:.1f} s")
    for reason, count in requests.dead.most_common(SHOWN_REASONS):
        echo(f"  dead: {count:,} because {reason}")
    if report.bytes_after:
        echo(f"  Redis: {report.bytes_before:,} bytes before, {report.bytes_after:,} now")


def _advice(report: MigrationReport, project: Project) -> Iterator[str]:
    """Yield the remaining steps."""
    if project.order is None:
        yield f"the queue is left as it is: the project's own queue class goes on with {project.keys.theirs.requests}"
    if project.filter is None:
        yield f"the dupefilter is left as it is: the project's own class goes on with {project.keys.theirs.dupefilter}"
    if report.at_work:
        yield f"a crawler of scrapy-redis works there, {report.at_work}: stop all of them before you import"
    if report.late:
        yield f"{report.late:,} requests or fingerprints came meanwhile: an old crawler still runs; stop it, and repeat this"
    yield from _fingerprinter_advice(report, project)
    for tasks in report.start_tasks:
        if tasks.convertible > tasks.converted:
            yield f"{tasks.convertible:,} start tasks of {tasks.looked_at:,} have fields that are refused: --convert-start-tasks"
        for reason, count in tasks.refused.most_common(SHOWN_REASONS):
            yield f"{count:,} start tasks of {tasks.looked_at:,} will be set aside because {reason}"
    if report.as_is and not project.keeps_payloads:
        yield "set SCHEDULER_SERIALIZER to what reads these requests; for pickles 'redis_components.picklecompat'"
    if report.requests.classes:
        yield f"SCHEDULER_REQUEST_CLASSES must hold {', '.join(sorted(report.requests.classes))}"


def _fingerprinter_advice(report: MigrationReport, project: Project) -> Iterator[str]:
    """Yield the setting of the fingerprints' algorithm."""
    known, now = report.fingerprinter, str(project.settings.get("REQUEST_FINGERPRINTER_CLASS"))
    if known and known.setting:
        if known.setting != now:
            yield f'set REQUEST_FINGERPRINTER_CLASS = "{known.setting}"'
            yield f"  ({known.matching} of {known.tried} queued requests are in the dupefilter under it)"
    elif known and known.tried:
        yield f"none of {known.tried} queued requests is in the dupefilter: does the project compute its own fingerprints?"
    elif report.fingerprints.imported and not now.startswith("redis_components."):
        yield "no queued request shows how the fingerprints were made; unless the project computes its own, set"
        yield '  REQUEST_FINGERPRINTER_CLASS = "redis_components.fingerprint.ScrapyRedisFingerprinter"'
        yield "  (OldScrapyFingerprinter for a dupefilter that a scrapy-redis before 0.8 began)"
