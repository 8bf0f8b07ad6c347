"""The imports of a warm parent: what a crawler of this project imports, but for the project itself."""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module, metadata
from types import ModuleType

from scrapy.http import Response
from scrapy.settings import BaseSettings, Settings
from scrapy.utils.misc import load_object
from scrapy.utils.project import get_project_settings

from redis_components.server.variables import load_env_file
from workers.application import application

from .turns import is_library

MORE = (
    "asyncio.unix_events",
    "lxml.html",
    "scrapy.core.downloader",
    "scrapy.core.engine",
    "scrapy.core.scraper",
    "scrapy.spiderloader",
    "twisted.internet.asyncioreactor",
    "redis_components.scheduler",
    "redis_components.dupefilter",
    "redis_components.stats",
    "redis_components.pipelines",
    "redis_components.scrapy_glue.custom_classes",
    "workers.crawler.http_client",
)
"""Modules that a crawl loads, and no setting names."""
_COMPONENTS = ("_MIDDLEWARES", "_PIPELINES", "EXTENSIONS", "_HANDLERS", "_STORAGES", "_EXPORTERS")
_TRAWLS = ("redis_components", "workers", "forum_reader", "forums")
_MOST_BYTES = 60_000
"""Of names: what a pipe takes at once."""
IMPORT_S = 60.0


def preload(owner: int | None = None, without: frozenset[str] = frozenset()) -> set[str]:
    """Import what a crawler of this project imports, but for the project itself, and for packages that are left out.

    Returns the packages after which a fork would share or lose what they have begun.
    """
    for name in MORE:
        import_module(name)
    for path in _components(Settings()):
        with suppress(BaseException):
            load_object(path)
    application().verdict(Response("http://example.org"))  # what it needs is loaded at the first page
    metadata.version("redis")  # which redis-py asks for each connection: its first look goes through a folder
    begun = _begun()
    found = set()
    for name in _libraries(owner):
        package = name.partition(".")[0]
        if package not in without and name not in sys.modules:
            with suppress(BaseException):
                import_module(name)
            if _begun() - begun:
                begun |= _begun()
                found.add(package)
    gc.collect()
    return found


def _begun() -> set[str]:
    """Return the threads, open files and installed reactor of this process."""
    found = {f"thread {name}" for name in os.listdir("/proc/self/task")}  # noqa: PTH208 - names alone
    if "twisted.internet.reactor" in sys.modules:
        found.add("reactor")
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{name}"))  # noqa: PTH115
    return found


def _libraries(owner: int | None) -> list[str]:
    """Return the modules of others that the project imports, found in another process: importing a project may do anything."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        with suppress(BaseException):
            for number in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            os.write(write, "\n".join(_imported()).encode()[:_MOST_BYTES])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        waiting = [read, *([] if owner is None else [owner])]
        found = file.read() if read in select.select(waiting, [], [], IMPORT_S)[0] else b""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return found.decode().split()


def _imported() -> list[str]:
    """Import the project, and return the modules of others that were loaded."""
    load_env_file()
    settings = get_project_settings()
    for path in _components(settings):
        with suppress(BaseException):  # a crawler reports it
            load_object(path)
    own = {os.environ.get("SCRAPY_SETTINGS_MODULE", ""), *settings.getlist("SPIDER_MODULES")}
    packages = {name.partition(".")[0] for name in own} - {*_TRAWLS}
    modules = [
        (name, module) for name, module in sys.modules.items() if name not in own and name.partition(".")[0] not in packages
    ]
    return [name for name, module in modules if _is_others(name, module)]


def _components(settings: BaseSettings) -> Iterator[str]:
    for name in settings:
        if name.removesuffix("_BASE").endswith(_COMPONENTS):
            yield from (value for value in (*settings.getdict(name), *settings.getdict(name).values()) if _is_path(value))
        elif name.endswith(("_CLASS", "_FACTORY", "_FORMATTER", "_RESOLVER", "SCHEDULER")) and _is_path(settings[name]):
            yield settings[name]


def _is_path(value: object) -> bool:
    return isinstance(value, str) and "." in value


def _is_others(name: str, module: ModuleType) -> bool:
    """Return True for a module of Trawl, of Python, or one that is installed."""
    file = str(getattr(module, "__file__", None) or "")
    if name == "__main__" or not file:
        return False
    return is_trawls(name) or is_library(file)


def is_trawls(name: str) -> bool:
    """Return True for a module of Trawl."""
    return name.partition(".")[0] in _TRAWLS
