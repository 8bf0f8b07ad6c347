"""Requests to a site: headers, pace, robots.txt, allowed origins, walls."""
