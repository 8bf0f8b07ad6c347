"""Demo: a forum to crawl (`demo.forum`), and `python -m demo`, which crawls it with the whole fleet and checks the result."""
