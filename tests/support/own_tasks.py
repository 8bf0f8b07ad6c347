"""An operator's own tasks, as TRAWL_TASK_MODULES names them."""

from __future__ import annotations

from redis_components.connection import connect
from tasks import app


@app.task(name="own.note")
def note(text: str) -> None:
    """Leave a line that a test can read."""
    connect().rpush("own:notes", text)
