"""Launch options of a crawler, from the present declaration of its service."""

from __future__ import annotations

from dataclasses import replace

import redis

from workers.application import application
from workers.consumers.item_consumers import NO_CONSUMER
from workers.deploy.environments import current_python
from workers.process.options import CrawlerOptions
from workers.state.jobs import Jobs
from workers.state.services import ServiceRecord, as_texts

from .sizes import declaration_of


def as_declared(
    client: redis.Redis, options: CrawlerOptions, *, install: bool = False, version: tuple[str, str] | None = None
) -> CrawlerOptions:
    """Return the options of a crawler of `options.spider`, a service. `install`: install its version if this machine lacks it;
    `version`: interpreter and settings module of another version.

    Raises ConfigError, BuildFailed and `redis.RedisError`.
    """
    job = Jobs(client).of(options.spider)
    record = (job.declaration if job else declaration_of(client, options.spider)) or ServiceRecord()
    python, deployed = version or current_python(client, job.service if job else options.spider, install=install)
    return replace(
        options,
        python=python,
        job_of=job.service if job else "",
        arguments=as_texts(record.arguments),
        settings=record.scrapy_settings(),
        loads=record.spider if record.spider != options.spider else "",
        project=deployed or record.project,
        consumer=consumer_word(record),
    )


def consumer_word(record: ServiceRecord) -> str:
    """Return the crawler's `consumer`: a consumer of the fleet, or `NO_CONSUMER`, after which none may touch the items; "": the
    spider decides.
    """
    if record.groups:
        return NO_CONSUMER
    return record.consumer if record.consumer in ("", *application().consumers()) else NO_CONSUMER
