"""A wait that ends early: by another thread, by a signal, by a pipe that says something or is closed.

Each wait here is for an hour: a test whose wait is not ended does not end.
"""

from __future__ import annotations

import os
import select
import signal
import threading

from workers.process.pipes import Wake, pulse_pipe

LONG_S = 3600.0


def test_another_thread_ends_it_once() -> None:
    wake = Wake()
    thread = threading.Thread(target=wake.set)
    thread.start()
    wake.wait(LONG_S)
    thread.join()
    assert select.select([wake._read], [], [], 0) == ([], [], []), "what has woken it is used up"


def test_any_number_of_calls_fits() -> None:
    wake = Wake()
    for _ in range(100_000):
        wake.set()
    wake.wait(LONG_S)


def test_a_signal_ends_it() -> None:
    wake = Wake()
    before = signal.signal(signal.SIGUSR2, lambda *_: None)
    descriptor = signal.set_wakeup_fd(-1)
    try:
        wake.on_signals()
        os.kill(os.getpid(), signal.SIGUSR2)
        wake.wait(LONG_S)
    finally:
        signal.set_wakeup_fd(descriptor)
        signal.signal(signal.SIGUSR2, before)


def test_a_supervisor_hears_a_word_and_the_end_of_the_pipe_at_once() -> None:
    wake = Wake()
    reader, write_fd = pulse_pipe()
    os.write(write_fd, b"{}\n")
    reader.wait(LONG_S, wake)
    assert reader.read() == [b"{}"]
    os.close(write_fd)
    reader.wait(LONG_S, wake)
    assert reader.read() == []
    reader.wait(LONG_S, wake)  # it has ended, so there is no reason to wait longer
    reader.close()
