"""The table `breaker` of a site file: when the breaker opens, and how the site is probed."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, model_validator


class BreakerOptions(BaseModel):
    """`[breaker]` of a site file."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    enabled: bool = Field(default=True, description="hold the site where it answers with walls instead of pages")
    in_a_row: int = Field(default=5, ge=1, description="so many blocked answers in a row, and no page between them, open it")
    share: float = Field(default=0.5, gt=0, le=1, description="this share of blocked answers among the last 40 opens it, too")
    attempts: int = Field(default=3, ge=1, description="a page that is blocked so often, while others are not, is given up")
    probe_s: float = Field(default=30, gt=0, description="seconds until the first probe; then twice as long each time")
    probe_max_s: float = Field(default=3600, gt=0, description="longest time between two probes, in seconds")
    good_probes: int = Field(default=2, ge=1, description="so many good probes in a row close it")
    probe_url: HttpUrl | None = Field(default=None, description="the page to probe; else the first list page of the first forum")

    @model_validator(mode="after")
    def _in_order(self) -> BreakerOptions:
        if self.probe_max_s < self.probe_s:
            raise ValueError(f"probe_max_s = {self.probe_max_s:g}: must not be less than probe_s = {self.probe_s:g}")
        return self
