"""What the server counts, for Prometheus. No label ever names a user."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """Requests by route (the pattern, never the address), tokens, and jobs by state."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ("route", "method", "status")
        self._requests = Counter("nyima_http_requests", "Requests answered.", labels, registry=self._registry)
        self._seconds = Histogram(
            "nyima_http_request_duration_seconds", "Until the answer's end.", ("route",), registry=self._registry
        )
        self._tokens = Counter(
            "nyima_llm_tokens", "Tokens of the proxy's upstream.", ("direction",), registry=self._registry
        )
        self._jobs = Gauge("nyima_jobs", "Work of the memory.", ("state",), registry=self._registry)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(route, method if method in _METHODS else "other", str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def spend(self, prompt: int, completion: int) -> None:
        """Count tokens."""
        self._tokens.labels("in").inc(prompt)
        self._tokens.labels("out").inc(completion)

    def text(self, jobs: Mapping[str, int]) -> bytes:
        """The metrics as Prometheus reads them, with how many jobs are in which state."""
        for state in ("queued", "leased", "parked"):
            self._jobs.labels(state).set(jobs.get(state, 0))
        return generate_latest(self._registry)
