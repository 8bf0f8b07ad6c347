"""Finds the line of a crawler's log that gives the reason of its end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from workers.logs.lines import last_words
from workers.logs.slot_log import SlotLog
from workers.process.exit_kinds import Exit
from workers.state.registry import CrawlerRecord, CrawlerState, Slot, SlotStory

from .restart_policy import RestartPolicy, Streak, inherited

_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Fault|Unavailable|Interrupt)\b(?:: .*)?$")  # below a traceback
_LOGGED = re.compile(r"\b(?:ERROR|CRITICAL)\b|^trawl: ")


def error_line(lines: Sequence[str]) -> str | None:
    """Return the last line that names an error: the end of a traceback, a logged error, else the last line; None
    without lines.
    """
    shown = [line.strip() for line in lines if line.strip()]
    for matches in (_RAISED.match, _LOGGED.search):
        if found := next((line for line in reversed(shown) if matches(line)), None):
            return found
    return shown[-1] if shown else None


LAST_LINES = 20  # of the log, kept in the record of a slot that was given up
REMEMBERED_CONFIGS = 8


class SlotHistory:
    """Begins with the slot's last record. `config` gives the digest of what a crawler launched now is configured with."""

    def __init__(
        self,
        slot: Slot,
        log: SlotLog,
        policy: RestartPolicy,
        *,
        node: str,
        config: Callable[[], str],
        before: CrawlerRecord | None,
    ) -> None:
        self._slot = slot
        self._log = log
        self._policy = policy
        self._node = node
        self._config = config
        self.story = SlotStory(config=config())
        if before:
            streak = inherited(before, self.story.config, policy)
            self.story = replace(
                before.story,
                restarts=before.restarts + 1,
                config=self.story.config,
                quick_ends=streak.ends,
                quick_failures=streak.failures,
            )
        self._launched = False

    @property
    def streak(self) -> Streak:
        """Quick ends in a row, those before this supervisor included."""
        return Streak(ends=self.story.quick_ends, failures=self.story.quick_failures)

    @property
    def hopeless(self) -> bool:
        """True if another launch has no point: crawlers took their supervisors along, again and again."""
        return self.streak.failures >= self._policy.max_quick_failures

    def count(self, streak: Streak) -> None:
        self.story = replace(self.story, quick_ends=streak.ends, quick_failures=streak.failures)

    def launches(self, reload: str | None) -> None:
        """Record the coming launch of a crawler; `reload` is the reason of the order that asked for it."""
        config = self._config()
        if reload is not None or config != self.story.config:
            self.count(Streak())  # the configuration has changed, or a reload was ordered
        self.story = replace(
            self.story,
            config=config,
            reload=self.story.reload if reload is None else reload,
            restarts=self.story.restarts + self._launched,
        )
        self._launched = True

    def buries(self, end: Exit) -> None:
        """Record a crawler's end."""
        self.story = replace(self.story, last_exit=str(end), last_exit_at=time.time(), last_exit_kind=end.kind.label)
        if end.lived_s >= self._policy.quick_s:
            self.count(Streak())
            self.story = replace(self.story, failed_configs=())

    def record(self, state: CrawlerState, *, pid: int = 0, note: str | None = None) -> CrawlerRecord:
        """Return the record of a slot whose crawler does not report itself."""
        return CrawlerRecord(
            spider=self._slot.spider,
            number=self._slot.number,
            pid=pid,
            node=self._node,
            state=state,
            token=self._slot.token,
            started_at=time.time(),
            note=note,
            **vars(self.story),
        )

    def given_up(self, state: CrawlerState) -> CrawlerRecord:
        """Return the record of a slot that is left alone, with all the details for its repair."""
        config = self.story.config or ""
        failed = (*(one for one in self.story.failed_configs if one != config), config)
        self.story = replace(self.story, failed_configs=failed[-REMEMBERED_CONFIGS:])
        note = self.story.last_exit or "its supervisor died with it"
        if state is CrawlerState.CRASH_LOOPING:
            note = f"{note}; {self.streak.failures} failures in a row, each within {self._policy.quick_s:.0f} s"
        lines = "\n".join(last_words(self._log, LAST_LINES))
        return replace(self.record(state, note=note), error=self.error(), log=lines or None)

    def error(self) -> str | None:
        """Return the line of the log with the reason of the last crawler's end, if there is one."""
        return error_line(last_words(self._log, LAST_LINES))
