"""Launches crawler processes, ends them, and reads how long a process has waited for a CPU: on a busy machine its heartbeats are
late, and it is not to blame.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from redis_components.embedded import redis_url
from redis_components.embedded.child_process import ChildProcess
from redis_components.server.url import with_login
from workers.environment.variables import Fleet
from workers.logs.slot_log import SlotLog
from workers.process import forked, pipes
from workers.process.exit_kinds import MARGIN_S, ExitKind
from workers.process.forked import ForkedProcess
from workers.process.memory import ProcessTree
from workers.process.options import CrawlerOptions, handed_over
from workers.process.page_at_work import PageAtWork, SharedPage
from workers.process.pipes import HandshakeLimits, PulseReader, Wake, announced_in, is_rest, pulse_pipe
from workers.process.run_module import own_module
from workers.state.group_runs import RUN
from workers.state.registry import CrawlerRecord


def waited_s(pid: int) -> float:
    """Return the seconds since its start in which the main thread of `pid` could have run and had no CPU; 0.0 where unknown.

    The second number of /proc/PID/schedstat (Linux, CONFIG_SCHED_INFO): time on a run queue, ns.
    """
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


logger = logging.getLogger(__name__)


class LaunchedCrawler:
    """A crawler process in a new session; made by `launch`. Call `poll` and `pulse` often; neither waits."""

    def __init__(self, process: ChildProcess | ForkedProcess, pulse: PulseReader, page: SharedPage, kin: object = None) -> None:
        self._process = process
        self._tree = ProcessTree(process.pid)
        self._pulse = pulse
        self._page = page
        self._begin()
        self.kin = kin
        """Its next crawl needs the same."""

    def _begin(self) -> None:
        """Forget the crawl before."""
        self._page_excused = False
        self._started_at = self._reported_at = time.monotonic()
        self._waited_s = waited_s(self.pid)  # for a CPU, at the last report
        self.record: CrawlerRecord | None = None  # its last report
        self.announced: ExitKind | None = None  # how it ends
        self.rests = False  # it has finished its crawl, and waits for the next one
        self.terms = HandshakeLimits()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def lived_s(self) -> float:
        """Seconds since it was launched."""
        return time.monotonic() - self._started_at

    @property
    def silent_s(self) -> float:
        """Seconds since its last report, or since its launch."""
        return time.monotonic() - self._reported_at

    def starved_s(self) -> float:
        """Return the seconds of its silence in which it waited for a CPU."""
        return waited_s(self.pid) - self._waited_s

    def excuse(self, seconds: float) -> None:
        """Do not count `seconds` of silence: the whole node was frozen."""
        self._reported_at += seconds

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs. 0 too while it rests."""
        if self.rests:
            return 0
        code = self._process.poll()
        if code == forked.UNKNOWN:
            self.pulse()
            return self.announced.exit_code if self.announced else -signal.SIGKILL
        return code

    def pulse(self) -> bool:
        """Read its reports; return True for a new one (then see `record`)."""
        lines = self._pulse.read()
        if not lines:
            return False
        self._reported_at, self._waited_s = time.monotonic(), waited_s(self.pid)
        last = b""
        try:
            for line in lines:
                if terms := HandshakeLimits.from_line(line):
                    self.terms = terms
                elif kind := announced_in(line):
                    self.announced = kind
                elif is_rest(line):
                    self.rests = True
                else:
                    last = line
            if last:
                self.record = CrawlerRecord.from_json(last)
        except ValueError:
            logger.warning("crawler %s sent a line that is not a record: %.100r", self.pid, last)
            return False
        return self.record is not None

    def wait(self, seconds: float, wake: Wake) -> None:
        """Wait at most so long; less when it reports, when it ends, or when woken."""
        self._pulse.wait(seconds, wake)

    def page_at_work(self) -> PageAtWork | None:
        """Return the page that it reads, or was reading when it ended; until `close`."""
        return None if self._page_excused else self._page.read()

    def excuse_page_if_stopped(self) -> None:
        """Excuse the page that was being read if the process is suspended (SIGSTOP): the page is not to blame for its silence."""
        with suppress(psutil.Error):
            self._page_excused = psutil.Process(self.pid).status() == psutil.STATUS_STOPPED

    def resident(self) -> int:
        """Return the resident bytes of it and its children, read from outside: it may be too busy growing to report them."""
        return self._tree.resident() if self.poll() is None else 0

    def terminate(self) -> None:
        """Send SIGTERM: finish the pages in flight. Only to the crawler, which ends its own children as it sees fit."""
        if self.poll() is None:
            self._tree.look()
            self._process.send_signal(signal.SIGTERM)

    def dump_stacks(self) -> None:
        """Have it write to its log where every thread stands; works also while C code holds the interpreter."""
        if self.poll() is None:
            self._process.send_signal(signal.SIGUSR1)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.5)

    def kill(self) -> None:
        """Send SIGKILL to its whole group, and wait for it to be gone."""
        self._tree.look()
        self._process.kill_group()
        self._process.wait()

    def goes_on(self, options: CrawlerOptions) -> bool:
        """Give it its next crawl; False where it does not take one."""
        forked_one = self._process if isinstance(self._process, ForkedProcess) else None
        if forked_one is None or forked_one.poll() is not None or not forked_one.order(options):
            return False
        self._begin()
        return True

    def let_go(self) -> None:
        """End it while it rests."""
        self.rests = False
        if isinstance(self._process, ForkedProcess):
            self._process.no_more_orders()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(MARGIN_S)
        self.close()

    def close(self) -> None:
        """End the processes that it left behind, and release the pipe, after its end."""
        self._process.kill_group()
        self._tree.kill_others()  # a browser may have another group
        self._pulse.close()
        self._page.close()
        if isinstance(self._process, ForkedProcess):
            self._process.close()


