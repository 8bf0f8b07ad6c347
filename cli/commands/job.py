"""`trawl job`: finite crawls of any spider, each shared by several crawlers of the fleet."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import redis
import typer

from cli.access import redis_client
from cli.names import check_spiders
from cli.views.options import AsJson, ScrapySettings, SpiderArguments, Wait, command_group
from cli.views.output import complain, counted, duration, echo, iso, print_json, report
from cli.views.tables import Columns, show
from fleet_operations.deploy.deploy import check
from fleet_operations.jobs import jobs
from redis_components.errors import ConfigError
from redis_components.server.names import service_name
from redis_components.server.printable import masked_values
from redis_components.server.untrusted_values import server_time
from workers.crawler.orders import pairs
from workers.fleet.holds import who
from workers.fleet.sizes import declared_fleet
from workers.state.group_runs import GroupRun
from workers.state.jobs import Job, Jobs, JobState

LOOK_S = 0.5
Ends = TypeVar("Ends", Job, GroupRun)

app = command_group()
Name = Annotated[str, typer.Argument(metavar="JOB", help="Name or id of the job.")]


@app.command()
def start(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="A service, or a spider of the project.")],
    arguments: SpiderArguments = None,
    settings: ScrapySettings = None,
    crawlers: Annotated[int, typer.Option(metavar="N", min=1, help="Crawlers that share the crawl.")] = 1,
    urls: Annotated[
        Path | None, typer.Option(metavar="FILE", help="URLs for a spider that is fed from Redis, one a line.")
    ] = None,
    id: Annotated[str, typer.Option("--id", metavar="ID", help="The job's id; by default a new one.")] = "",
    wait: Wait = False,
    as_json: AsJson = False,
) -> int:
    """Start a job: a crawl with its own queue, shared by several crawlers, that ends when all of it is done.

    The fleet's workers launch and supervise its crawlers as those of a service, so nothing is lost when one dies. The items go
    where those of the service go. Its spider need not know Redis. With `--wait` the exit code is 1 unless the job finished.

    **Examples:**

        trawl job start books -a category=travel --crawlers 4
        trawl job start pages --urls urls.txt --wait
    """
    order = jobs.JobOrder(
        service=service,
        crawlers=crawlers,
        arguments=pairs("-a", arguments),
        settings=pairs("-s", settings),
        urls=_lines(urls) if urls else (),
        id=id,
        by=who(),
    )
    with redis_client() as client:
        undeclared = service_name(service) not in declared_fleet(client)
        if undeclared and (wrong := check(client, service, arguments=order.arguments).wrong):
            raise ConfigError(
                f"{service} is not a service of this fleet, and not a spider that this folder's project has: {wrong}"
            )
        job = jobs.start(client, order)
        if not (as_json or wait):
            complain(f"started; trawl job show {job.id} shows its progress")
        return _end(client, job, wait, as_json, job.id)


def _lines(file: Path) -> list[str]:
    try:
        lines = file.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8") from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


@app.command("list")
def list_jobs(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="Of one service only.")] = "",
    as_json: AsJson = False,
) -> int:
    """List jobs, the newest first. Ended jobs are listed for TRAWL_JOB_RETENTION_S."""
    with redis_client() as client:
        found = Jobs(client).newest(service)
        if service and not found:
            check_spiders(client, [service])
        now = server_time(client)
    columns: Columns = {
        "JOB": "job",
        "STATE": "state",
        "PAGES": "pages",
        "ITEMS": "items",
        "ERRORS": "errors",
        "STARTED": lambda row: iso(row["started_at"])[:16],
        "TOOK": lambda row: duration((row["ended_at"] or now) - row["started_at"]),
    }
    show([jobs.job_fields(job) for job in found], columns, as_json)
    return 0


@app.command("show")
def show_job(name: Name, wait: Wait = False, as_json: AsJson = False) -> int:
    """Show the progress of a job, and why it ended. Values that are named like a secret are not shown."""
    with redis_client() as client:
        job = jobs.find(client, name)
        if wait:
            return follow(client, job, as_json=as_json)
    given = {"arguments": masked_values(job.arguments), "settings": masked_values(job.settings)}
    if as_json:
        print_json({**jobs.job_fields(job), **given, "by": job.by})
        return 0
    echo(f"{job.id}: {job.sentence()}")
    echo(f"service {job.service}, {counted(job.crawlers, 'crawler')}, started {iso(job.started_at)} by {job.by or '?'}")
    for what, values in given.items():
        if values:
            echo(f"{what}: {', '.join(f'{key}={value}' for key, value in values.items())}")
    if job.ended_at:
        echo(f"ended {iso(job.ended_at)}")
    elif not job.figures.pages:
        echo("no page yet: trawl status names what it lacks")
    return 0


@app.command()
def cancel(name: Name, wait: Wait = False, as_json: AsJson = False) -> int:
    """End a job: pages in flight are finished; its queue is kept for `trawl job resume`."""
    with redis_client() as client:
        job = jobs.cancel(client, name)
        _end(client, job, wait, as_json, f"{job.id}: {job.state}")
    return 0


@app.command()
def resume(
    name: Name,
    wait: Wait = False,
    as_json: AsJson = False,
) -> int:
    """Continue a job that was cancelled, has failed or closed itself, where it stopped."""
    with redis_client() as client:
        job = jobs.resume(client, name)
        return _end(client, job, wait, as_json, f"{job.id}: {job.state}")


def follow(client: redis.Redis, job: Job, *, as_json: bool) -> int:
    """Wait for the end of a job and show it; return the exit code."""
    if not as_json:
        echo(job.id)
    job = until_ended(job, lambda: jobs.find(client, job.id), as_json)
    report(as_json, jobs.job_fields(job), job.sentence())
    return 0 if job.state is JobState.FINISHED else 1


def until_ended(one: Ends, again: Callable[[], Ends], as_json: bool) -> Ends:
    """Wait until a job or run has ended, and return it; print how it goes, whenever that changes."""
    shown = ""
    while not one.state.ended:
        time.sleep(LOOK_S)
        one = again()
        if not (as_json or one.state.ended) and (line := one.sentence()) != shown:
            complain(shown := line)
    return one


def _end(client: redis.Redis, job: Job, wait: bool, as_json: bool, line: str) -> int:
    """Wait for the job's end, or show it as it is now; return the exit code."""
    if wait:
        return follow(client, job, as_json=as_json)
    report(as_json, jobs.job_fields(job), line)
    return 0
