"""A process of the pool does not outlive its worker, also when that dies while the pool is being made."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, time
from celery.signals import worker_process_init
from tasks import app  # connects what a worker connects
from tasks.node import remember_main_process
remember_main_process()
main = os.getpid()
if os.fork():
    if sys.argv[1] == "dies":
        os._exit(0)
    os.wait()
    os._exit(0)
while sys.argv[1] == "dies" and os.getppid() == main:
    time.sleep(0.005)
worker_process_init.send(sender="worker@host")
print("takes tasks", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(("main", "said"), [("dies", ""), ("lives", "takes tasks\n")])
def test_a_process_of_the_pool_whose_worker_is_gone_ends(main: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, main], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (said, "")
