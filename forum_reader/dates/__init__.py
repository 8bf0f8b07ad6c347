"""Reads dates as forums write them."""
