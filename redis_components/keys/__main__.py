"""`python -m redis_components.keys`: print the reference of the keys."""

from .reference import document

print(document(), end="")
