"""The status page: the fleet's state in a browser, and the actions offered there.

rendering.py  templates, filters and colours      runs.py     jobs, runs, members, nights
views.py      each page as HTML                   search.py   a URL's story, words and authors
routes.py     their addresses                     login.py    tokens, sessions, who may do what
actions.py    what can be done, and what follows  action_routes.py  the routes of forms
"""
