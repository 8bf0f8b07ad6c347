"""Constants of a trial, for readers of limits; `forums.sites.http.trial` decides which sites are on one."""

from __future__ import annotations

TRIAL_PER_DAY = 1000
"""Requests: enough to see that a site file is right."""
TRIAL_RATE = 2.0
"""Requests per second where the file has none: without a rate those of a day would be spread over the day."""
