"""Bodies of requests: JSON for our own routes, forms for scrapyd's; a bound on both."""

from __future__ import annotations

import math
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, HTTPException, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MOST_BYTES = 1024 * 1024
MOST_FIELDS = 2000


MOST_WHOLE, MOST_CRAWLERS = 2**63, 1000


def _finite(value: Any) -> Any:
    """Return what JSON and Redis can hold as it is. Raises ValueError for other numbers, such as 1e999, however deep."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number must be finite")
    if isinstance(value, int) and abs(value) >= MOST_WHOLE:
        raise ValueError("a whole number must be below 2**63")
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _finite(one)
    return value


Anything = Annotated[Any, AfterValidator(_finite)]


class _Body(BaseModel):
    """A body whose types are exact, so `true` and "1" are refused as numbers, and whose numbers are finite."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class JobBody(_Body):
    """A job to start."""

    service: str = Field(description="A service of the fleet, or a spider of the nodes' project.")
    arguments: dict[str, Anything] = Field(default_factory=dict, description="Arguments of the spider.")
    settings: dict[str, Anything] = Field(default_factory=dict, description="Scrapy settings that are numbers or switches.")
    crawlers: int = Field(1, ge=1, le=MOST_CRAWLERS, description="Crawlers that share the crawl.")
    urls: list[str] = Field(default_factory=list, max_length=1000, description="Start tasks of a spider fed from Redis.")
    id: str = Field("", description="The end of the job's name; by default a new one.")


class SizeBody(_Body):
    """Desired number of crawlers of a service."""

    size: int = Field(ge=0, le=MOST_CRAWLERS)


class UrlsBody(_Body):
    """URLs for a service that is fed from Redis."""

    urls: list[str | dict[str, Anything]] = Field(max_length=10_000)
    unique: bool = Field(False, description="Leave out what the crawl requested before.")


class LimitsBody(_Body):
    """Limits of a site over all crawlers; omitted ones are not set."""

    rate: float | None = Field(None, description="Requests per second.")
    burst: int | None = Field(None, description="Requests that may be sent at once after a pause; 1 by default.")
    concurrency: int | None = Field(None, description="Requests at a time.")
    weight: int | None = Field(None, description="Requests that it gets where another limited site gets one; 1 by default.")
    per_hour: int | None = Field(None, description="Requests in any hour.")
    per_day: int | None = Field(None, description="Requests in any 24 hours.")
    quiet: str | None = Field(None, max_length=200, description="Nothing is sent in these hours: 01:00-06:00 Europe/Berlin.")


class ReasonBody(_Body):
    """Reason of an act, for the audit."""

    reason: str = Field("", max_length=500)


async def form_of(request: Request) -> dict[str, list[str]]:
    """Parse the fields of a posted form, `application/x-www-form-urlencoded`, and of the query. Raises HTTPException."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise HTTPException(413, f"a request has at most {MOST_BYTES} bytes")
    found: dict[str, list[str]] = {}
    try:
        pairs = [
            *request.query_params.multi_items(),
            *parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS),
        ]
    except ValueError as error:
        raise HTTPException(400, f"the form cannot be read: {error}") from None
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


FormFields = Annotated[dict[str, list[str]], Depends(form_of)]
