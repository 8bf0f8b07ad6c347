"""Overview of the fleet, shown by `trawl status`, the exporter, the status page and the demo.

model.py     dataclasses of the overview       reader.py    reads them from Redis
samples.py   a bounded history of figures      problems.py  what needs attention, each with its next step

An application adds what it knows of its sites (`workers.application`).
"""

from .model import Overview, ServiceView, SitesView
from .problems import WELL, calm, problems
from .reader import OverviewReader

__all__ = ["WELL", "Overview", "OverviewReader", "ServiceView", "SitesView", "calm", "problems"]
