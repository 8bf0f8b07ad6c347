"""PunkwebBB: HTML pages. No profile was written for it: its site file is what `trawl sites new` writes.

Threads and posts have UUIDs, and the opening post's element has none.
"""

from __future__ import annotations

from typing import ClassVar

from tests.real_forums.django_forum import DjangoForum


class PunkwebBB(DjangoForum):
    """Three boards in two categories."""

    name: ClassVar[str] = "punkweb"
    given: ClassVar[str | None] = "/board/"
    requirements: ClassVar[tuple[str, ...]] = ("punkweb_bb==0.5.2", "Django==5.2.19")
