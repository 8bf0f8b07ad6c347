"""Records that spiders, writer and storage share."""
