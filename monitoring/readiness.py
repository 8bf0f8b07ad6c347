"""The answer of `/readyz`, of the exporter and of the API."""

from __future__ import annotations

from fastapi.responses import PlainTextResponse

from forums.overview import Overview, problems
from redis_components.server.printable import in_one_line

PROBLEMS_SAID = 20


def readiness(view: Overview) -> PlainTextResponse:
    """Return 200 `ok`, or 503 and a line for each thing that does not work, with the next step."""
    grave = [in_one_line(str(one)) for one in problems(view) if one.grave]
    lines = "\n".join(grave[:PROBLEMS_SAID]) or "ok"
    return PlainTextResponse(f"{lines}\n", status_code=503 if grave else 200, headers={"X-Content-Type-Options": "nosniff"})
