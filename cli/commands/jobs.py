"""`trawl jobs`: the finite crawls that `trawl run`, the task `crawl` and the API have started."""

from __future__ import annotations

import time
from typing import Annotated

import redis
import typer

from cli.access.names import check_spiders
from cli.access.redis import redis_client
from cli.views.output import complain, console, counted, duration, iso, plain_table, print_json, say
from redis_components.server.masking import masked_values
from redis_components.server.replies import server_time
from workers.fleet.holds import who
from workers.jobs import jobs
from workers.jobs.jobs import job_fields
from workers.jobs.orders import delay
from workers.state.jobs import Job, Jobs, JobState

LOOK_S = 0.5
DELAY_S = 3.0

app = typer.Typer(no_args_is_help=True, help="List, show, cancel, resume and rerun jobs (trawl run).")
Name = Annotated[str, typer.Argument(metavar="JOB", help="Name or id of the job.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print it as one line of JSON.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for its end; Ctrl-C only ends the waiting.")]


@app.command("list")
def list_jobs(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="Of one service only.")] = "",
    as_json: AsJson = False,
) -> int:
    """List jobs, the newest first; those that are over for TRAWL_JOB_RETENTION_S."""
    with redis_client() as client:
        found = [job for job in Jobs(client).all().values() if service in ("", job.service)]
        if service and not found:
            check_spiders(client, [service])
        now = server_time(client)
    found.sort(key=lambda job: job.started_at, reverse=True)
    if as_json:
        print_json([job_fields(job) for job in found])
        return 0
    table = plain_table("JOB", "STATE", "PAGES", "ITEMS", "ERRORS", "STARTED", "TOOK")
    for job in found:
        one, took = job.figures, (job.ended_at or now) - job.started_at
        started = iso(job.started_at)[:16]
        table.add_row(job.id, job.state, f"{one.pages:,}", f"{one.items:,}", f"{one.errors:,}", started, duration(took))
    console().print(table)
    return 0


@app.command()
def show(name: Name, wait: Wait = False, as_json: AsJson = False) -> int:
    """Show what a job has done, and why it ended. Values of what is named like a secret are not shown."""
    with redis_client() as client:
        job = jobs.find(client, name)
        if wait:
            return follow(client, job, as_json=as_json)
        waits = "" if as_json else delay(client, job)
    given = {"arguments": masked_values(job.arguments), "settings": masked_values(job.settings)}
    if as_json:
        print_json({**jobs.job_fields(job), **given, "by": job.by})
        return 0
    say(f"{job.id}: {job.sentence()}")
    say(f"service {job.service}, {counted(job.crawlers, 'crawler')}, started {iso(job.started_at)} by {job.by or '?'}")
    for what, values in given.items():
        if values:
            say(f"{what}: {', '.join(f'{key}={value}' for key, value in values.items())}")
    if job.ended_at:
        say(f"ended {iso(job.ended_at)}")
    elif waits:
        say(f"waits: {waits}")
    return 0


@app.command()
def cancel(name: Name, wait: Wait = False, as_json: AsJson = False) -> int:
    """End a job: pages in flight are finished; what is left in its queue is kept, and `trawl jobs resume` goes on."""
    with redis_client() as client:
        job = jobs.cancel(client, name)
        if wait:
            follow(client, job, as_json=as_json)
            return 0
    return _say(job, as_json, f"{job.id}: {job.state}")


@app.command()
def resume(
    name: Name,
    crawlers: Annotated[int | None, typer.Option(metavar="N", min=1, help="By default as many as before.")] = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> int:
    """Go on with a job that was cancelled, has failed or closed itself, where it stopped."""
    with redis_client() as client:
        job = jobs.resume(client, name, crawlers=crawlers)
        if wait:
            return follow(client, job, as_json=as_json)
    return _say(job, as_json, f"{job.id}: {job.state}")


@app.command()
def rerun(name: Name, wait: Wait = False, as_json: AsJson = False) -> int:
    """Start the same crawl once more, as a new job that knows nothing of the first."""
    with redis_client() as client:
        job = jobs.rerun(client, name, by=who())
        if wait:
            return follow(client, job, as_json=as_json)
    return _say(job, as_json, job.id)


def follow(client: redis.Redis, job: Job, *, as_json: bool) -> int:
    """Wait for the end of a job and show it; the exit code."""
    said, waits = "", Delay(client)
    if not as_json:
        say(job.id)
    while not job.state.ended:
        time.sleep(LOOK_S)
        job = jobs.find(client, job.id)
        if reason := waits.new_reason(job):
            complain(f"waits: {reason}")
        if not as_json and not job.state.ended and (line := job.sentence()) != said:
            complain(said := line)
    if as_json:
        print_json(jobs.job_fields(job))
    else:
        say(job.sentence())
    return 0 if job.state is JobState.FINISHED else 1


class Delay:
    """Why a job has no crawler, told once when it has been so for a moment: its launch takes one, too."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._reason, self._since, self._told = "", time.monotonic(), ""

    def new_reason(self, job: Job) -> str:
        """The reason that has lasted, "" where there is none, or it was told."""
        now = time.monotonic()
        if (reason := delay(self._client, job)) != self._reason:
            self._reason, self._since = reason, now
        if now - self._since < DELAY_S or reason == self._told:
            return ""
        self._told = reason
        return reason


def _say(job: Job, as_json: bool, line: str) -> int:

    if as_json:
        print_json(job_fields(job))
    else:
        say(line)
    return 0
