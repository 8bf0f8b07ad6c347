"""`trawl init`: a project of your own, outside Trawl's checkout."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from cli.views.options import AsJson
from cli.views.output import echo, print_json
from redis_components.errors import ConfigError

PACKAGE = re.compile(r"[a-z_][a-z0-9_]*")
_ENVIRONMENT = """\
# Secrets and addresses, read by every command of this folder (trawl config show --origin); everything else is in trawl.toml.
# The process's environment overrides both.

# Without it Trawl runs a private Redis in data/.
#TRAWL_REDIS_URL=redis://:password@host:6379/0
# Without it posts and comments are in data/trawl.sqlite.
#TRAWL_DATABASE_URL=postgresql+psycopg://user:password@host/trawl
# Login of Flower; without it `trawl up` makes a new password each time.
#TRAWL_FLOWER_AUTH=user:password
"""
_CONFIG = """\
# The fleet of this folder: `trawl config check` checks it, docs/settings.md has every key. What is changed while the fleet runs
# (trawl scale, limit, schedule, services add) is in Redis and overrides it. Passwords do not belong here but into .env.

# Services: which spiders run, and how many crawlers each has. Without one: forum_list and forum_detail, each with 1.
#[services.forum_list]
#[services.forum_detail]
#size = 2
#[services.books]                   # a spider of {package}
#size = 1
#consumer = "jsonl:books.jsonl"     # where its items go

# Events: new posts to a webhook, a file, a stream (docs/events.md).
#[rules.gpu]
#match = "rtx* or gpu"
#[outputs.log]
#kind = "file"
#path = "posts.jsonl"
#rules = ["gpu"]

# Limits of all crawlers together: the options of `trawl limit`.
#[limits."forum.example.org"]
#rate = 2.0                         # requests per second
#concurrency = 2
#quiet = "01:00-06:00 Europe/Berlin"

# Schedule: tasks that beat sends. task, every_s or cron (UTC), args, kwargs, enabled.
#[schedule.nightly]
#task = "trawl.crawl"
#cron = "0 3 * * *"
#kwargs = {{ service = "books" }}

# Variables (docs/settings.md), in lower case and without TRAWL_; the environment overrides them.
#[fleet]
#allow_private = true               # own spiders reach every address of this network
#log_level = "INFO"
#shutdown_grace_s = 10
"""
_SETTINGS = '''\
"""Scrapy's settings of this project: Trawl's, and what you change."""

from workers.settings import *  # noqa: F403
from workers.settings import SPIDER_MODULES as _TRAWLS

SPIDER_MODULES = [*_TRAWLS, "{package}.spiders"]
# Crawlers reach public addresses, and this machine, for sites to practise on. Remove the line where other services listen here.
ALLOW_PRIVATE_ADDRESSES = ["127.0.0.1", "localhost"]
'''
_SPIDERS = '''\
"""Your own spiders. Each module of this package is found; `[services.NAME]` in trawl.toml makes a spider a service.

    from redis_components.spiders import RedisSpider

    class Books(RedisSpider):      # trawl crawl-once books, or: redis-cli rpush books:start_urls https://books.example/
        name = "books"

        def parse(self, response):
            yield {{"title": response.css("title::text").get()}}
"""
'''
_SITES = """\
# Site files

One `<name>.toml` for each forum: `trawl sites new URL` writes it, `trawl sites check NAME --live` tries it.
"""
_COMPOSE = """\
# This folder in the containers of Trawl's docker-compose.yml. Run it here; CHECKOUT is the folder of Trawl, whose .env counts:
#
#   docker compose -f CHECKOUT/docker-compose.yml -f compose.override.yml up -d
#
# A spider of this package as a service: declare it in trawl.toml, and put its queue into the command of a worker, as in
#   command: celery -A tasks worker -Q crawlers.forum_detail,crawlers.NAME --concurrency=4 -n detail@%h
x-project: &project
  volumes:
    - ${{PWD:?run it in the project's folder}}/scrapy.cfg:/app/scrapy.cfg:ro
    - ${{PWD}}/trawl.toml:/app/trawl.toml:ro
    - ${{PWD}}/sites:/app/sites:ro
    - ${{PWD}}/{package}:/app/{package}:ro
services:
  worker-list: *project
  worker-detail: *project
  worker-control: *project
  beat: &file
    volumes: ["${{PWD}}/trawl.toml:/app/trawl.toml:ro"]
  exporter: *file
"""


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder; by default this one.", show_default=False)] = Path(),
    package: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the package with your spiders; by default the folder's.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Make a project: `trawl.toml`, site files, settings, a package for your own spiders, `.env`, an override for Docker Compose.

    Commands that run in the folder use its `sites/`, `.env` and `data/`. Nothing that exists is overwritten: where a file of the
    project is there already, nothing is written.

    **Examples:**

        trawl init forums
        trawl init . --package news_spiders
    """
    name = _package_of(folder) if package is None else package
    if not _is_free(name):
        raise ConfigError(f"--package {name}: must be lower-case letters, digits and _, and not one of Trawl's: choose another")
    files = _files(name)
    if there := [path for path in files if (folder / path).exists()]:
        raise ConfigError(f"{folder / there[0]} exists already: name another folder, or move it away; nothing was written")
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
        (folder / ".env").chmod(0o600)  # it will hold passwords
    except OSError as error:
        unwritten = f"{error.filename} cannot be written ({error.strerror})"
        raise ConfigError(f"{unwritten}: name a folder that this user may write") from error
    if as_json:
        print_json({"folder": str(folder), "package": name, "files": list(files)})
        return 0
    echo(f"{folder}: {', '.join(files)}")
    where = "" if folder == Path() else f"cd {shlex.quote(str(folder))}, then "
    echo(f"Next: {where}trawl sites new https://forum.example.org/, trawl up; trawl doctor checks everything")
    return 0


_TAKEN = frozenset({"redis_components", "workers", "forums", "tasks", "cli", "monitoring", "demo", "sites", "data", "trawl"})


def _is_free(name: str) -> bool:
    return bool(PACKAGE.fullmatch(name)) and name not in _TAKEN


def _package_of(folder: Path) -> str:
    """Return a name after the folder, if that is free."""
    name = re.sub(r"[^a-z0-9]+", "_", folder.resolve().name.lower()).strip("_")
    return next((one for one in (name, f"{name}_spiders") if name and _is_free(one)), "my_spiders")


def _files(package: str) -> dict[str, str]:
    """Return the text of each file, by its place in the project."""
    return {
        "scrapy.cfg": f"[settings]\ndefault = {package}.settings\n",
        ".env": _ENVIRONMENT,
        "trawl.toml": _CONFIG.format(package=package),
        ".gitignore": ".env\ndata/\n__pycache__/\n",
        "compose.override.yml": _COMPOSE.format(package=package),
        "sites/README.md": _SITES,
        f"{package}/__init__.py": "",
        f"{package}/settings.py": _SETTINGS.format(package=package),
        f"{package}/spiders/__init__.py": _SPIDERS.format(),
    }
