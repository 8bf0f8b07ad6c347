"""Drafts a site file for an unknown forum."""
