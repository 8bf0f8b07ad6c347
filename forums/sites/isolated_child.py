"""`python -m forums.sites.isolated_child`: reads pages for `forums/sites/isolated.py`, from standard input to
standard output, each within its own processor time. Ends with its input.
"""

from __future__ import annotations

import msgspec
from scrapy.http import Headers
from scrapy.responsetypes import responsetypes

from forum_reader.errors import PageGone, SiteError, UnreadablePage
from forum_reader.jail import allow, serve
from forum_reader.reading import asked_page as reading
from forums.sites.load import site_in_use
from redis_components.server.printable import in_words

from .isolated import MEMORY_BYTES, ChildReply, Task, cpu_s


def answer(message: bytes) -> bytes:
    """Return the answer to one task."""
    allow(cpu_s())
    return msgspec.msgpack.encode(reply_to(msgspec.msgpack.decode(message, type=Task)))


def reply_to(task: Task) -> ChildReply:
    """Read the page, or return the reason why it cannot be read."""
    headers = Headers()
    for name, value in task.headers:
        headers.appendlist(name, value)
    kind = responsetypes.from_args(headers=headers, url=task.url, body=task.body)
    response = kind(task.url, headers=headers, body=task.body)
    try:
        return ChildReply(page=msgspec.msgpack.encode(reading.read(site_in_use(task.site), response, task.asked)))
    except UnreadablePage as error:
        return ChildReply(unreadable=error.reason, gone=isinstance(error, PageGone))
    except (SiteError, MemoryError, RecursionError) as error:
        return ChildReply(unreadable=in_words(error))


if __name__ == "__main__":
    serve(answer, MEMORY_BYTES)
