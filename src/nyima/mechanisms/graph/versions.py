"""The learned weights of a user's walk, and of the agent that selects a partition: versions
in the journal, the newest in use. They go when anything goes that they were learned from."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nyima.change.opened import OpenMemory
from nyima.domain.ports import Event
from nyima.errors import NotFound
from nyima.mechanisms.graph.policy import Policy, RulePolicy, WalkPolicy, policy_from

__all__ = ["Version", "current", "keep", "roll_back", "versions"]

KIND = "policy"
"""Events of this kind hold the weights of the walk, the default of ``kind`` below."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version: ``policy`` is the rule where no weights are held; ``report`` is how it
    was trained, ``sources`` the records and turns that it was learned from."""

    number: int
    policy: WalkPolicy
    report: dict[str, Any]
    sources: tuple[str, ...] = ()


def _version(event: Event) -> Version:
    weights = event.body.get("weights")
    policy: WalkPolicy = policy_from(weights) if weights else RulePolicy()
    return Version(int(event.body["version"]), policy, dict(event.body.get("report") or {}), event.refs)


async def versions(memory: OpenMemory, kind: str = KIND) -> list[Version]:
    """Every version, newest first."""
    return [_version(event) for event in await memory.store.events(memory.scope, kind)]


async def current(memory: OpenMemory, kind: str = KIND) -> Version:
    """The version in use; number 0 is the rule before any training."""
    found = await memory.store.events(memory.scope, kind, limit=1)
    return _version(found[0]) if found else Version(0, RulePolicy(), {})


async def keep(
    memory: OpenMemory, policy: Policy | None, report: dict[str, Any], sources: Iterable[str] = (), kind: str = KIND
) -> Version:
    """Use these weights from now on (the rule when there are none). ``sources`` are the
    records and turns that they were learned from."""
    number = max((v.number for v in await versions(memory, kind)), default=0) + 1
    body = {"version": number, "weights": policy.to_dict() if policy is not None else None, "report": report}
    refs = tuple(sorted(set(sources)))
    event = Event(f"{kind}-{uuid.uuid4().hex[:16]}", kind, memory.clock.now(), refs, body)
    await memory.store.log(memory.scope, event)
    return _version(event)


async def roll_back(memory: OpenMemory, kind: str = KIND) -> Version:
    """Go back to the version before the one in use. Raises NotFound when there is none."""
    events = await memory.store.events(memory.scope, kind)
    if not events or events[0].body.get("weights") is None:
        raise NotFound("no learned policy is in use: there is nothing to take back")
    earlier = int(events[0].body.get("report", {}).get("after", 0))
    before = next((e for e in events if int(e.body["version"]) == earlier), None)
    weights = before.body.get("weights") if before is not None else None
    report = {**(dict(before.body.get("report") or {}) if before is not None else {}), "back_to": earlier}
    return await keep(memory, policy_from(weights) if weights else None, report, before.refs if before else (), kind)
