"""Drafts a site file for an unknown forum: explores its pages, recognises its software, tries the file."""
