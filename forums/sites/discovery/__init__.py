"""Drafts a site file for an unknown forum: surveys, recognises, tries out."""
