"""Decides which forums and threads are crawled next."""
