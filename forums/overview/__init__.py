"""Forum half of the overview (`fleet_operations/overview`): the sites and their boards.

model.py     the sites at one moment, read from Redis, and what needs attention, each with its next step
boards.py    state of one board
why.py       state of one URL
"""

from .boards import Boards, BoardView
from .model import ForumSites, forum_sites

__all__ = ["BoardView", "Boards", "ForumSites", "forum_sites"]
