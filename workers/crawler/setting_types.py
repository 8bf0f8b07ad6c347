"""Finds settings that Scrapy could not read: its own error names the value and not the setting (`invalid literal for int() with
base 10: 'many'`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from scrapy.settings import BaseSettings, default_settings

from redis_components.errors import ConfigError
from redis_components.setting_values import loaded

if TYPE_CHECKING:
    from scrapy import Spider

COMPONENTS = (
    *("SCHEDULER", "DUPEFILTER_CLASS", "STATS_CLASS", "DOWNLOADER", "ITEM_PROCESSOR", "LOG_FORMATTER", "TWISTED_REACTOR"),
    *("REQUEST_FINGERPRINTER_CLASS", "HTTPCACHE_POLICY", "HTTPCACHE_STORAGE"),
)
"""Settings that name a class each."""
LISTED_BY_KEY = ("ITEM_PIPELINES", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "EXTENSIONS", "ADDONS")
"""Settings whose keys are classes, or their dotted paths."""
LISTED_BY_VALUE = ("DOWNLOAD_HANDLERS", "FEED_STORAGES", "FEED_EXPORTERS")
_SWITCH = ("true", "false")


def with_spiders_own(settings: BaseSettings, spider: type[Spider]) -> BaseSettings:
    """Return a copy of the settings, with those of the spider, to be read."""
    found = settings.copy()
    found.frozen = False
    spider.update_settings(found)
    return found


def check_types(settings: BaseSettings) -> None:
    """Compare values with the types of Scrapy's defaults. Raises ConfigError, which names the first that does not fit.

    None, and objects where a number is expected, are left to Scrapy: several of its settings take them.
    """
    if not _is_table(params := settings.get("REDIS_PARAMS")):
        raise ConfigError(f"REDIS_PARAMS: a {type(params).__name__} is not a table of names and values")
    for name in filter(str.isupper, dir(default_settings)):
        if not settings.getpriority(name):  # the default
            continue
        value, default = settings.get(name), getattr(default_settings, name)
        if wanted := _wanted(name, value, default):
            raise ConfigError(f"{name} = {value!r:.80} is not {wanted}")


def _wanted(name: str, value: Any, default: Any) -> str:
    """Return the form that a value must have, where it does not; "" where it fits."""
    if isinstance(default, list) and default and all(isinstance(one, int) for one in default):
        entries = value.split(",") if isinstance(value, str) else value
        fits = not isinstance(entries, list | tuple | set) or all(map(_is_number, entries))
        return "" if fits else "a list of numbers: write [500, 503], or 500,503 in a command line"
    if name == "LOG_LEVEL":
        return "" if not isinstance(value, str) or value in logging.getLevelNamesMapping() else "a level: write for example INFO"
    if not isinstance(value, str):
        return ""
    if isinstance(default, bool):
        return "" if value.lower() in _SWITCH or _is_number(value) else "a switch: write True or False"
    if isinstance(default, int | float):
        return "" if _is_number(value) or value.lower() in _SWITCH else "a number"
    return ""


def _is_table(value: Any) -> bool:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return False
    return value is None or isinstance(value, Mapping)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def set_each(settings: BaseSettings, values: Mapping[str, str]) -> None:
    """Put the settings of a command line over the project's. Raises ConfigError for a table that is not JSON."""
    for name, value in values.items():
        try:
            settings.set(name, value, priority="cmdline")
        except (TypeError, ValueError):
            raise ConfigError(f"{name} = {value!r:.80} is not a table: write JSON") from None


def load_components(settings: BaseSettings) -> None:
    """Import every class that the project's settings name. Raises ConfigError, with the setting."""
    for name, path in _named(settings):
        loaded(path, name)


def _named(settings: BaseSettings) -> Iterator[tuple[str, Any]]:
    for name in COMPONENTS:
        yield name, settings.get(name)
    for name in LISTED_BY_KEY:
        for path, place in settings.getdict(name).items():
            if place is not None:
                yield name, path
    for name in LISTED_BY_VALUE:
        for path in settings.getdict(name).values():
            if path is not None:
                yield name, path
