"""Reads forum pages: a page to its posts, with a site file or without one; a forum's address to a site file."""
