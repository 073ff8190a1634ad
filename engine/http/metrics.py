"""Counts for Prometheus, in its text format, version 0.0.4."""

import bisect
from collections import Counter
from collections.abc import Iterable

import attrs

from engine.protocol.memory_messages import MemoryStatus
from engine.protocol.messages import Filled, Status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@attrs.define
class _Histogram:
    counts: list[int] = attrs.field(factory=lambda: [0] * (len(_BOUNDS_S) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect.bisect_left(_BOUNDS_S, seconds)] += 1
        self.total += seconds


class Metrics:
    """Counts requests by route, never by a path that a client made up, and by status."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._latency: dict[str, _Histogram] = {}
        self._tokens: Counter[str] = Counter()
        self.running = 0

    def done(self, route: str, status: int, seconds: float) -> None:
        """Count a request. The status of one whose client left is 499."""
        self._requests[route, status] += 1
        self._latency.setdefault(route, _Histogram()).add(seconds)

    def filled(self, filled: Filled) -> None:
        """Count the tokens of an engine's answer."""
        self._tokens["written"] += sum(len(candidate.tokens) for candidate in filled.candidates)
        self._tokens["read"] += max(0, filled.context_tokens - filled.cached_tokens)
        self._tokens["cached"] += filled.cached_tokens

    def text(self, engine: tuple[Status, MemoryStatus] | None) -> str:
        """Return everything as Prometheus reads it; without an engine only what this server counts."""
        lines = _metric(
            "requests_total",
            "counter",
            "Requests by route and HTTP status.",
            ((f'{{route="{route}",status="{status}"}}', count) for (route, status), count in self._requests.items()),
        )
        lines += _metric("requests_running", "gauge", "Requests that run now.", [("", self.running)])
        lines += _metric(
            "tokens_total",
            "counter",
            "Tokens of fills by what was done with them.",
            ((f'{{kind="{kind}"}}', count) for kind, count in self._tokens.items()),
        )
        lines += self._latencies()
        lines += _metric("engine_up", "gauge", "Whether the engine answers.", [("", int(engine is not None))])
        if engine is not None:
            for name, (kind, about, value) in _engine_values(*engine).items():
                lines += _metric(name, kind, about, [("", value)])
        return "\n".join(lines) + "\n"

    def _latencies(self) -> list[str]:
        samples: list[tuple[str, float]] = []
        name = "request_seconds"
        for route, histogram in self._latency.items():
            seen = 0
            for bound, count in zip((*_BOUNDS_S, "+Inf"), histogram.counts, strict=True):
                seen += count
                samples.append((f'_bucket{{route="{route}",le="{bound}"}}', seen))
            samples.append((f'_sum{{route="{route}"}}', round(histogram.total, 6)))
            samples.append((f'_count{{route="{route}"}}', seen))
        return _metric(name, "histogram", "Seconds from a request's head to the end of its answer.", samples)


def _metric(name: str, kind: str, about: str, samples: Iterable[tuple[str, float]]) -> list[str]:
    name = f"midspan_{name}"
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *(f"{name}{label} {value}" for label, value in samples)]


def _engine_values(status: Status, memory: MemoryStatus) -> dict[str, tuple[str, str, float]]:
    return {
        "engine_fills_total": ("counter", "Holes that were filled.", status.fills),
        "engine_fills_cancelled_total": ("counter", "Holes that were cancelled.", status.cancelled),
        "engine_passes_total": ("counter", "Passes of the network.", status.passes),
        "engine_fills_active": ("gauge", "Holes that are being filled.", status.active),
        "engine_fills_waiting": ("gauge", "Holes in the queue.", status.waiting),
        "engine_clients": ("gauge", "Connections to the engine.", status.clients),
        "engine_fill_median_seconds": ("gauge", "Median time of the last fills.", status.median_ms / 1000),
        "engine_cache_hit_ratio": ("gauge", "Share of context tokens that were cached.", status.cache_hit_rate),
        "engine_cache_bytes": ("gauge", "Bytes of cached contexts.", status.cache_bytes),
        "engine_memory_files": ("gauge", "Files in the memory of all workspaces.", memory.files),
        "engine_memory_tokens": ("gauge", "Tokens in the memory of all workspaces.", memory.tokens),
        "engine_memory_bytes": ("gauge", "Bytes of the memory of all workspaces.", memory.bytes),
        "engine_uptime_seconds": ("gauge", "Seconds since the engine started.", status.uptime_s),
    }
