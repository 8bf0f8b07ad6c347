"""What requests carry: JSON for our own routes, forms for scrapyd's; a bound on both."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field

MOST_BYTES = 1024 * 1024
MOST_FIELDS = 2000


class JobBody(BaseModel):
    """A job to start."""

    model_config = ConfigDict(extra="forbid")

    service: str = Field(description="A service of the fleet, or a spider of the nodes' project.")
    arguments: dict[str, Any] = Field(default_factory=dict, description="Arguments of the spider.")
    settings: dict[str, Any] = Field(default_factory=dict, description="Scrapy settings that are numbers or switches.")
    crawlers: int = Field(1, ge=1, description="Crawlers that share the crawl.")
    urls: list[str] = Field(default_factory=list, max_length=1000, description="Start tasks of a spider fed from Redis.")
    id: str = Field("", description="The end of the job's name; by default a new one.")


class SizeBody(BaseModel):
    """How many crawlers a service shall have."""

    model_config = ConfigDict(extra="forbid")

    size: int = Field(ge=0)


class UrlsBody(BaseModel):
    """URLs for a service that is fed from Redis."""

    model_config = ConfigDict(extra="forbid")

    urls: list[str | dict[str, Any]] = Field(max_length=10_000)
    unique: bool = Field(False, description="Leave out what the crawl requested before.")


class LimitsBody(BaseModel):
    """What a site gets from all crawlers together; what is left out is not limited."""

    model_config = ConfigDict(extra="forbid")

    rate: float | None = Field(None, description="Requests per second.")
    burst: int | None = Field(None, description="Requests that may be sent at once after a pause; 1 by default.")
    concurrency: int | None = Field(None, description="Requests at a time.")
    weight: int | None = Field(None, description="Requests that it gets where another limited site gets one; 1 by default.")
    per_hour: int | None = Field(None, description="Requests in any hour.")
    per_day: int | None = Field(None, description="Requests in any 24 hours.")
    quiet: str | None = Field(None, max_length=200, description="Nothing is sent in these hours: 01:00-06:00 Europe/Berlin.")


class ReasonBody(BaseModel):
    """Why somebody acts; for those who look later."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field("", max_length=500)


async def form_of(request: Request) -> dict[str, list[str]]:
    """The fields of a form that was posted, `application/x-www-form-urlencoded`, and of the query. Raises HTTPException."""
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
