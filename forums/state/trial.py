"""What is known of a trial where limits are read: `forums.sites.http.trial` says which sites are on one."""

from __future__ import annotations

BY_TRIAL = "no contact is named"
"""Who sets the limit."""
TRIAL_PER_DAY = 1000
"""Requests: enough to see whether a site file is right."""
