"""An operator's own tasks that fail, as TRAWL_TASK_MODULES names them."""

from __future__ import annotations

from tasks import app


@app.task(name="own.out_of_memory")
def out_of_memory() -> None:
    """Fail as a task does whose arguments make it build too much."""
    raise MemoryError
