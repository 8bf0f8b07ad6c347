"""The command line of the crawler process: what people write, and what a supervisor adds."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import msgspec

from redis_components.errors import ConfigError
from redis_components.server.names import service_name, slot_number
from workers.state.registry import Slot, SlotStory

from .memory import private_memory


@dataclass(frozen=True, kw_only=True)
class CrawlerOptions:
    """Task and identity of one crawler process. `handed_over` and `received` are each other's inverse."""

    spider: str
    arguments: dict[str, str] = field(default_factory=dict)  # of the spider
    settings: dict[str, str] = field(default_factory=dict)  # Scrapy's
    loads: str = ""  # the spider in its project, where the service has another name
    consumer: str = ""  # of its items, where the service declares it
    job_of: str = ""  # the service whose finite job this is; "": an endless service
    project: str = ""  # its settings module, in SCRAPY_SETTINGS_MODULE of its process; "": the present one
    python: str = ""  # interpreter of its environment; "": the interpreter of the node
    alone: bool = False  # an ordinary spider crawls apart from the project's shared frontier
    slot: Slot | None = None  # None: started by hand
    node: str = ""  # the worker that supervises it
    parent: int | None = None  # pid of the supervisor: end with it
    pulse_fd: int | None = None  # pipe to the supervisor
    page_fd: int | None = None  # memory shared with the supervisor: the page at work
    owner: str = ""  # id under which the frontier keeps its leases; no two processes ever have the same
    log_file: str = ""  # where its standard output and error go already; it keeps the file small
    story: SlotStory = field(default_factory=SlotStory)  # of its slot, for its own records

    def to_arguments(self) -> list[str]:
        """Return the arguments after `python -m workers.crawler` that `ps` may show."""
        slot = {"slot": self.slot.number, "token": self.slot.token} if self.slot else {}
        shown = {**slot, "parent": self.parent, "node": self.node, "owner": self.owner}
        return [self.spider, *(f"--{name}={value}" for name, value in shown.items() if value not in (None, ""))]

    @property
    def descriptors(self) -> list[int]:
        """The descriptors that its process gets."""
        return [file for file in (self.pulse_fd, self.page_fd) if file is not None]


@contextmanager
def handed_over(options: CrawlerOptions) -> Iterator[tuple[list[str], int]]:
    """Yield the command line, and the descriptor to pass on, for a child that is started within the block.

    Arguments and settings may be secrets, and every user of a machine sees the command lines of all processes.
    """
    descriptor = private_memory("trawl-given")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(msgspec.json.encode(options))
        yield [*options.to_arguments(), f"--given-fd={descriptor}"], descriptor
    finally:
        os.close(descriptor)


def received(descriptor: int) -> CrawlerOptions:
    """Return what this process was handed over."""
    return msgspec.json.decode(_content(descriptor), type=CrawlerOptions)


def _content(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read()


def own_options() -> CrawlerOptions:
    """Read the command line of this process. A wrong one ends it with one line and exit code 2."""
    parser = _parser()
    given = parser.parse_args()
    if given.given_fd is None:
        return _options(parser, given)
    content = _content(given.given_fd)
    if not content.startswith(b"["):
        return msgspec.json.decode(content, type=CrawlerOptions)
    # Its supervisor is of the version before, and its files were replaced: all but two of the options are on the line.
    arguments, settings = msgspec.json.decode(content, type=tuple[dict[str, str], dict[str, str]])
    return replace(_options(parser, given), arguments=arguments, settings=settings)


def parse(arguments: Sequence[str]) -> CrawlerOptions:
    """Read a command line, without what was handed over to its process: the descriptor that it names is a different file here."""
    parser = _parser()
    return _options(parser, parser.parse_args(arguments))


def _options(parser: argparse.ArgumentParser, given: argparse.Namespace) -> CrawlerOptions:
    if (given.slot is None) != (given.token is None):
        parser.error("--slot and --token go together; leave both out to crawl without a slot")
    slot = None
    if given.slot is not None:
        try:
            service_name(given.spider), slot_number(given.slot)
        except ConfigError as error:
            parser.error(str(error))
        slot = Slot(spider=given.spider, number=given.slot, token=given.token, owner=given.node)
    return CrawlerOptions(
        spider=given.spider,
        arguments=dict(given.a),
        settings=dict(given.s),
        alone=given.alone,
        slot=slot,
        node=given.node,
        parent=given.parent,
        owner=given.owner,
        story=msgspec.json.decode(given.story, type=SlotStory),
        **{name: getattr(given, name) for name in _FORMER},
    )


_FORMER: dict[str, type[str | int]] = dict.fromkeys(("loads", "consumer", "job_of", "log_file"), str) | dict.fromkeys(
    ("pulse_fd", "page_fd"), int
)
"""Written on the line by supervisors of the version before, for one release; with `story`."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workers.crawler", description="Run one crawler in this process.")
    parser.add_argument("spider", metavar="SPIDER", help="name of the spider; `scrapy list` shows them")
    parser.add_argument("-a", metavar="NAME=VALUE", type=_pair, action="append", default=[], help="argument of the spider")
    parser.add_argument("-s", metavar="NAME=VALUE", type=_pair, action="append", default=[], help="a Scrapy setting")
    parser.add_argument("--alone", action="store_true", help="run an ordinary spider with a queue in memory")
    parser.add_argument("--slot", metavar="N", type=int, help="number of the slot that this crawler fills (supervised crawlers)")
    parser.add_argument("--token", metavar="T", type=int, help="fencing token of the slot")
    supervisor = parser.add_argument_group("added by a supervisor")
    supervisor.add_argument("--node", default="", metavar="NAME", help="the worker that supervises it")
    supervisor.add_argument("--parent", type=int, metavar="PID", help="end when this process does")
    supervisor.add_argument("--owner", default="", metavar="ID", help="keep its leases under this id, which no other process has")
    supervisor.add_argument("--given-fd", type=int, metavar="FD", help="read all options there, as JSON")
    for name, kind in _FORMER.items():
        supervisor.add_argument(
            f"--{name.replace('_', '-')}", type=kind, default=None if kind is int else "", help=argparse.SUPPRESS
        )
    supervisor.add_argument("--story", default="{}", help=argparse.SUPPRESS)
    return parser


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (separator and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value