def _environment(options: CrawlerOptions) -> dict[str, str]:
    """Return the environment of a crawler: the worker's, with the service's own user of Redis where there is one."""
    environment = {**os.environ, **({"SCRAPY_SETTINGS_MODULE": options.project} if options.project else {})}
    users = Fleet.read().redis_users
    lines = users.read_text("utf-8").splitlines() if users else []
    if password := dict(line.split(maxsplit=1) for line in lines if line.strip()).get(f"crawler-{options.spider}"):
        url = with_login(redis_url(), f"crawler-{options.spider}", password)
        others = ("TRAWL_REDIS_URL_FILE", "TRAWL_BROKER_URL", "TRAWL_BROKER_URL_FILE", "TRAWL_REDIS_USERS")
        environment |= {"TRAWL_REDIS_URL": url, **dict.fromkeys(others, "")}  # empty, not absent: `.env` may have them
    return environment


def launch(options: CrawlerOptions, log: SlotLog, resting: LaunchedCrawler | None = None) -> LaunchedCrawler:
    """Fork a crawler from the warm parent, or execute `workers.crawler` as a child of this *thread*: then it ends when the thread
    does, so launch from one that stays. `resting`: takes the crawl instead, if it can; it ends otherwise.

    Raises OSError when no process can be made, or TRAWL_REDIS_USERS cannot be read.
    """
    try:
        environment = _environment(options)
    except OSError:
        if resting:
            resting.let_go()
        raise
    kin = options.python, environment, options.settings.get(RUN)
    ours = replace(options, parent=os.getpid(), log_file=str(log.path))
    if resting:
        if resting.kin == kin and resting.goes_on(ours):
            return resting
        resting.let_go()
    pulse, write_fd = pulse_pipe()
    page = SharedPage()
    ours = replace(ours, pulse_fd=write_fd, page_fd=page.descriptor)
    log_fd = log.open()
    try:
        process = forked.fork(ours, environment, log_fd) or _executed(ours, environment, log_fd)
    except OSError:
        pulse.close()
        page.close()
        raise
    finally:
        os.close(write_fd)
        os.close(log_fd)
    return LaunchedCrawler(process, pulse, page, kin)


def _executed(options: CrawlerOptions, environment: dict[str, str], log_fd: int) -> ChildProcess:
    with handed_over(options) as (line, given_fd):
        command, files = own_module("workers.crawler", *line, python=options.python), (*options.descriptors, given_fd)
        return ChildProcess(command, stdout=log_fd, stderr=log_fd, pass_fds=files, env=environment)


TICK_S = 0.25  # between checks of a crawler; its reports, its end and orders of the fleet are noticed at once
WEIGH_S = 1.0  # how often its memory is read


class Watch:
    """Watches one crawler. Silence for `silence_s` is trouble, before its first report for `start_s`.

    Time that it waited for a CPU does not count: on a machine with forty busy processes a turn takes seconds, and killing what
    starts makes it busier.
    """

    def __init__(self, crawler: LaunchedCrawler, *, silence_s: float, start_s: float) -> None:
        self._crawler = crawler
        self._silence_s, self._start_s = silence_s, start_s
        self._weigh_at = 0.0

    def trouble(self) -> tuple[ExitKind, str] | None:
        """Return the kind of end for a crawler that has to be killed, and a sentence for the log."""
        crawler = self._crawler
        look = time.monotonic() >= self._weigh_at
        if look:
            self._weigh_at = time.monotonic() + WEIGH_S
        limit_s = self._silence_s if crawler.record else self._start_s
        silent = crawler.silent_s > limit_s and crawler.silent_s - crawler.starved_s() > limit_s
        # Memory is checked before a silent crawler counts as hung: its growth may be the cause of the silence.
        most = crawler.terms.memory_hard_bytes
        if (silent or look) and (resident := crawler.resident()) > most > 0:
            return ExitKind.OUT_OF_MEMORY, f"it had {resident >> 20} MiB of memory"
        if silent:
            return ExitKind.HUNG, f"no report for {crawler.silent_s:.0f} s"
        return None

    def tick(self, wake: Wake) -> None:
        """Wait until the next look."""
        self._crawler.excuse(pipes.sleep(TICK_S, lambda seconds: self._crawler.wait(seconds, wake)))
