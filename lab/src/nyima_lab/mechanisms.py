"""The laboratory's mechanisms, as the entry point names them."""

from __future__ import annotations

from nyima_lab import paper_recipes
from nyima_lab.baselines import memories, sessions, trained_roles

__all__ = ["MECHANISMS"]

MECHANISMS = (*sessions.MECHANISMS, memories.MECHANISM, trained_roles.MECHANISM, paper_recipes.MECHANISM)
