"""The command line of the crawler process: what people write, and what a supervisor adds."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace

import msgspec

from redis_components.errors import ConfigError
from redis_components.server.names import service_name, slot_number
from workers.state.registry import Slot, SlotStory

from .memory import private_memory


@dataclass(frozen=True, kw_only=True)
class CrawlerOptions:
    """Task and identity of one crawler process. `to_arguments` and `parse` are each other's inverse, and so are `handed_over`
    and `received`.
    """

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
    given_fd: int | None = None  # memory with `arguments` and `settings`, which are not on the command line then
    page_fd: int | None = None  # memory shared with the supervisor: the page at work
    owner: str = ""  # id under which the frontier keeps its leases; no two processes ever have the same
    log_file: str = ""  # where its standard output and error go already; it keeps the file small
    story: SlotStory = field(default_factory=SlotStory)  # of its slot, for its own records

    def to_arguments(self) -> list[str]:
        """Return the arguments after `python -m workers.crawler`."""
        line = [self.spider]
        if self.slot:
            line += ["--slot", str(self.slot.number), "--token", str(self.slot.token)]
        optional = {"node": self.node, "parent": self.parent, "pulse-fd": self.pulse_fd, "page-fd": self.page_fd}
        optional["given-fd"] = self.given_fd
        optional |= {"loads": self.loads, "consumer": self.consumer, "job-of": self.job_of}
        optional |= {"owner": self.owner, "log-file": self.log_file}
        line += [f"--{name}={value}" for name, value in optional.items() if value not in (None, "")]
        if self.alone:
            line.append("--alone")
        if self.story != SlotStory():
            line.append(f"--story={msgspec.json.encode(asdict(self.story)).decode()}")
        if self.given_fd is not None:
            return line
        line += [part for pair in self.arguments.items() for part in ("-a", "=".join(pair))]
        return line + [part for pair in self.settings.items() for part in ("-s", "=".join(pair))]


@contextmanager
def handed_over(options: CrawlerOptions) -> Iterator[tuple[list[str], int]]:
    """Yield the command line, and the descriptor to pass on, for a child that is started within the block.

    Arguments and settings may be secrets, and every user of a machine sees the command lines of all processes.
    """
    descriptor = private_memory("trawl-given")
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(msgspec.json.encode([options.arguments, options.settings]))
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield replace(options, given_fd=descriptor).to_arguments(), descriptor
    finally:
        os.close(descriptor)


def received(options: CrawlerOptions) -> CrawlerOptions:
    """Return the options with the arguments and settings that this process was handed over.

    Not for another process's command line: the descriptor that it names is a different file here.
    """
    if options.given_fd is None:
        return options
    with os.fdopen(options.given_fd, "rb") as file:
        arguments, settings = msgspec.json.decode(file.read(), type=tuple[dict[str, str], dict[str, str]])
    return replace(options, arguments=arguments, settings=settings, given_fd=None)


def parse(arguments: Sequence[str] | None = None) -> CrawlerOptions:
    """Read a command line; `None` reads this process's. A wrong one ends the process with one line and exit code 2."""
    parser = _parser()
    given = parser.parse_args(arguments)
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
        loads=given.loads,
        consumer=given.consumer,
        job_of=given.job_of,
        alone=given.alone,
        slot=slot,
        node=given.node,
        parent=given.parent,
        pulse_fd=given.pulse_fd,
        given_fd=given.given_fd,
        page_fd=given.page_fd,
        owner=given.owner,
        log_file=given.log_file,
        story=given.story,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m workers.crawler", description="Run one crawler in this process.")
    parser.add_argument("spider", metavar="SPIDER", help="name of the spider; `scrapy list` shows them")
    parser.add_argument("-a", metavar="NAME=VALUE", type=_pair, action="append", default=[], help="argument of the spider")
    parser.add_argument("-s", metavar="NAME=VALUE", type=_pair, action="append", default=[], help="a Scrapy setting")
    parser.add_argument("--loads", default="", metavar="NAME", help="the spider's name in its project, where SPIDER is another")
    parser.add_argument(
        "--consumer", default="", metavar="NAME", help="consumer of its items, instead of the one that the spider declares"
    )
    parser.add_argument(
        "--job-of", default="", metavar="NAME", help="end when all of the crawl is done, as a job of this service"
    )
    parser.add_argument("--alone", action="store_true", help="run an ordinary spider with a queue in memory")
    parser.add_argument("--slot", metavar="N", type=int, help="number of the slot that this crawler fills (supervised crawlers)")
    parser.add_argument("--token", metavar="T", type=int, help="fencing token of the slot")
    supervisor = parser.add_argument_group("added by a supervisor")
    supervisor.add_argument("--node", default="", metavar="NAME", help="the worker that supervises it")
    supervisor.add_argument("--parent", type=int, metavar="PID", help="end when this process does")
    supervisor.add_argument("--pulse-fd", type=int, metavar="FD", help="write reports to this descriptor, as JSON lines")
    supervisor.add_argument("--given-fd", type=int, metavar="FD", help="read arguments and settings there, as JSON")
    supervisor.add_argument("--page-fd", type=int, metavar="FD", help="write the page that is being read to this memory")
    supervisor.add_argument("--owner", default="", metavar="ID", help="keep its leases under this id, which no other process has")
    supervisor.add_argument("--log-file", default="", metavar="PATH", help="where its output goes; rotated while it runs")
    supervisor.add_argument("--story", type=_story, default=SlotStory(), metavar="JSON", help="history of the slot's crawlers")
    return parser


def _story(text: str) -> SlotStory:
    try:
        return msgspec.json.decode(text, type=SlotStory)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (separator and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value
