"""Readers of a page without a site file, by profile, by schema.org and by repeated structure; the best result wins."""
