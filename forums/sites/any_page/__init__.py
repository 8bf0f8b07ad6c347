"""Reads any page, without a site file: what kind it is, and the posts of a thread (`trawl read`, `sites new`)."""
