"""Start tasks to Scrapy's requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

from scrapy import FormRequest, Request, Spider
from scrapy.http import JsonRequest

from redis_components.codec.project_code import is_plumbing
from redis_components.errors import BadStartTask

from .format import StartTask

_MADE_FOR_TASKS = frozenset({"parse", "parse_with_rules", "set_aside"})


def request_of(task: StartTask, spider: Spider) -> Request:
    """Return the request of a start task. Raises BadStartTask for a callback that the spider does not have, and Scrapy's errors
    for an invalid URL, method or encoding.
    """
    arguments: dict[str, Any] = {
        "url": task.url,
        "headers": task.headers,
        "cookies": task.cookies,
        "meta": {"not_before": time.time() + task.delay_s} | task.meta if task.delay_s else task.meta,
        "cb_kwargs": task.cb_kwargs,
        "priority": task.priority,
        "callback": _method(spider, task.callback, "callback"),
        "errback": _method(spider, task.errback, "errback"),
        "dont_filter": task.dont_filter,
        "encoding": task.encoding,
        "flags": task.flags,
    }
    if task.method is not None:
        arguments["method"] = task.method
    if task.formdata:
        return FormRequest(formdata=task.formdata, **arguments)
    if task.json is not None:
        return JsonRequest(data=task.json, **arguments)
    return Request(body=task.body, **arguments)


def _method(spider: Spider, name: str | None, field: str) -> Callable[..., Any] | None:
    if name is None:
        return None
    if not _is_for_tasks(type(spider), name):
        known = sorted(one for one in dir(type(spider)) if _is_for_tasks(type(spider), one))
        raise BadStartTask(
            f"field {field!r}: spider {spider.name!r} has no method {name!r} for it; it has {', '.join(known) or 'none'}"
        )
    return getattr(spider, name)  # type: ignore[no-any-return]


def _is_for_tasks(cls: type, name: str) -> bool:
    """Return True if a start task may name this method. A writer to Redis must not be able to call the methods that run the
    crawl: nothing private, and of the base classes only methods made to receive a response or a failure.
    """
    if name.startswith("_"):
        return False
    owners = [base for base in cls.__mro__ if name in vars(base)]
    if not owners or not isinstance(vars(owners[0])[name], FunctionType):
        return False
    return name in _MADE_FOR_TASKS or not any(map(is_plumbing, owners))
