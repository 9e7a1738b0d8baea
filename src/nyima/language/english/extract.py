"""Statements out of clauses, without a model: who, which relation, what, and when.

It knows the commonest shapes of English sentences. Whatever states something and has
none of these shapes becomes a relation that is named by its verb, so that the memory
loses nothing; what asks, imagines or quotes becomes nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, tzinfo

from nyima.language.english.clauses import Clause, base_form, clauses_of, third_person
from nyima.language.english.copula import WEEKDAY, copula, exists_there
from nyima.language.english.mentions import is_person
from nyima.language.english.phrases import (
    PREPOSITIONS,
    bare_noun,
    bare_thing,
    event_name,
    possessive,
    subject_of,
    value_of,
    without_moment,
    worth_a_note,
)
from nyima.language.english.statement import Statement
from nyima.language.relations import label_of, single
from nyima.language.times.moment import find_moment

__all__ = ["statements"]


_NOUN_IS = re.compile(
    r"\b([\w]+)'s (?=(?:a|an|the|my|our|in|on|at|called|named|now|been|set|asleep|not|no longer|over|cancelled|closed|moved|gone)\b)",
    re.IGNORECASE,
)
_EXPAND = tuple(
    (re.compile(pattern, re.IGNORECASE), put)
    for pattern, put in (
        (r"\bi'm\b", "I am"), (r"\bi've got\b", "I have"), (r"\bwe've got\b", "we have"), (r"\bhas got\b", "has"),
        (r"\bi've\b", "I have"), (r"\bwe've\b", "we have"), (r"\bthey've\b", "they have"), (r"\bi'll\b", "I will"),
        (r"\bwe'll\b", "we will"), (r"\bwe're\b", "we are"), (r"\bthey're\b", "they are"), (r"\bi'd rather\b", "I"), (r"\bi'd\b", "I would"),
        (r"\b(he|she|it|that|there)'s\b", r"\1 is"), (r"\bcan't\b", "cannot"), (r"\bwon't\b", "will not"),
        (r"\b(do|does|did|is|are|was|has|have)n't\b", r"\1 not"),
    )
)  # fmt: skip
_ENDS = re.compile(
    r"\b(?:no longer|any ?more|any longer|stop(?:ped)?(?! (?:at|by|in|for|off|over|near|on|to|the)\b)|quit|quitting|gave up|given up|give up|sold|got rid of|getting rid of|"
    r"cancell?ed|called off|broke up|split up|break up|lost my|lost the|threw away|resigned|dropped out of|"
    r"dropped(?! (?:off|by|in|(?:my|the) (?:phone|keys?|glass|cup|plate|laptop|tablet|kids|children))\b)(?!.{1,40} (?:at|off|on|into)\b)|"
    r"retired from|died|passed away|unsubscribed|is over|are over|fell through|ran away|gave away|given away|donated|"
    r"gave back|gave .{1,20} back|handed .{1,30} back|handed in the key|returned the|finished with|divorced|"
    r"closed down|took me off|taken off|not .{1,30} any ?more|never again|for the last time|terminated|"
    r"(?:i|we|he|she|they|[a-z]+) left (?:the|my|our|his|her|work|school)|i(?: have)? left)\b",
    re.IGNORECASE,
)
_DENIES = re.compile(r"\b(?:not|never|cannot|didn't|couldn't|wouldn't)(?: \w+)?\s*$", re.IGNORECASE)
_ADDS = re.compile(r"\b(?:also|too|as well|second|third|another|in addition|besides|both)\b", re.IGNORECASE)
_SWAPS = re.compile(r"\b(?:instead|replaced|swapped|switched)\b", re.IGNORECASE)
_CHANGES = re.compile(
    r"\b(?:now|instead|these days|from now on|from today|as of|nowadays|moved|changed|switched|new|newly|rescheduled|postponed|"
    r"relocated|replaced|swapped|has become|turned|brought forward|pushed|yet again|after all|at last|since last|in the meantime)\b",
    re.IGNORECASE,
)
_FRONTED = re.compile(
    r"^((?:on|in|at|for|since|every|after|before|with|next|last|this|tomorrow|today|tonight|yesterday|the day after tomorrow|"
    r"when|once|during|by|from|as of|near|mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?)\b.{0,70}?)"
    r"(?:,?\s+((?:i|we|they|he|she|my|our|it)\b .+)|(?:,|(?<=day|ays|row|ing|eek|nth|ear))\s+(the\b .+)"
    r"|(?:,|(?<=today)|(?<=tomorrow)|(?<=yesterday))\s+((?-i:[A-Z])\w+ .+))$",
    re.IGNORECASE,
)
_MOVED = re.compile(
    r"^(?:.{0,40}?\b)?(?:have |has |was |were |is |been )*(?:moved|relocated|shifted|rescheduled|postponed|pushed|put|changed|brought forward)"
    r"(?: back| forward)? (.+?)(?: from .+?)? (?:to|until|till|for|on) (.+)$",
    re.IGNORECASE,
)
_AUX = frozenset(
    "will would am is are was were have has had do does did be been going to also always usually often never still just"
    " only really finally recently currently now mostly normally regularly sometimes must should can need newly not"
    " already both all actually probably definitely".split()
)
_WAS = re.compile(
    r"^(?:[\w']+ ){1,4}?(?:(?:was|were)(?! (?:born|told|given|diagnosed|moved|named|called))|lived|worked|owned|studied|drove"
    r"|played|spoke|loved|liked|hated|preferred)\b(?! since\b)",
    re.IGNORECASE,
)
_LASTING_VERBS = frozenset("live work like love drive own drink eat know speak be study".split())
_LASTING = frozenset({"name", "nickname", "birthday", "birth_place", "age", "from", "anniversary"})
_TIMED = frozenset({"departs", "arrives", "ends", "expires", "takes_place"})
_HABIT = re.compile(
    r"\b(?:every|each|always|usually|normally|(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekends|mornings|evenings|"
    r"a (?:week|month|day|year))\b|(?<!on )\b(?:sunday|saturday) (?:lunch|dinner|morning)\b",
    re.IGNORECASE,
)
_FOR = re.compile(r"^(.{2,60}?) for ((?:my|our|the|his|her|[A-Z]\w+'s) [\w' ]{2,40}|[A-Z]\w+)$")
_LIVES = re.compile(
    r"\b(?:cats?|dogs?|rabbits?|parrot|hamster|kitten|puppy|pets?|famil(?:y|ies)|flatmates?|roommates?)\b",
    re.IGNORECASE,
)
_TOGETHER = re.compile(r"^(.+?)(?:,? together)? with ((?:my|our) [\w -]+)$", re.IGNORECASE)
_CALLED = re.compile(
    r"^(.{2,60}?),? (?:which is |who is |that is )?(?:called|named|by the name of) (.{2,60})$", re.IGNORECASE
)


def statements(text: str, at: datetime, zone: tzinfo) -> list[Statement]:
    """What a text of the user states, in order. ``at`` is when it was said."""
    found: list[Statement] = []
    where: dict[int, list[int]] = {}
    clauses = clauses_of(text)
    for number, clause in enumerate(clauses):
        made = _parse(clause, at, zone)
        rests = tuple(i for r in clause.rests for i in where.get(r, ()) if r >= 0)
        if -1 in clause.rests:
            rests = (-1,)
        where[number] = list(range(len(found), len(found) + len(made)))
        causes = tuple(clauses[r].text for r in clause.rests if r >= 0)
        if found and found[-1].replaces and made and made[0].head in {"it", "that"}:
            label = label_of(re.sub(r"^(?:my|our|the) ", "", found[-1].tail.lower()).replace(" ", "_"))
            made = [replace(made[0], head=found[-1].head, label=label, single=True)]
        found += [replace(s, rests=rests, causes=causes) for s in made]
    return found


def _parse(clause: Clause, at: datetime, zone: tzinfo) -> list[Statement]:
    text = clause.text
    text = re.sub(r"\b([A-Z]\w+), (?:my|our) ([\w -]+), (?=\w)", r"my \2 \1 ", text)
    for pattern, put in _EXPAND:
        text = pattern.sub(put, text)
    text = _NOUN_IS.sub(r"\1 is ", text)
    moment = None if _HABIT.search(text) else find_moment(text, at, zone)
    note = third_person(clause.text)
    contrast = re.search(r"\bnot (?:at |on |in )?.{2,40}?(?: any ?more)?,? but ", text)
    if contrast:
        text = f"{text[: contrast.start()]}{text[contrast.end() :]}"
        moment = find_moment(text, at, zone)
    ending = _ENDS.search(text) if not contrast else None
    if ending is not None:
        if _DENIES.search(text[: ending.start()]):
            return []
        subject, rest = subject_of(re.sub(r"\b(?:no longer|any ?more|any longer) ?", "", text))
        return [Statement(subject, "end", rest or text, note, clause.text, moment, ends=True)]
    swaps = clause.corrects or bool(contrast) or bool(_SWAPS.search(text))
    changes = swaps or (bool(_CHANGES.search(text)) and not _ADDS.search(text))
    text = re.sub(
        r"^when(?:ever)? .{2,50}?,? (?=i (?:always|usually|never|mostly|often) )", "", text, flags=re.IGNORECASE
    )
    text = re.sub(r"\b(my|our) (?:new|current|present) ", r"\1 ", text, flags=re.IGNORECASE)
    fronted = _FRONTED.match(text)
    if fronted and not re.match(r"^\w+ (?:is|are|was) ", text):
        text = f"{fronted[2] or fronted[3] or fronted[4]} {fronted[1]}"
        moment = find_moment(text, at, zone)
    base = Statement("user", "note", "", note, clause.text, moment, changes=changes, swaps=swaps)
    called = re.search(r"\b(?:call me|i go by|i am known as) (?-i:([A-Z][\w-]+(?: [A-Z][\w-]+)?))", text, re.IGNORECASE)
    if called:
        return [replace(base, label="nickname", tail=called[1], single=True)]
    moved = _MOVED.match(text)
    if moved and not re.match(r"^(?:i|we) (?:have )?moved (?:in)?to\b", text, re.IGNORECASE):
        return _moved(base, moved, at, zone)
    made = _stated(base, text, at, zone)
    return [_past(s) for s in made] if _WAS.search(text) and not swaps else made


def _past(said: Statement) -> Statement:
    """What was, is not what is: ``I lived in Berlin`` says nothing against Porto."""
    if said.event or said.ends or said.label in _LASTING or said.label in _TIMED:
        return said
    return replace(said, label=f"was_{said.label}", single=False, changes=False)


def _moved(base: Statement, match: re.Match[str], at: datetime, zone: tzinfo) -> list[Statement]:
    """``They moved the meeting to Friday``, ``my gym has moved to Hill Road``."""
    thing, to = match[1].strip(" ,"), match[2]
    when = find_moment(to, at, zone, ahead=True)
    base = replace(base, changes=True, single=True)
    if when is not None:
        return [
            replace(base, head=bare_thing(thing, when), label="takes_place", tail=when.name, moment=when, event=True)
        ]
    return [replace(base, head=thing, label="location", tail=value_of(to))]


def _stated(base: Statement, text: str, at: datetime, zone: tzinfo) -> list[Statement]:
    subject, rest = subject_of(text)
    tokens = rest.split()
    going = re.match(r"^(?:am|is|are) (?:going|off) (to (?:a|an|the|my|our|[A-Z]\w*)\b.*)$", rest)
    if going:
        return _verb(base, subject, "go", going[1])
    if re.match(r"^(?:have|has|had) to ", rest):
        tokens = tokens[2:]
    negated = any(t.lower() == "not" for t in tokens[:3]) and tokens[0].lower() not in {
        "is",
        "are",
        "am",
        "was",
        "were",
    }
    tokens = [t for i, t in enumerate(tokens) if not (negated and i < 3 and t.lower() == "not")]
    doing = tokens[0].lower() in {"do", "does", "did"} and not base_form("".join(tokens[1:2]))
    while (
        len(tokens) > 1
        and not doing
        and tokens[0].lower() in _AUX - {"is", "are", "am", "was", "were", "have", "has", "had", "be"}
    ):
        tokens.pop(0)
    if len(tokens) > 1 and tokens[0].lower() in {"have", "has", "had", "am", "is", "are", "was", "were"}:
        later = list(tokens[1:])
        while later and later[0].lower() in _AUX:
            later.pop(0)
        form = base_form(later[0]) if later else ""
        participle = (
            form
            and later[0].lower() != form
            and later[0].lower() not in {"called", "named", "born", "based", "married", "engaged"}
        )
        if participle and (tokens[0].lower().startswith("ha") or later[0].lower().endswith("ing")):
            tokens = later
    subject = re.sub(r" (?:now|still|also|always|never|usually|really)$", "", subject)
    if tokens and not subject and base_form(tokens[0]) == tokens[0].lower():
        subject = "user"
    if not tokens or not subject:
        return [replace(base, tail=value_of(text))] if worth_a_note(text) else []
    verb = base_form(tokens[0])
    rest = " ".join(tokens[1:])
    there = subject == "there"
    if verb == "be":
        rest = re.sub(
            r"^(?:(?:now|still|also|always|just|actually|currently|only|usually) )+", "", rest, flags=re.IGNORECASE
        )
        return exists_there(base, rest) if there else copula(base, subject, rest)
    if not verb:
        return (
            [replace(base, head=subject, label="note", tail=value_of(" ".join(tokens)))] if worth_a_note(text) else []
        )
    made = _verb(base, subject, verb, rest)
    return [replace(s, label=_denied(s.label), single=False) for s in made] if negated else made


def _denied(label: str) -> str:
    """The relation of a denial: what one does not do is not what one does."""
    return {"like": "dislike"}.get(label, f"not_{label}")


def _verb(base: Statement, subject: str, verb: str, rest: str) -> list[Statement]:
    moment = base.moment
    valid = re.search(r"^(.+?),? (?:that|which) (?:is|are) (?:valid|good|open) (?:until|till|through)\b", rest)
    if valid and moment is not None:
        thing = f"{possessive(subject)} {bare_noun(valid[1])}"
        return [replace(base, head=thing, label="expires", tail=moment.name, single=True)]
    plain = value_of(without_moment(rest, moment)) if moment is not None and moment.dated else value_of(rest)
    tokens = plain.split()
    preposition = tokens[0].lower() if tokens and tokens[0].lower() in PREPOSITIONS else ""
    label = label_of(f"{verb}_{preposition}" if preposition else verb)
    if preposition and label == f"{verb}_{preposition}" and label_of(verb) in _TIMED and moment is not None:
        label = label_of(verb)
    tail = " ".join(tokens[1:]) if preposition else plain
    if (placed := _placed_by(base, subject, verb, (label, preposition, tail))) is not None:
        return placed
    if verb in {"switch", "change", "replace"} and tail and not preposition:
        return [replace(base, head=subject, label="end", tail=tail, ends=True, replaces=True)]
    if verb == "have" and moment is not None and moment.dated and re.search(r"\bbirthday\b", tail):
        return [
            replace(
                base,
                head=subject,
                label="birthday",
                tail=re.sub(r"^.*?\bbirthday\b(?: on)? ?", "", value_of(rest)) or moment.name,
                single=True,
            )
        ]
    timed = label in _TIMED
    if timed and (moment is None or subject == "user"):
        thing = value_of(without_moment(rest, moment)).replace(" ", "_").lower()
        label = f"{verb}_{thing}" if moment is not None and thing and not moment.dated else verb
        if moment is not None and not moment.dated:
            return [replace(base, head=subject, label=label, tail=moment.name, single=True)]
    elif timed and moment is not None:
        return [replace(base, head=subject, label=label, tail=moment.name, single=True, event=label != "expires")]
    if moment is not None and moment.dated and verb not in _LASTING_VERBS:
        head = event_name(subject, verb, preposition, tail)
        event = replace(base, head=head, label="takes_place", tail=moment.name, single=True, event=True)
        about = [replace(base, head=subject, label=label, tail=tail)] if tail and label in {"travel", "booked"} else []
        return [event, *about]
    if label == "car" and not re.match(r"(?:a|an|the|my|our) (?!lot\b|bit\b|few\b)", tail):
        label = verb
    return _objects(base, subject, verb, label, tail or plain)


def _placed_by(base: Statement, subject: str, verb: str, found: tuple[str, str, str]) -> list[Statement] | None:
    """``my gym moved to Hill Road``, ``I go to the gym on Hill Road``, ``I have a Pixel phone``."""
    label, preposition, tail = found
    moment = base.moment
    together = _TOGETHER.match(tail) if label == "location" else None
    if together:  # "I live in Moab with my cat": a place, and who is there too
        note = third_person(f"I live with {together[2]}") if subject == "user" else base.note
        with_whom = replace(base, head=subject, label="live_with", tail=together[2], note=note)
        alone = _placed_by(base, subject, verb, (label, preposition, together[1]))
        someone = _LIVES.search(together[2]) or any(is_person(word) for word in together[2].split()[1:])
        company = [with_whom] if someone else []
        return [*(alone or _objects(base, subject, verb, label, together[1])), *company]
    if label == "location" and verb == "move":
        place = value_of(without_moment(tail, moment))
        if not preposition and moment is None:
            return [replace(base, head=subject)]
        if not place or re.match(WEEKDAY, tail.lower()):
            name = moment.name if moment is not None else tail
            return [replace(base, head=subject, label="takes_place", tail=name, single=True, changes=True)]
        return [replace(base, head=subject, label=label, tail=place, single=True, changes=True)]
    there = (
        re.match(r"^(?:the|my) ([\w ]+?) (?:on|at|in) ((?-i:[A-Z]).+)$", tail, re.IGNORECASE)
        if label == "go_to"
        else None
    )
    if there:
        return [
            replace(
                base,
                head=f"my {there[1]}" if subject == "user" else there[1],
                label="location",
                tail=there[2],
                single=True,
            )
        ]
    model = re.match(r"^(?:a|an) (.+) (phone|car)$", tail) if label == "own" else None
    if model:
        return [
            replace(
                base, head=subject, label="phone_model" if model[2] == "phone" else "car", tail=model[1], single=True
            )
        ]
    return None


def _objects(base: Statement, subject: str, verb: str, label: str, tail: str) -> list[Statement]:
    if not tail:
        return [replace(base, head=subject, label=label, tail=verb)] if worth_a_note(base.clause) else []
    called = _CALLED.match(tail)
    if called and verb in {"have", "own", "get", "adopt", "keep", "see", "meet"}:
        thing = bare_noun(called[1])
        own = replace(base, head=subject, label=label, tail=f"{possessive(subject)} {thing}")
        return [replace(base, head=f"{possessive(subject)} {thing}", label="name", tail=called[2], single=True), own]
    given = _FOR.match(tail)
    one = replace(base, head=subject, label=label, tail=given[1] if given else tail, single=single(label))
    more = [replace(base, head=given[1], label="for", tail=given[2])] if given else []
    return [one, *more]
