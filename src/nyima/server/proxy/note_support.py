"""Which models write notes after their reply when they are asked to."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Notetakers"]

_MOST_MISSED = 4
_MOST_NAMES = 1_000


@dataclass(slots=True)
class Notetakers:
    """A model that has not written its notes several times in a row is not asked again until
    the server starts anew: its replies are better without, and a job makes them. The ``small``
    models of the local packs are never asked: bound to a grammar, in Nyima's own calls, they
    write notes; in other programs' calls they answer worse and write none."""

    small: bool = False
    _missed: dict[str, int] = field(default_factory=dict[str, int])

    def asked(self, model: object) -> bool:
        """Whether to ask it."""
        return not self.small and self._missed.get(str(model), 0) < _MOST_MISSED

    def heard(self, model: object, *, wrote: bool) -> None:
        """Whether it wrote them."""
        name = str(model)
        if wrote:
            self._missed.pop(name, None)
        elif name in self._missed or len(self._missed) < _MOST_NAMES:
            self._missed[name] = self._missed.get(name, 0) + 1
