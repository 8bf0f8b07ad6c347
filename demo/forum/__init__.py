"""A living forum to crawl: `python -m demo.forum`, a real HTTP server that knows the truth about its content."""
