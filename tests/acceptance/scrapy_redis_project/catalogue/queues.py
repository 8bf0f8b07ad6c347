"""A queue with an order of its own."""

from scrapy_redis.queue import Base


class ShortestFirst(Base):
    """Requests with a short URL come first."""

    def __len__(self):
        return self.server.zcard(self.key)

    def push(self, request):
        self.server.zadd(self.key, {self._encode_request(request): len(request.url)})

    def pop(self, timeout=0):
        popped = self.server.zpopmin(self.key)
        return self._decode_request(popped[0][0]) if popped else None
