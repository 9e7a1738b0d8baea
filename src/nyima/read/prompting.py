"""The reader's prompt: persona, rules, profile and summary first, since they do not
change within a session; then the dialogue; what changes each turn stands last, so that
a server's prefix cache serves the rest."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from nyima.domain.conversation import Role, Turn
from nyima.domain.evidence import Evidence, Notes
from nyima.domain.ports import Message
from nyima.domain.recipe import Recipe
from nyima.domain.records import Claim, Passage, Profile, Status
from nyima.language.words import cut_tokens, tokens
from nyima.prompts.notes import render_notes, render_reply
from nyima.prompts.prompt import fill, sections
from nyima.read.conflicts import EARLIER

__all__ = ["CALL_OR_TEXT", "GRAMMAR", "Known", "PromptBuilder", "Shot", "numbered", "quoted", "reply_schema", "shown"]

_WORTH_SHOWING = 40
_TEXT = r'char ::= [^"\\\x00-\x1f] | "\\" ["\\/n]'
_ANSWER = (
    r'answer ::= "{\"reply\": \"" char{1,900} "\", \"remember\": " '
    r'("false, \"claims\": []" | "true, \"claims\": [" (claim (", " claim){0,5})? "]")'
    r' ", \"outdated\": [" (number (", " number){0,5})? "]}"'
)
_CLAIM = (
    r'claim ::= "{\"who\": \"" value{1,40} "\", \"what\": \"" value{1,30} "\", \"value\": \"" value{1,80}'
    r' "\", \"status\": \"" ("holds" | "planned" | "ended" | "denied") "\"}"'
)
_NUMBER = r"number ::= [1-9] [0-9]?"
_VALUE = r'value ::= [^"\\\x00-\x1f]'
_CALL = r'call ::= "{\"call\": \"" [a-z_]{1,40} "\", \"input\": {" pair? "}}"'
_PAIR = r'pair ::= "\"" [a-z_]{1,30} "\": \"" value{0,120} "\""'


def GRAMMAR(*, tools: bool) -> str:  # noqa: N802 - a constant with one switch
    """The GBNF grammar of the reply call: reply first, so that it streams; a claim only
    when the message is to be remembered."""
    root = "root ::= answer | call" if tools else "root ::= answer"
    parts = [root, _ANSWER, _TEXT, _CLAIM, _NUMBER, _VALUE, *([_CALL, _PAIR] if tools else [])]
    return "\n".join(parts)


_CALL_OR_TEXT = ["root ::= call | text", r"text ::= [^{\x00] [^\x00]{0,1500}", _VALUE, _CALL, _PAIR]
CALL_OR_TEXT = "\n".join(_CALL_OR_TEXT)
"""The GBNF grammar of a reply without notes that may ask for a tool instead."""


def reply_schema() -> dict[str, object]:
    """The same as a strict JSON schema, for servers that take one."""
    claim = {
        "type": "object",
        "properties": {
            "who": {"type": "string"},
            "what": {"type": "string"},
            "value": {"type": "string"},
            "status": {"type": "string", "enum": ["holds", "planned", "ended", "denied"]},
        },
        "required": ["who", "what", "value", "status"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "reply": {"type": "string"},
            "remember": {"type": "boolean"},
            "claims": {"type": "array", "items": claim},
            "outdated": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["reply", "remember", "claims", "outdated"],
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class Shot:
    """A labelled example: what was known, the context, the response (Wang et al. 2023,
    section 6.4)."""

    memory: str
    context: str
    response: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known for a whole session: the profile, and texts (pinned records, the running
    memory) with the ids of their records. ``running`` are the ids of the texts that may be shown
    shortened: the running memory."""

    profile: Profile = Profile()
    texts: tuple[tuple[str, str], ...] = ()
    running: frozenset[str] = frozenset()

    @property
    def refs(self) -> tuple[str, ...]:
        """The records that it comes from."""
        return (*(claim.id for claim in self.profile.claims), *(id for id, _ in self.texts))

    def fitting(self, recipe: Recipe) -> Known:
        """The part of it that stands whole in the system message of a recipe. The rest can
        only be recalled, so that it must not be held back there."""
        room = recipe.room
        claims = _ends_first(self.profile.claims, room["profile"]) if "profile" in recipe.system else ()
        texts: list[tuple[str, str]] = []
        left = room["summary"] if "summary" in recipe.system else 0
        for id, text in self.texts:
            size = tokens(text) + 1
            if size <= left:
                texts.append((id, text))
                left -= size
        return Known(Profile(tuple(claims)), tuple(texts))


