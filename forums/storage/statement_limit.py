"""Time limit of statements for a waiting client, such as a page: they also end when the client is gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Engine, event

from redis_components.errors import TrawlError

from .errors import StorageError

_LOOK_S = 0.1


class TakesTooLong(TrawlError):
    """The database was interrupted; the message has the reason."""


@contextmanager
def limited(engine: Engine, seconds: float, gone: threading.Event | None = None) -> Iterator[None]:
    """Interrupt statements of the engine within the block after `seconds`, or once `gone` is set. Raises TakesTooLong then."""
    held: set[Any] = set()
    lock, ended, why = threading.Lock(), threading.Event(), list[str]()
    deadline = time.monotonic() + seconds

    def hold(driver: Any, *_: Any) -> None:
        with lock:
            held.add(driver)

    def release(driver: Any, *_: Any) -> None:
        with lock:  # only drivers of this block are cancelled
            held.discard(driver)

    def watch() -> None:
        while not ended.wait(_LOOK_S):
            if (is_gone := gone is not None and gone.is_set()) or time.monotonic() > deadline:
                why[:] = ["its client is gone" if is_gone else f"it took the database more than {seconds:g} s"]
                with lock, suppress(Exception):  # repeated: a cancel between two statements has no effect
                    for driver in held:
                        _cancel(engine, driver)

    event.listen(engine, "checkout", hold)
    event.listen(engine, "checkin", release)
    watcher = threading.Thread(target=watch, name="statement-limit", daemon=True)
    watcher.start()
    try:
        yield
    except StorageError:
        if not why:
            raise
        raise TakesTooLong(why[0]) from None
    finally:
        ended.set()
        watcher.join()
        event.remove(engine, "checkout", hold)
        event.remove(engine, "checkin", release)


def _cancel(engine: Engine, driver: Any) -> None:
    if engine.dialect.name == "sqlite":
        driver.interrupt()
    elif engine.dialect.name == "postgresql":
        driver.cancel()
    else:  # by another connection, not one of the pool's
        with driver.__class__(**engine.dialect.create_connect_args(engine.url)[1]) as other, other.cursor() as cursor:
            cursor.execute(f"KILL QUERY {driver.thread_id():d}")
