"""What a site file says, checked."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, field_validator

from redis_components.errors import ConfigError

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]


class SiteError(ConfigError):
    """A site file is missing or wrong; the message names the file, the key, the value and the fix."""


class Pages(BaseModel):
    """URL paths of the three interfaces, with `{forum}`, `{post}` and `{page}` (from 1) to be filled in."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    list: str = "/list/{forum}/{page}"
    post: str = "/post/{post}"
    comments: str = "/comment/{post}/{page}"

    @field_validator("list", "post", "comments")
    @classmethod
    def _fillable(cls, template: str) -> str:
        try:
            template.format(forum="f", post="p", page=1)
        except (KeyError, ValueError, IndexError) as exc:
            raise ValueError(f"may only hold {{forum}}, {{post}} and {{page}}: {exc}") from exc
        if not template.startswith("/"):
            raise ValueError("must start with /")
        return template


class Site(BaseModel):
    """One site: where it is, which forums are watched, how often and how deep."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    base_url: HttpUrl
    also_allowed: tuple[HttpUrl, ...] = Field(default=(), description="other places that may be fetched, as after a redirect")
    forums: tuple[Name, ...] = Field(min_length=1)
    pages: Pages = Pages()
    interval_s: float = Field(default=300, gt=0, description="seconds between two scans of one forum")
    max_pages: int = Field(default=50, ge=1, description="list pages read in one scan")

    def _url(self, template: str, **values: object) -> str:
        filled = template.format(**{name: quote(str(value), safe="") for name, value in values.items()})
        return str(self.base_url).rstrip("/") + filled

    def list_url(self, forum: str, page: int) -> str:
        """URL of a list page."""
        return self._url(self.pages.list, forum=forum, page=page, post="")

    def post_url(self, post: str) -> str:
        """URL of a post."""
        return self._url(self.pages.post, post=post, forum="", page=1)

    def comments_url(self, post: str, page: int) -> str:
        """URL of a page of comments."""
        return self._url(self.pages.comments, post=post, page=page, forum="")
