"""Spirit: Django, HTML pages, SQLite. From PyPI. No profile was written for it: its site file is what `trawl sites new` writes,
with the counts and dates filled in. Its addresses hold titles, and one with another title leads to the first page: so pages
are only reached by the links to them.
"""

from __future__ import annotations

from typing import ClassVar

from tests.real_forums.django_forum import DjangoForum

SITE = """
profile = "generic"
base_url = "{base_url}"
forums = [{forums}]

[politeness]
delay_s = 0
concurrency = 8

[pages.list]
url = '/category/{{forum:path}}/?page={{page}}'
rows = 'div.layout__topics__topic'
next = 'a:has(> .fa-chevron-right)'

[pages.list.fields]
id = {{ select = 'a.topic__link::attr(href)', regex = '/topic/(\\d+)' }}
title = 'a.topic__link'
url = 'a.topic__link'
reply_count = {{ select = ".topic__comments", add = -1 }}
last_activity = ".topic__date::attr(title)"
sticky = ".fa-thumb-tack"

[pages.comments]
url = '{{url}}'
rows = 'div.comments_list__comment'
next = 'a:has(> .fa-chevron-right)'

[pages.comments.post]
forum_id = {{ select = "(//ul[contains(@class, 'breadcrumb')]//@href)[last()]", regex = '/category/(\\d+/[^/]+)' }}

[pages.comments.fields]
id = './@data-pk'
body = 'div.comment__text'
author = 'a[href*="/user/"]'
created_at = ".comment__info__date li::attr(title)"
"""


class Spirit(DjangoForum):
    """The forum of `worlds/spirit_settings.py`."""

    name: ClassVar[str] = "spirit"
    requirements: ClassVar[tuple[str, ...]] = ("django-spirit==0.14.3", "Django==5.2.19")

    def site_file(self) -> str:
        return SITE.format(base_url=self.base_url, forums=", ".join(f'"{forum}"' for forum in self.forums()))
