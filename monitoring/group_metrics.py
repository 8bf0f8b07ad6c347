"""Metrics of the consumer groups of item streams, bounded in number by `forums.overview.reader.MOST_GROUPS`."""

from __future__ import annotations

from collections.abc import Callable

from forums.overview import Overview
from redis_components.crawl_admin.group_states import GroupState

from .metric_spec import MetricSpec, Samples

READS_S = 60.0  # a consumer that asked for items since reads


def _group(name: str, help: str, value: Callable[[GroupState], float | None]) -> MetricSpec:
    """A figure of each group; none where Redis cannot say it."""

    def samples(view: Overview) -> Samples:
        for service in view.services:
            for group in service.groups:
                if (figure := value(group)) is not None:
                    yield (service.name, service.name, group.name), figure

    return MetricSpec(name=name, kind="gauge", help=help, labels=("service", "spider", "group"), samples=samples)


GROUP_METRICS: tuple[MetricSpec, ...] = (
    _group(
        "trawl_item_group_waiting",
        "Items that the consumer group was not given yet; missing where Redis cannot say. Of a service 20 groups at most.",
        lambda one: one.waiting,
    ),
    _group("trawl_item_group_pending", "Items that the group was given and has not acknowledged.", lambda one: one.pending),
    _group(
        "trawl_item_group_oldest_pending_seconds",
        "Age of the oldest item that the group was given and has not acknowledged; 0: there is none.",
        lambda one: one.oldest_s or 0.0,
    ),
    _group(
        "trawl_item_group_consumers",
        "Consumers of the group that asked for items in the last 60 s.",
        lambda one: sum(consumer.idle_s <= READS_S for consumer in one.consumers),
    ),
)
