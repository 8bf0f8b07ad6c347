"""Takes items out of Redis and prints them as lines: python process_items.py REDIS_URL KEY [KEY ...] --idle SECONDS."""

import argparse
import json

from scrapy_redis import get_redis


def main():
    """Until nothing has come for `--idle` seconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("keys", nargs="+")
    parser.add_argument("--idle", type=int, default=1)
    chosen = parser.parse_args()
    server = get_redis(url=chosen.url)
    while (popped := server.blpop(chosen.keys, timeout=chosen.idle)) is not None:
        print(json.dumps(json.loads(popped[1]), sort_keys=True), flush=True)


if __name__ == "__main__":
    main()
