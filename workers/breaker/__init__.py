"""The breaker of a site: noticing that it answers with something else than its pages, holding it, and trying it again."""
