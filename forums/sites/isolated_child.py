"""`python -m forums.sites.isolated_child`: reads pages for `forums/sites/isolated.py`, from standard input to
standard output, each within its own processor time. Ends with its input.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from typing import BinaryIO

import msgspec
from scrapy.http import Headers
from scrapy.responsetypes import responsetypes

from forum_reader.errors import PageGone, SiteError, UnreadablePage
from forum_reader.reading import asked_page as reading
from forums.sites.load import site_in_use

from .isolated import MEMORY_BYTES, ChildReply, Task, cpu_s

NICE = 10
"""Such a page gets the processor time that the crawlers leave."""


def main(tasks: BinaryIO, answers: BinaryIO) -> None:
    """Read pages until the input ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # sent to a whole process group: the parent may have pages to finish
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    os.nice(NICE)
    while head := tasks.read(4):
        message = tasks.read(int.from_bytes(head, "big"))
        _allow(cpu_s())
        answer = msgspec.msgpack.encode(reply_to(msgspec.msgpack.decode(message, type=Task)))
        answers.write(len(answer).to_bytes(4, "big") + answer)
        answers.flush()


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
        return ChildReply(unreadable=f"{type(error).__name__}: {error}")


def _allow(seconds: int) -> None:
    """Allow `seconds` of processor time from now on; then the kernel ends this process (SIGXCPU)."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + seconds, most))


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
