"""A dupefilter that knows what this site's URLs mean."""

from scrapy_redis.dupefilter import RFPDupeFilter
from w3lib.url import url_query_cleaner


class SessionlessDupeFilter(RFPDupeFilter):
    """Two URLs that differ in `session` are one page."""

    def request_fingerprint(self, request):
        cleaned = url_query_cleaner(request.url, ["session"], remove=True)
        return super().request_fingerprint(request.replace(url=cleaned))
