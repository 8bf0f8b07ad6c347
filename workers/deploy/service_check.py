"""Checks a service in a child process: importing a project may do anything, and must not do it here."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field

import redis

from redis_components.server.untrusted_values import as_text
from workers.fleet.declared_options import as_declared
from workers.process.options import CrawlerOptions, handed_over
from workers.process.run_module import own_module

CHECK_S = 120.0
"""For importing a project on a busy machine."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """Result of a service's check."""

    wrong: str = ""
    """One line; "": it can crawl."""
    warnings: list[str] = field(default_factory=list)


def check(client: redis.Redis, service: str, *, python: str = "", project: str = "") -> Checked:
    """Load project and spider as a crawler would. `python` and `project`: of a version that the service does not have yet.

    Raises ConfigError and `redis.RedisError`.
    """
    version = (python, project) if python else None
    options = as_declared(client, CrawlerOptions(spider=service), install=True, version=version)
    environment = {**os.environ, **({"SCRAPY_SETTINGS_MODULE": options.project} if options.project else {})}
    try:
        with handed_over(options) as (line, given_fd):
            done = subprocess.run(
                own_module("workers.crawler.check_service", *line, python=options.python),
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                pass_fds=(given_fd,),
                timeout=CHECK_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return Checked(wrong=f"importing its project takes longer than {CHECK_S:g} s")
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        return Checked(wrong=str(found["wrong"]), warnings=[str(one) for one in found["warnings"]])
    except (IndexError, ValueError, KeyError, TypeError):
        last = as_text(done.stderr).strip().splitlines()[-1:] or ["it printed nothing"]
        return Checked(wrong=f"its project ended the process that loaded it (exit code {done.returncode}): {last[0]}")
