"""Spirit: HTML pages. No profile was written for it: its site file is what `trawl sites new` writes.

Its front page lists the topics of all categories. Its addresses hold titles, and one with another title leads to the first page:
so pages are only reached by the links to them.
"""

from __future__ import annotations

from typing import ClassVar

from tests.real_forums.django_forum import DjangoForum


class Spirit(DjangoForum):
    """The forum of `worlds/spirit_settings.py`."""

    name: ClassVar[str] = "spirit"
    given: ClassVar[str | None] = "/"
    requirements: ClassVar[tuple[str, ...]] = ("django-spirit==0.14.3", "Django==5.2.19")
