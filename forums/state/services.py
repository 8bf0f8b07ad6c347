"""Names of the two services of the forum crawl. A service has the name of its spider."""

from __future__ import annotations

FORUM_LIST = "forum_list"
"""Reads list pages and feeds new and changed threads to FORUM_DETAIL."""
FORUM_DETAIL = "forum_detail"
"""Reads threads: opening posts and comments."""
