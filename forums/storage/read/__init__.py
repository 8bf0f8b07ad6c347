"""Queries of the database: search, export, events, SQL that a person wrote."""
