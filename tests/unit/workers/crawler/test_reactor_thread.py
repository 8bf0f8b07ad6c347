"""crochet's reactor thread, as crawlers start it: no loop of it polls, and the process ends with its main thread."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import crochet
from scrapy.utils.reactor import install_reactor
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
from workers.crawler import crawl as reactor_thread
reactor_thread.start()
reactor_thread.start()
from twisted.internet import reactor
def intervals():
    return [call.func.interval for call in reactor.getDelayedCalls()]
print(crochet.run_in_reactor(intervals)().wait(20))
"""


@pytest.mark.processes
def test_the_reactor_wakes_once_a_second_and_ends_with_the_main_thread() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[1.0]\n"
    assert done.stderr == ""
