"""The reference of all keys, `docs/reference/redis-keys.md`, from their docstrings."""

from __future__ import annotations

from collections.abc import Mapping

from .crawl import CrawlKeys
from .items import ItemKeys
from .namespace import NamespaceKeys
from .start_tasks import StartTaskKeys

CRAWL_SAMPLES = {
    "owner": "<owner>",
    "part": "<part>",
    "number": "<number>",
    "lot": "<lot>",
    "lane": "<lane>",
    "origin": "<origin>",
    "group": "<group>",
}


def rows(keys: object, cls: type, samples: Mapping[str, str]) -> list[str]:
    """Return one entry of the list for each method that `cls`, the class of `keys` or one of its bases, defines; `samples` are
    the arguments by their names.
    """
    found = []
    for name, method in vars(cls).items():
        if name.startswith("_") or name == "for_spider" or not callable(method):
            continue
        params = method.__code__.co_varnames[1 : method.__code__.co_argcount]
        doc = " ".join(line.strip() for line in (method.__doc__ or "").splitlines() if line.strip())
        kind, _, text = doc.partition(": ")
        key = method(keys, *(samples[param] for param in params))
        found.append(f"- `{key}` ({kind}): {text}")
    return found


def document() -> str:
    """Return the part of `docs/reference/redis-keys.md` about the frontier."""
    crawl = CrawlKeys.for_spider("<spider>", namespace="")
    found = [
        *rows(crawl, CrawlKeys, CRAWL_SAMPLES),
        *rows(crawl, ItemKeys, CRAWL_SAMPLES),
        *rows(crawl, StartTaskKeys, CRAWL_SAMPLES),
        *rows(NamespaceKeys(prefix="trawl:fleet"), NamespaceKeys, {}),
    ]
    head = "# Redis keys\n\nGenerated from `redis_components/keys/`, `workers/state/keys.py` and `forums/state/keys.py`\n"
    head += "by `make docs`; do not edit.\n\n"
    head += "With a namespace (`REDIS_NAMESPACE`, `TRAWL_NAMESPACE`) every key begins with it and a colon.\n\n"
    return head + "\n".join(found) + "\n"