def _ends_first(facts: Sequence[Claim], room: int) -> list[Claim]:
    """The claims that fit, in their order: two thirds of the room go to the oldest (a name, a
    home), the rest to the newest."""
    sizes = [tokens(fact.text) + 1 for fact in facts]
    if sum(sizes) <= room:
        return list(facts)
    first, used = 0, 0
    while used + sizes[first] <= room * 2 // 3:
        used += sizes[first]
        first += 1
    last = len(facts)
    while last > first and used + sizes[last - 1] <= room:
        last -= 1
        used += sizes[last]
    return [*facts[:first], *facts[last:]]


def _label(piece: Evidence) -> str:
    """What of a piece holds no more."""
    if piece.superseded is not None:
        what = f": {_plain(', '.join(piece.ended))}" if piece.ended else ""
        rest = "; the rest is not known any more" if piece.stale is not None else ""
        return f" (no longer true since {piece.superseded.strftime('%-d %b %Y')}{what}{rest})"
    if piece.stale is not None:
        return f" (not known any more since {piece.stale.strftime('%-d %b %Y')})"
    return " (earlier; a newer one says otherwise)" if piece.label == EARLIER else ""


def shown(evidence: Sequence[Evidence], room: int) -> list[Evidence]:
    """What of the evidence enters the prompt, in the order and with the numbers that it has
    there: the best that fit, then oldest first, so that what is newest stands nearest to
    the question. The order does not depend on the scores (Wang et al. 2024, section 4.1.3)."""
    chosen: list[Evidence] = []
    spent = 0
    for piece in sorted(evidence, key=lambda e: (-e.score, -e.scores.get("retriever", 0.0), e.record.id)):
        spent += tokens(_line(piece, room))
        if chosen and spent > room:
            break
        chosen.append(piece)
    return sorted(chosen, key=lambda e: (e.at, e.record.id))


def _plain(text: str) -> str:
    """A text on one line without the brackets that marks are made of: names and headings
    come from outside as much as what stands under them."""
    return " ".join(text.replace("[", "(").replace("]", ")").split())


