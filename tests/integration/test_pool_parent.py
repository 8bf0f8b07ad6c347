"""A process of the pool does not outlive its worker, also when that dies while the pool is being made, and begins without a lock
of one of its worker's threads, which nothing would open in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.fleet import ROOT

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


FORKS = """
import json, os, signal, sys, threading
from celery.__main__ import main
from celery.signals import worker_before_create_process, worker_ready
forks = []
@worker_before_create_process.connect
def fork(**_):
    forks.append(([one.name for one in threading.enumerate()], "encodings.idna" in sys.modules))
@worker_ready.connect
def ready(**_):
    print(json.dumps([forks, [one.name for one in threading.enumerate()]]), file=sys.__stdout__, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
sys.argv = ["celery", "-A", "tasks", "worker", "-n", "one@host", "-c", "2"]
main()
"""


def test_while_the_pool_is_forked_no_thread_connects_or_imports(redis_url: str) -> None:
    environment = {**os.environ, "TRAWL_REDIS_URL": redis_url}
    command = [sys.executable, "-c", FORKS]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=True)
    forks, at_work = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[[[")))
    assert len(forks) == 2
    assert at_work.count("heartbeat") == 2, "of the node and of its machine"
    for threads, has_idna in forks:
        assert set(threads) <= {"MainThread", "health"}, "the one that writes the status file"
        assert has_idna, "each first connection imports it"
