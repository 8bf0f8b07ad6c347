"""Tells others what happened to posts and comments: rules, outputs, and the one process at a time that publishes."""
