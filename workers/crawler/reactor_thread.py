"""Starts crochet's reactor thread without two loops of crochet that run ten times a second for as long as the process lives.

One collects ended child processes, the other looks whether the main thread is alive. In an idle crawler they were a third of all
wake-ups. The first runs once a second here, the second waits.
"""

from __future__ import annotations

import threading
from typing import Any

import crochet
from crochet import _shutdown
from twisted.internet.task import LoopingCall

REAP_S = 1.0
NAME = "CrochetReactor"

ASSUMES = {
    "EventLoop._startReapingProcesses": "called by `setup` in the reactor's thread; starts a LoopingCall of `_reapAllProcesses`",
    "EventLoop.setup": "the reactor runs in a thread named CrochetReactor",
    "Watchdog.run": "polls `_canary`, the main thread, and then calls `_shutdown_function`, which stops the reactor",
}
"""Used name of crochet -> assumption about it."""


def start() -> None:
    """Call `crochet.setup`, once."""
    loop: Any = vars(crochet)["_main"]
    watchdog: Any = _shutdown._watchdog
    if not loop._started:
        loop._startReapingProcesses = lambda: _reap(loop)
        watchdog.run = lambda: _stop_after(watchdog._canary, watchdog._shutdown_function)
    crochet.setup()


def is_gone() -> bool:
    """Return True where the thread has ended: SystemExit in a callback ends it without a word."""
    return not any(thread.name == NAME for thread in threading.enumerate())


def _reap(loop: Any) -> None:
    looping = LoopingCall(loop._reapAllProcesses)
    looping.clock = loop._reactor
    looping.start(REAP_S, now=False)


def _stop_after(main: threading.Thread, stop: Any) -> None:
    main.join()
    stop()
