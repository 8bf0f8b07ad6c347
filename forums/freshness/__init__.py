"""Due times of scans of forums and of checks of threads: pure functions of state and time, without Redis or a database.

**What is optimised.** A list page costs a request, also an empty one; threads found on it are fetched in any case. With scans `T`
apart and `r` changes a second, a change waits `T/2` on average, and `r T/2` changes wait at any moment (Little's law). The policy
minimises the number of changes that wait, which is the mean delay "published → stored" times the rate of all changes, subject to
the requests that a site may be sent: `sum(cost / T) <= budget`. Lagrange's condition gives the square-root rule

    T_i = K * sqrt(cost_i / r_i),     K such that the budget is spent

as in Sia, Cho and Cho (Efficient monitoring algorithm for fast news alerts, IEEE TKDE 19(7), 2007) for feeds. That the scans of
one forum are to be spaced evenly is shown by Coffman, Liu and Weber (Optimal robot scheduling for web search engines, Journal
of Scheduling 1(1), 1998). A site that bounds `T` (`min_interval_s`, `max_interval_s`) fixes some `T_i`; the others share what
is left.

**Why not freshness itself.** Cho and Garcia-Molina (Effective page refresh policies for web crawlers, ACM TODS 28(4), 2003)
maximise the share of time a copy is up to date, `(1 - exp(-r T)) / (r T)`; Wolf et al. (Optimal crawling strategies for web
search engines, WWW 2002) the same for other processes and with the users' clicks as weights. Where `r T` is small both
objectives are the same to the first order: `1 - r T/2`. Where it is large, theirs gives up the busiest forums, whose posts are
the ones that users wait for. Azar, Horvitz, Lubetzky, Peres and Shahaf (Tractable near-optimal policies for crawling, PNAS
115(32), 2018) find it in near-linear time for random crawl times; Kolobov, Peres, Lubetzky and Horvitz (Staying up to date with
online content changes using reinforcement learning for scheduling, NeurIPS 2019) lie in between, with a penalty that grows like
the harmonic numbers. `benchmarks/forums/freshness.py` compares them. The linear penalty has another advantage where rates are not
known: its expectation depends on the mean of the estimate alone, so the policy may act on that as if it were the truth.
"""

from forums.state.forum_states import ForumState

from .intervals import Demand, IntervalBounds, demand, interval, intervals, price
from .rates import DAY_S, Estimate, Observation, estimate, observe
from .rechecks import next_check

__all__ = [  # noqa: RUF022 - in groups
    # what is known
    "DAY_S",
    "ForumState",
    "Observation",
    # learning
    "observe",
    "estimate",
    "Estimate",
    # deciding
    "intervals",
    "interval",
    "price",
    "demand",
    "Demand",
    "IntervalBounds",
    "next_check",
]
