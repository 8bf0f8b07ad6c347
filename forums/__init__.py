"""Crawl of forums, an application of the fleet; and the names of its spiders."""

FORUM_LIST = "forum_list"
"""Spider that reads list pages and feeds new and changed threads to FORUM_DETAIL."""
FORUM_DETAIL = "forum_detail"
"""Spider that reads threads: opening posts and comments."""
