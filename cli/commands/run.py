"""`trawl run`: a finite crawl of any spider, shared by several crawlers of the fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import redis
import typer

from cli.access.redis import redis_client
from cli.access.values import pairs
from cli.commands.jobs import follow
from cli.views.output import complain, print_json, say
from redis_components.errors import ConfigError
from redis_components.server.names import service_name
from workers.deploy.service_check import check
from workers.fleet.holds import who
from workers.fleet.sizes import declared_fleet
from workers.jobs import jobs


def run(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="A service, or a spider of the project.", show_default=False)],
    arguments: Annotated[list[str] | None, typer.Option("-a", metavar="NAME=VALUE", help="An argument of the spider.")] = None,
    settings: Annotated[list[str] | None, typer.Option("-s", metavar="NAME=VALUE", help="A Scrapy setting.")] = None,
    crawlers: Annotated[int, typer.Option(metavar="N", min=1, help="Crawlers that share the crawl.")] = 1,
    urls: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="URLs for a spider that is fed from Redis, one a line.", show_default=False),
    ] = None,
    id: Annotated[str, typer.Option("--id", metavar="ID", help="The job's id; by default a new one.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end; Ctrl-C only ends the waiting.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the job as one line of JSON.")] = False,
) -> int:
    """Start a job: a crawl with its own queue, shared by several crawlers, that ends when all of it is done.

    The fleet's workers launch and supervise its crawlers as those of a service, so nothing is lost when one dies. The items go
    where those of the service go. Its spider need not know Redis. With `--wait` the exit code is 1 unless the job finished.

    **Examples:**

        trawl run books -a category=travel --crawlers 4
        trawl run pages --urls urls.txt --wait
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
        _check_name(client, service)
        job = jobs.start(client, order)
        if wait:
            return follow(client, job, as_json=as_json)
    if as_json:
        print_json(jobs.job_fields(job))
    else:
        say(job.id)
        complain(f"started; trawl jobs show {job.id} says how it goes")
    return 0


def _check_name(client: redis.Redis, service: str) -> None:
    """Of a spider that is not a service the project is asked whether it has it: a job of another one would only fail."""
    if service_name(service) not in declared_fleet(client) and (wrong := check(client, service).wrong):
        raise ConfigError(f"{service} is not a service of this fleet, and not a spider that this folder's project has: {wrong}")


def _lines(file: Path) -> list[str]:

    try:
        lines = file.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