def _line(piece: Evidence, room: int, *, scored: bool = True, number: int = 0) -> str:
    text = _plain(piece.text)
    where = piece.at.strftime("%-d %b %Y")
    if isinstance(piece.record, Passage) and piece.record.document not in {"persona", piece.source}:
        where = cut_tokens(_plain(f"{piece.record.document} {piece.record.place}"), 24)
    score = f" {piece.relevance:.1f}" if scored else ""
    mark = f"({number}) " if number else ""
    return cut_tokens(f"{piece.source}{score}, {where}{_label(piece)}: {mark}{text}", max(30, room // 2))


def quoted(evidence: Sequence[Evidence], room: int, *, scored: bool = True, claims: Sequence[Claim] = ()) -> str:
    """Evidence as data: a numbered line a piece with its source, relevance and day, marks
    and line breaks removed, in the order of ``shown``. A piece that is one of the current ``claims``
    bears its number there, too."""
    of = {claim.id: number for number, claim in enumerate(claims, 1)}
    return "\n".join(
        f"[{number}] {_line(piece, room, scored=scored, number=of.get(piece.record.id, 0))}"
        for number, piece in enumerate(shown(evidence, room), 1)
    )


def numbered(claims: Sequence[Claim], elsewhere: Container[str] = ()) -> str:
    """Claims as data, a line each with its number, since when it holds, and its state; without those that
    stand ``elsewhere`` in the prompt (their ids)."""
    lines: list[str] = []
    for number, claim in enumerate(claims, 1):
        if claim.id in elsewhere:
            continue
        doubt = ", uncertain" if claim.stale and claim.status is Status.HOLDS else ""
        said = cut_tokens(_plain(claim.text), 40)
        lines.append(f"({number}) {said}, {claim.valid.since.strftime('%-d %b %Y')}{doubt}")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class PromptBuilder:
    """Builds the messages of a reply. ``style`` is json, lines, talk or plain."""

    recipe: Recipe
    persona: str
    style: str
    window: int
    tools: Mapping[str, str]
    shots: tuple[Shot, ...] = ()

    def system(self, known: Known) -> str:
        """The system message: what never changes first."""
        room = self.recipe.room
        parts = [cut_tokens(self.persona.strip(), room["persona"]), sections("reply")["rules"]]
        if self.tools:
            listed = "\n".join(f"{name}: {about}" for name, about in self.tools.items())
            parts.append(fill("reply", "tools", {"tools": listed}))
        if self.style == "talk" or (self.recipe.takes_notes and self.style != "plain"):
            parts.append(sections("reply")[self.style])
        for shot in self.shots:
            values = {"memory": shot.memory, "context": shot.context, "response": shot.response}
            parts.append(cut_tokens(fill("reply", "shot", values), room["shots"]))
        return "\n\n".join([*parts, *self.standing(known)])

    def standing(self, known: Known) -> list[str]:
        """Profile, pinned records and running memory. What does not fit whole is left out, but
        for a running memory that is longer than its room: of that, beginning and end are shown."""
        room, parts, whole = self.recipe.room, list[str](), known.fitting(self.recipe)
        if whole.profile.claims:
            facts = "\n".join(
                f"{key}: {value if isinstance(value, str) else ', '.join(value)}"
                for key, value in whole.profile.as_dict().items()
            )
            parts.append(fill("reply", "profile", {"profile": facts}))
        if "summary" in self.recipe.system and known.texts:
            texts = [text for _, text in whole.texts]
            left = room["summary"] - sum(tokens(text) + 1 for text in texts)
            last = known.texts[-1]
            if last not in whole.texts and last[0] in known.running and left >= _WORTH_SHOWING:
                texts.append(cut_tokens(known.texts[-1][1], left))
            if texts:
                parts.append(fill("reply", "summary", {"summary": "\n".join(texts)}))
        return parts

    def dialogue(self, turns: Sequence[Turn], notes: Mapping[str, Notes]) -> tuple[list[Message], list[Turn]]:
        """The turns that fit, as messages, with the turns themselves. When the room is
        full the older half goes at once, so that the prefix changes seldom."""
        room = self.window - 900 if self.recipe.past else self.recipe.room["dialogue"]
        spoken = [t for t in turns if t.role in {Role.USER, Role.ASSISTANT} and t.text.strip()]
        sizes = [tokens(t.text) + 8 for t in spoken]
        start, total = 0, 0
        for i, size in enumerate(sizes):
            total += size
            if total > room:
                target = room // 2 if not self.recipe.past else room
                while start < i and total > target:
                    total -= sizes[start]
                    start += 1
        shown = spoken[start:]
        messages: list[Message] = []
        said = ""
        for turn in shown:
            if turn.role is Role.USER:
                said = turn.id
                messages.append(Message("user", cut_tokens(turn.text, room // 2)))
            else:
                messages.append(Message("assistant", self._as_written(turn.text, notes.get(said, Notes()))))
        return messages, shown

    def _as_written(self, text: str, notes: Notes) -> str:
        if not self.recipe.takes_notes or self.style in {"plain", "talk"}:
            return text
        return render_reply(text, notes) if self.style == "json" else render_notes(text, notes)

    def last(self, message: str, evidence: Sequence[Evidence], claims: Sequence[Claim] = ()) -> str:
        """The user's message, before it the evidence, and the current claims that it may touch, each
        with its number. A claim that is shown as evidence stands there alone."""
        message = cut_tokens(message, max(600, self.window // 3))
        room, scored = self.recipe.evidence.tokens, self.recipe.scored
        memory = quoted(evidence, room, scored=scored, claims=claims) if evidence else ""
        rest = numbered(claims, {e.record.id for e in shown(evidence, room)})
        known = fill("reply", "known", {"claims": rest}) + "\n\n" if rest else ""
        return known + (fill("reply", "memory", {"memory": memory, "message": message}) if memory else message)
