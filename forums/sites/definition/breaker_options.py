"""The table `breaker` of a site file: when the breaker opens, and how the site is probed."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, model_validator


class BreakerOptions(BaseModel):
    """`[breaker]` of a site file."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    enabled: bool = Field(default=True, description="open the breaker where the site sends walls instead of pages")
    in_a_row: int = Field(default=5, ge=1, description="number of blocked responses in a row that opens it")
    share: float = Field(default=0.5, gt=0, le=1, description="share of blocked responses among the last 40 that opens it")
    attempts: int = Field(
        default=3, ge=1, description="attempts after which a page is given up that is blocked while others are not"
    )
    probe_s: float = Field(default=30, gt=0, description="seconds until the first probe; doubled for each further one")
    probe_max_s: float = Field(default=3600, gt=0, description="longest time between two probes, in seconds")
    good_probes: int = Field(default=2, ge=1, description="number of good probes in a row that closes it")
    probe_url: HttpUrl | None = Field(default=None, description="the page to probe; else the first list page of the first forum")

    @model_validator(mode="after")
    def _in_order(self) -> BreakerOptions:
        if self.probe_max_s < self.probe_s:
            raise ValueError(f"probe_max_s = {self.probe_max_s:g}: must not be less than probe_s = {self.probe_s:g}")
        return self
