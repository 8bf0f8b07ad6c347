"""Checks a service in a child process: importing a project may do anything, and must not do it here."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import msgspec
import redis

from redis_components.embedded.child_process import ChildProcess
from redis_components.server.untrusted_values import as_text
from workers.fleet.sizes import as_declared, declared_fleet, largest_fleet
from workers.process.options import CrawlerOptions, handed_over
from workers.process.run_module import own_module
from workers.state.registry import Registry
from workers.state.services import Autoscaling

CHECK_S = 150.0
"""The check ends its own steps before."""
_MOST_OUTPUT = 1_000_000
"""Bytes that are read of what a project prints."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Result of a service's check, a line with the fix for each fault."""

    wrong: str = ""
    """"": it can crawl."""
    faults: list[str] = field(default_factory=list)
    """It crawls, and not as a service should."""
    warnings: list[str] = field(default_factory=list)
    """Features of the fleet that it does without."""


class Findings(msgspec.Struct):
    """Result that `workers.crawler.check_service` prints, a line for each fault, with its fix."""

    wrong: str = ""
    """It cannot crawl, or fetches nothing."""
    faults: list[str] = []
    """It crawls, and not as a service should."""
    shared: list[str] = []
    """Faults of a service that has several crawlers."""
    ends: str = ""
    """A fault of a service that has crawlers; a job ends."""
    warnings: list[str] = []
    """Features of the fleet that it does without."""


def check(
    client: redis.Redis, service: str, *, python: str = "", project: str = "", arguments: Mapping[str, str] | None = None
) -> Checked:
    """Load project and spider as a crawler would. `python` and `project`: of a version that the service does not have yet;
    `arguments`: of a job, besides those of the service.

    Raises ConfigError and `redis.RedisError`.
    """
    version = (python, project) if python else None
    options = as_declared(client, CrawlerOptions(spider=service), install=True, version=version)
    if arguments:
        options = replace(options, arguments={**options.arguments, **arguments})
    most = largest_fleet(declared_fleet(client) | Registry(client).desired(), Autoscaling(client)).get(service, 0)
    code, output = run_apart("workers.crawler.check_service", options, CHECK_S, _MOST_OUTPUT)
    for line in reversed(output.splitlines()):
        with suppress(msgspec.DecodeError):
            found = msgspec.json.decode(line, type=Findings)
            faults = [*found.faults, *(found.shared if most > 1 else ()), *(filter(None, [found.ends]) if most else ())]
            return Checked(wrong=found.wrong, faults=faults, warnings=found.warnings)
    last = as_text(output).strip().splitlines()[-1:] or ["it printed nothing"]
    if code is None:
        return Checked(wrong=f"importing its project takes longer than {CHECK_S:g} s")
    return Checked(wrong=f"its project ended the process that loaded it (exit code {code}): {last[0]}")


def run_apart(module: str, options: CrawlerOptions, seconds: float, most: int) -> tuple[int | None, bytes]:
    """Run a module with a crawler's options in a separate process, with a bound of time, and end all that it has started.

    Returns exit code, None after that time, and the last bytes of its output, `most` of them.
    """
    environment = {**os.environ, **({"SCRAPY_SETTINGS_MODULE": options.project} if options.project else {})}
    with handed_over(options) as (line, given_fd), tempfile.TemporaryFile() as output:
        command = own_module(module, *line, python=options.python)
        code = ChildProcess(command, env=environment, stdout=output, stderr=output, pass_fds=(given_fd,)).end(seconds)
        output.seek(-min(output.tell(), most), os.SEEK_END)
        return code, output.read()
