"""Guards workers against invalid messages: none ends a worker, and none is lost because it could not be read or run.

Such a message is set aside with its bytes and the reason (`trawl dead messages`), and never given to another worker. It is found

- before kombu makes a message of it (`transport.py`): text that is not JSON, JSON that is not a message;
- before Celery makes a request of it (`worker.py`): headers, arguments, time limits (`envelope.py`);
- when Celery refuses it, or raises what is not an error of the broker (`worker.py`);
- when several workers have died while they held it, for any reason (`transport.py`).

A command of remote control that cannot be one is logged and forgotten: it was sent to all workers, and is gone.

The internals of Celery and kombu that this takes are in `celery_internals.py`.
"""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

import redis
from kombu.transport import redis as over_redis

from redis_components.connection import connect
from redis_components.errors import TrawlError
from redis_components.server.printable import in_words
from workers.state.dead_messages import MOST_KEPT, RAW, DeadMessages

from .envelope import sign as sign_headers
from .envelope import signed_again

logger = logging.getLogger(__name__)

_LOGGED_BYTES = 64 * 1024

# keeping invalid messages


def set_aside(raw: bytes, *, queue: str, reason: str, form: str = RAW) -> None:
    """Keep a message in the list of dead ones; where Redis is away, in the log."""
    try:
        dropped = DeadMessages(connect()).add(raw, queue=queue, reason=reason, form=form)
    except (redis.RedisError, TrawlError) as error:
        logger.critical("a message of queue %r could not be set aside (%s); %s: %r", queue, error, reason, raw[:_LOGGED_BYTES])
        return
    logger.error("a message of queue %r was set aside: it %s; see trawl dead messages", queue, reason)
    if dropped:
        logger.warning("there are more than %d dead messages: the oldest %d were dropped", MOST_KEPT, dropped)


def one_line(error: BaseException) -> str:
    """Return an error in words, printable."""
    text = in_words(error)
    return text if text.isprintable() else ascii(text)


def replay(form: str, raw: bytes, queue: str, connection: Any, *, sign: bool = False) -> None:
    """Put a message that was set aside back into its queue, behind what waits there; with `sign` signed by this process.

    Raises kombu's OperationalError where the broker is away, TrawlError for a message that does not fit it.
    """
    channel = connection.default_channel
    if form == RAW:
        if not isinstance(channel, over_redis.Channel):
            raise TrawlError(f"the broker is not the one where the message for {queue!r:.100} was set aside; it is kept")
        with channel.conn_or_acquire() as client:
            client.lpush(queue, signed_again(raw, queue) if sign else raw)
        return
    try:
        parts = json.loads(raw)
        fields = [parts[name] for name in ("content_type", "content_encoding", "headers", "properties")]
        body = base64.b64decode(parts["body"])
        if sign:
            sign_headers(parts["headers"], body, parts["properties"], queue)
        message = channel.prepare_message(body, None, *fields)
    except (ValueError, LookupError, TypeError) as error:
        raise TrawlError(
            f"a dead message of {queue!r:.100} does not match its recorded form: {one_line(error)}; purge it"
        ) from error
    channel.basic_publish(message, exchange="", routing_key=queue)
