"""Sites of the forum crawl at one moment: boards, files, drifts, budgets, and the writer of their posts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from forums.state.forum_states import FORUM_DETAIL, FORUM_LIST, Spent
from forums.state.site_faults import drift_sentence
from forums.state.writer_figures import DelayHistogram, WriterFigures
from redis_components.server.health import Problem
from workers.overview.model import Overview, SiteFault, SiteSample, SitesView

from .boards import Boards, BoardView, fails
from .problems import site_problems

Drifts = Mapping[tuple[str, str, str], tuple[float, float]]
"""(site, kind of page, figure) -> value now, and the baseline (`forums.state.site_faults.drifted`)."""


class BoardTally(NamedTuple):
    """Numbers of boards of one site."""

    boards: int
    with_gap: int
    failing: int
    stale: int


@dataclass(frozen=True, kw_only=True)
class ForumSites(SitesView):
    """The sites of the forum crawl."""

    drifts: Drifts = field(default_factory=dict)
    wrong_files: Mapping[str, str] = field(default_factory=dict)  # errors of site files, by site
    boards: Boards = field(default_factory=lambda: Boards((), 0.0))  # by id
    spent: Mapping[str, Spent] = field(default_factory=dict)  # site -> requests of the last hour
    budgets: Mapping[str, float] = field(default_factory=dict)  # site -> allowed requests an hour
    delays: Mapping[str, DelayHistogram] = field(default_factory=dict)  # site -> from publication to the database
    writer: WriterFigures = field(default_factory=WriterFigures)
    writer_lag_s: float | None = None  # since the oldest item that waits for the forum writer was fetched; None: not known
    output_troubles: Mapping[str, str] = field(default_factory=dict)  # output of events -> its error
    another_database: bool = False  # the last written database is not that of the thread records
    refused_database: str | None = None  # refusal of a writer with another database than the fleet's

    @property
    def faults(self) -> Sequence[SiteFault]:
        """Site files that are wrong, unless the site's breaker reports it, and pages that have drifted."""
        reported = {site: one.reason for site, one in self.breakers.items()}
        wrong = [
            SiteFault(site, "wrong file", f"not seeded: {reason}", grave=True)
            for site, reason in self.wrong_files.items()
            if reported.get(site) != reason
        ]
        drifts = [
            SiteFault(site, "drifted", f"{kind} pages: {drift_sentence(figure, *values)}", grave=False)
            for (site, kind, figure), values in self.drifts.items()
        ]
        return [*wrong, *drifts]

    @property
    def stored(self) -> int:
        """Posts and comments whose time of publication is known."""
        return sum(sum(one.counts) for one in self.delays.values())

    def samples(self, now: float) -> Mapping[str, SiteSample]:
        """Return what was stored of each site, and the age of the last scan of its stalest board."""
        sites = {name: SiteSample(stored=sum(one.counts)) for name, one in self.delays.items()}
        oldest: dict[str, float] = {}
        for one in self.boards.watched:
            if (at := one.state.scanned_at) is not None:
                oldest[one.site] = min(at, oldest.get(one.site, at))
        for name in self.names:
            stored = sites[name].stored if name in sites else 0
            sites[name] = SiteSample(stored=stored, stale_s=max(0.0, round(now - oldest.get(name, now))))
        return sites

    def problems(self, view: Overview) -> Iterable[Problem]:
        """Return the problems of files, boards, the database and outputs."""
        return site_problems(self, view)

    def idle(self, view: Overview) -> str:
        """Return the command that watches the first forum, where no board is watched and no other service has crawlers."""
        wanted = {one.name for one in view.services if view.wanted(one)}
        is_idle = not len(self.boards) and FORUM_LIST in wanted and wanted <= {FORUM_LIST, FORUM_DETAIL}
        return "nothing is watched yet: trawl watch ADDRESS" if is_idle else ""

    def details(self) -> Mapping[str, object]:
        """Return drifts and wrong files as `trawl status --json` shows them."""
        drifts = [
            {"site": site, "page": kind, "figure": figure, "now": round(now, 4), "usual": round(usual, 4)}
            for (site, kind, figure), (now, usual) in self.drifts.items()
        ]
        return {"drifts": drifts, "wrong_files": dict(self.wrong_files), "another_database": self.another_database}

    @cached_property
    def stale(self) -> tuple[BoardView, ...]:
        """Boards that are overdue without a hold of their site, the most overdue first."""
        return tuple(sorted(self.boards.stale(), key=lambda one: one.watched.due_at))

    @cached_property
    def tallies(self) -> Mapping[str, BoardTally]:
        """Numbers of boards by watched site: all, with a gap, failing, stale."""
        ill = self.boards.ill
        gaps = Counter(one.site for one in ill if one.state.gap_at is not None)
        failing = Counter(one.site for one in ill if fails(one))
        stale = Counter(one.watched.site for one in self.stale)
        boards = self.boards.by_site
        return {site: BoardTally(boards[site], gaps[site], failing[site], stale[site]) for site in sorted(boards)}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the watched sites."""
        return tuple(self.tallies)


NO_SITES = ForumSites()


def forum_sites(view: Overview) -> ForumSites:
    """Return the sites of the forum crawl; none where Redis did not answer."""
    return view.sites if isinstance(view.sites, ForumSites) else NO_SITES
