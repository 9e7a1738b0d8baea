"""Learning on from real use (Wang et al. 2024, section 4.4): a thumb or a corrected answer
is one REINFORCE step on the last walk. Off unless the setting ``learn`` is on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nyima.change.opened import OpenMemory
from nyima.domain.evidence import Recall
from nyima.language.words import content_words
from nyima.mechanisms.graph.learning import Adam, backward
from nyima.mechanisms.graph.policy import Policy, RulePolicy, fresh_policy
from nyima.mechanisms.graph.versions import Version, current, keep

__all__ = ["learn_from_answer", "learn_from_thumb"]

_RATE = 0.005


async def learn_from_thumb(memory: OpenMemory, recall: Recall, *, good: bool) -> Version | None:
    """One step towards (or away from) what the last walk did; None when it did not walk."""
    if not recall.walk:
        return None
    gain = 1.0 if good else -1.0
    return await _step(memory, recall, [gain] * len(recall.walk), "a thumb")


async def learn_from_answer(memory: OpenMemory, recall: Recall, right: str) -> Version | None:
    """One step by the right answer: a memory gains by the words of it that it holds."""
    if not recall.walk:
        return None
    wanted = set(content_words(right))
    texts = {e.record.id: set(content_words(e.text)) for e in recall.found}
    gains: list[float] = []
    for visit in recall.walk:
        share = len(wanted & texts.get(visit.record, set())) / max(1, len(wanted))
        useful = share - 0.2
        gains.append(useful if visit.action else -useful)
    return await _step(memory, recall, gains, "a corrected answer")


async def _step(memory: OpenMemory, recall: Recall, gains: Sequence[float], why: str) -> Version:
    before = await current(memory)
    policy = before.policy if isinstance(before.policy, Policy) else _like_the_rule()
    states = np.asarray([v.state for v in recall.walk])
    actions = np.asarray([v.action for v in recall.walk])
    _, gradients = backward(policy, states, actions, np.asarray(gains) / len(gains))
    made = Adam(_RATE).step(policy, gradients)
    report = {"after": before.number, "online": why}
    return await keep(memory, made, report, [*before.sources, *(v.record for v in recall.walk)])


def _like_the_rule() -> Policy:
    """Weights that do what the rule does, as a place to go on from."""
    rule, draw = RulePolicy(), np.random.default_rng(0)
    states = draw.uniform(0, 1, (400, 3))
    labels = np.asarray([int(rule.include(tuple(s)) >= 0.5) for s in states])
    policy, adam = fresh_policy(0), Adam(0.01)
    for _ in range(400):
        _, gradients = backward(policy, states, labels, np.full(len(states), 1 / len(states)))
        policy = adam.step(policy, gradients)
    return policy
