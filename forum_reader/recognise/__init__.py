"""Recognises the software of a forum by the marks of its pages."""
