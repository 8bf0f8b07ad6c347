"""One view of the fleet and its sites: what `trawl status`, the exporter, the status page and the demo show.

model.py     what is shown, as dataclasses    reader.py    reads it from Redis
boards.py    the state of one board           problems.py  what needs attention, each with its next step
samples.py   a bounded history of figures     why.py       what is known of one URL
"""

from .boards import Boards, BoardView
from .model import Overview, ServiceView, SitesView
from .problems import Problem, problems
from .reader import OverviewReader

__all__ = ["BoardView", "Boards", "Overview", "OverviewReader", "Problem", "ServiceView", "SitesView", "problems"]
