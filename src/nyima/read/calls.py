"""Calling a chat model for a job: budgets, the ledger, repair, one retry.

Each call, failed ones too, is a line in the ledger (an event of kind ``call``): job,
prompt version, model, tokens, seconds and outcome; never its text.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from nyima.domain.conversation import Scope
from nyima.domain.evidence import Usage
from nyima.domain.ports import ChatModel, Clock, Completion, Event, Message
from nyima.domain.storage import Store
from nyima.errors import BudgetSpent, ModelError, ModelGarbled
from nyima.prompts.prompt import Prompt

__all__ = ["CallRecord", "Caller", "DailyBudget"]

In = TypeVar("In")
Out = TypeVar("Out", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """The most calls and tokens (prompt and completion) of a user in a day; 0 is no limit."""

    calls: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class CallRecord:
    """How an answer came about."""

    usage: Usage
    prompt: str
    model: str
    repaired: bool = False
    retried: bool = False


@dataclass(slots=True)
class Caller:
    """A model with its ledger. ``private`` keeps no ledger line; with ``held`` the lines are put there,
    for whoever stores them with something else."""

    model: ChatModel
    store: Store
    clock: Clock
    limits: DailyBudget = field(default_factory=DailyBudget)
    private: bool = False
    held: list[Event] | None = None

    async def stream(
        self, scope: Scope, job: str, messages: Sequence[Message], **options: Any
    ) -> AsyncIterator[str | Completion]:
        """The model's pieces, then its Completion; the call is in the ledger either way."""
        await self._check(scope)
        started = time.perf_counter()
        outcome, usage = "cancelled", Usage(calls=1)
        try:
            async for piece in self.model.stream(messages, **options):
                if isinstance(piece, Completion):
                    usage, outcome = piece.usage, piece.finish
                yield piece
        except ModelError as error:
            outcome = type(error).__name__
            raise
        finally:
            await self._note(scope, job, usage, outcome, time.perf_counter() - started)

    async def text(self, scope: Scope, job: str, messages: Sequence[Message], **options: Any) -> Completion:
        """The whole answer."""
        done = Completion("")
        async for piece in self.stream(scope, job, messages, **options):
            if isinstance(piece, Completion):
                done = piece
        return done

    async def ask(self, scope: Scope, prompt: Prompt[In, Out], given: In, room: int = 0) -> tuple[Out, CallRecord]:
        """The parsed answer to a prompt, of at most ``room`` tokens (the prompt's own unless given):
        repaired if need be, asked once again if that fails. Raises ModelGarbled after that; the
        caller has the fallback."""
        messages = prompt.render(given)
        options: dict[str, Any] = {"max_tokens": room or prompt.room, "schema": prompt.schema(), "lane": prompt.job}
        first = await self.text(scope, prompt.version, messages, **options)
        try:
            value, repaired = prompt.parse(first.text)
            return value, CallRecord(first.usage, prompt.version, self.model.name, repaired)
        except ModelGarbled:
            again = (*messages, Message("assistant", first.text), Message("user", "Answer with the JSON object only."))
            second = await self.text(scope, prompt.version, again, **options)
        value, repaired = prompt.parse(second.text)
        return value, CallRecord(first.usage + second.usage, prompt.version, self.model.name, repaired, retried=True)

    async def fallback(self, scope: Scope, job: str) -> None:
        """Count that a rule had to answer instead of the model."""
        await self._note(scope, job, Usage(), "fallback", 0.0)

    async def spent(self, scope: Scope) -> Usage:
        """What the user's calls cost in the last 24 hours."""
        total = Usage()
        now = self.clock.now()
        for event in await self.store.events(scope, "call"):
            if (now - event.at).total_seconds() > 86_400:
                break
            total += usage_of(event.body)
        return total

    async def _check(self, scope: Scope) -> None:
        if not self.limits.calls and not self.limits.tokens:
            return
        spent = await self.spent(scope)
        if self.limits.calls and spent.calls >= self.limits.calls:
            raise BudgetSpent(
                f"{spent.calls} calls in 24 hours; the limit is {self.limits.calls}: raise calls_per_day in the settings"
            )
        used = spent.prompt + spent.completion
        if self.limits.tokens and used >= self.limits.tokens:
            raise BudgetSpent(
                f"{used:,} tokens in 24 hours; the limit is {self.limits.tokens:,}: raise tokens_per_day in the settings"
            )

    async def _note(self, scope: Scope, job: str, usage: Usage, outcome: str, seconds: float) -> None:
        if self.private:
            return
        body = {
            "job": job,
            "model": self.model.name,
            "calls": usage.calls,
            "prompt": usage.prompt,
            "cached": usage.cached,
            "completion": usage.completion,
            "outcome": outcome,
            "seconds": round(seconds, 3),
        }
        event = Event("call-" + uuid.uuid4().hex[:16], "call", self.clock.now(), (), body)
        if self.held is None:
            await self.store.log(scope, event)
        else:
            self.held.append(event)


def usage_of(body: Mapping[str, Any]) -> Usage:
    """The usage that a ledger line holds."""
    return Usage(body["calls"], body["prompt"], body["cached"], body["completion"])
