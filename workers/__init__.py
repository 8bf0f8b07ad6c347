"""What runs on a node: crawler processes and who supervises them, spiders, site files, the writer and its database."""
