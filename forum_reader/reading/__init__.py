"""Reads forum pages by a site file: values, rows, and the way to the next page."""
