"""An example of a source: something of the user's own that is asked with every question."""

from __future__ import annotations

from nyima.domain.mechanism import Source

__all__ = ["WEATHER", "find"]

_TODAY = {"Porto": "rain in the afternoon", "Moab": "dry and hot"}


def find(question: str) -> list[tuple[str, float]]:
    """Return today's weather in the places that the question names, each with its relevance."""
    return [(f"Today in {place}: {sky}.", 1.0) for place, sky in _TODAY.items() if place in question]


WEATHER = Source("weather", "today's weather in a place that is named", find)
