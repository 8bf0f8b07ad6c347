"""django-machina: Django, HTML pages, SQLite. From PyPI. No profile was written for it: its site file is what a user makes of the
one that `trawl sites new` writes.
"""

from __future__ import annotations

from typing import ClassVar

from tests.real_forums.django_forum import DjangoForum

SITE = '''
profile = "generic"
base_url = "{base_url}"
forums = [{forums}]

[politeness]
delay_s = 0
concurrency = 8

[pages.list]
url = "/forum/x-{{forum}}/?page={{page}}"
rows = ".topiclist .card-body > .row:has(.topic-name-link)"
next = "ul.pagination li:last-child > a"

[pages.list.fields]
id = {{ select = "a.topic-name-link::attr(href)", regex = '-(\\d+)/$' }}
url = "a.topic-name-link"
title = "a.topic-name-link"
author = {{ select = ".topic-created", regex = '^\\s*By: (.*) on ' }}
reply_count = ".topic-count"
created_at = {{ select = ".topic-created", regex = ' on (.*)$' }}
last_activity = ".topic-last-post small"
token = """(concat(.//*[contains(@class, 'topic-count')], '@', \\
substring-after(.//*[contains(@class, 'topic-last-post')]//@href[contains(., '#')], '#')))"""
sticky = ".topic-icon .fa-lightbulb, .topic-icon .fa-info"

[pages.comments]
url = "/forum/x-1/topic/x-{{thread}}/?page={{page}}"
rows = "div.post"
next = "ul.pagination li:last-child > a"

[pages.comments.post]
title = "h1"
forum_id = {{ select = "(//*[contains(@class, 'breadcrumb')]//@href[not(contains(., '/topic/'))])[last()]", regex = '-(\\d+)/$' }}

[pages.comments.fields]
id = {{ select = "./@id", regex = '^\\d+$' }}
body = ".post-content"
author = {{ select = ".text-muted", regex = 'By: (.*) on ' }}
created_at = {{ select = ".text-muted", regex = ' on (.*)$' }}
edited_at = {{ select = ".edit-info small", regex = ' on (.*), edited' }}
'''


class Machina(DjangoForum):
    """The forum of `worlds/machina_settings.py`."""

    name: ClassVar[str] = "machina"
    requirements: ClassVar[tuple[str, ...]] = ("django-machina==1.3.1", "Django==5.2.19")

    def site_file(self) -> str:
        return SITE.format(base_url=self.base_url, forums=", ".join(f'"{forum}"' for forum in self.forums()))
