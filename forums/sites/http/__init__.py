"""How a site is asked: headers, pace, robots.txt, allowed origins, walls."""
