"""Records that spiders, writer and storage share."""

FORUM_WRITER = "forum_writer"
"""Consumer of their items, which stores them in the database (`forums.writer.store`)."""
