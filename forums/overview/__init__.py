"""Overview of the fleet and its sites, shown by `trawl status`, the exporter, the status page and the demo.

model.py     dataclasses of the overview       reader.py    reads them from Redis
boards.py    state of one board                problems.py  what needs attention, each with its next step
samples.py   a bounded history of figures      why.py       state of one URL
"""

from .boards import Boards, BoardView
from .model import Overview, ServiceView, SitesView
from .problems import problems
from .reader import OverviewReader

__all__ = ["BoardView", "Boards", "Overview", "OverviewReader", "ServiceView", "SitesView", "problems"]
