"""The metrics of Redis's memory."""

from __future__ import annotations

from .metric_spec import MetricSpec

MEMORY_METRICS: tuple[MetricSpec, ...] = (
    MetricSpec(
        name="trawl_redis_memory_bytes",
        kind="gauge",
        help="Memory of Redis by kind of key, by estimate, looked at once a minute; other: the broker's, and what Redis needs.",
        labels=("kind",),
        samples=lambda view: [((kind,), float(size)) for kind, size in view.memory.kinds.items()] if view.memory else [],
    ),
    MetricSpec(
        name="trawl_redis_used_memory_bytes",
        kind="gauge",
        help="Memory that Redis uses, of all primaries together, looked at once a minute.",
        labels=(),
        samples=lambda view: [((), float(view.memory.used))] if view.memory else [],
    ),
    MetricSpec(
        name="trawl_redis_max_memory_bytes",
        kind="gauge",
        help="Memory that Redis may use (maxmemory); 0: no limit.",
        labels=(),
        samples=lambda view: [((), float(view.memory.limit))] if view.memory else [],
    ),
)
