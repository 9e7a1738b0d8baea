"""The little English that the model-free extractor needs: base forms of verbs, clauses,
causes, and first person turned into third."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nyima.language.words import sentences

__all__ = ["Clause", "base_form", "clauses_of", "is_idle", "strip_lead", "third_person"]

_IRREGULAR = {
    form: base
    for base, forms in {
        "be": "am is are was were been being 'm 's 're", "have": "has had having 've got", "do": "does did done doing",
        "go": "goes went gone going", "take": "takes took taken taking", "drive": "drove driven driving",
        "fly": "flies flew flown flying", "leave": "leaves left leaving", "begin": "begins began begun",
        "buy": "buys bought buying", "sell": "sells sold selling", "meet": "meets met meeting",
        "make": "makes made making", "eat": "eats ate eaten eating", "keep": "keeps kept keeping",
        "get": "gets getting gotten", "give": "gives gave given giving", "come": "comes came coming",
        "become": "becomes became becoming", "run": "runs ran running", "pay": "pays paid paying",
        "lose": "loses lost losing", "win": "wins won winning", "write": "writes wrote written writing",
        "teach": "teaches taught teaching", "speak": "speaks spoke spoken speaking", "know": "knows knew known",
        "sleep": "sleeps slept sleeping", "wear": "wears wore worn wearing", "ride": "rides rode ridden riding",
        "stand": "stands stood standing", "sit": "sits sat sitting", "see": "sees saw seen seeing",
        "spend": "spends spent spending", "feel": "feels felt feeling", "find": "finds found finding",
        "drink": "drinks drank drinking", "die": "dies died dying", "lie": "lies lay lying", "send": "sends sent sending",
        "swim": "swims swam swimming", "grow": "grows grew growing", "read": "reads reading", "put": "puts putting",
        "quit": "quits quitting", "let": "lets letting", "cut": "cuts cutting", "break": "breaks broke broken breaking",
        "choose": "chooses chose chosen choosing", "hold": "holds held holding", "study": "studies studied studying",
        "use": "uses used using", "live": "lives lived living", "move": "moves moved moving",
        "start": "starts started starting", "stop": "stops stopped stopping", "plan": "plans planned planning",
        "love": "loves loved loving", "hate": "hates hated hating", "share": "shares shared sharing",
        "change": "changes changed changing", "close": "closes closed closing", "expire": "expires expired expiring",
        "book": "books booked booking", "work": "works worked working", "park": "parks parked parking",
        "rent": "rents rented renting", "store": "stores stored storing", "charge": "charges charged charging",
        "commute": "commutes commuted commuting", "practise": "practises practised practising",
        "rely": "relies relied", "carry": "carries carried", "marry": "marries married marrying", "arrive": "arrives"
        " arrived arriving", "cycle": "cycles cycled cycling", "cancel": "cancels cancelled canceled cancelling",
        "train": "trains trained training", "wake": "wakes woke waking", "bring": "brings brought bringing",
    }.items()
    for form in forms.split()
}  # fmt: skip
_VERBS = frozenset(
    {*_IRREGULAR.values()}
    | set(
        "accept adopt arrange ask attend avoid bake belong build call catch clean climb coach collect cook cost cover"
        " cross cure dance deliver depart depend deserve direct dislike dine dock draw drop earn end enjoy enter exercise"
        " finish fit follow garden handle happen head help hike hire host join jog knit land last lead learn lend like"
        " limit listen look maintain manage match measure need offer open order organise own paint pass pick plant play"
        " practice prefer prepare print raise reach receive refuse remember repair require reserve retire return sail"
        " schedule serve sew shop show sign sing ski smoke suit support swap switch talk taste tend throw tour travel"
        " treat try turn visit volunteer wait walk want wash watch weigh welcome wish worry reside relocate settle send"
        " renew subscribe skip handle tutor babysit feed foster freelance invest train water deposit withdraw borrow"
        " date hand check set depart expect pray mind look celebrate stay divorce resign donate terminate prescribe".split()
    )
)
_LEAD = re.compile(
    r"^\W*(?:(?:oh|ah|ok|okay|well|so|and|but|also|hey|hi|hello|by the way|btw|just so you know|for the record|fyi|please|"
    r"update|news|big news|good news|bad news|note to self|remember(?: that)?|note that|you should know that|"
    r"i should mention that|i forgot to say|by now|then|anyway|guess what|as of (?:today|now)|from now on|"
    r"these days|nowadays|currently|now(?=,? (?:i|we|my)\b)|as you know|to be clear|i think|i guess|i believe|in fact|sadly|luckily|"
    r"unfortunately|fortunately|finally|yes|yeah|yep|sure|thanks|thank you)\b[\s,:;.!–-]*)+",
    re.IGNORECASE,
)
_IDLE = re.compile(
    r"\?\W*$|^\W*(?:if|imagine|suppose|what if|let's say|say|maybe|perhaps|unless|whether|were i|had i|hopefully|"
    r"could you|can you|would you|will you|please (?:tell|show|give|write)|tell me|show me|let me know)\b"
    r"|\b(?:i wish|i would(?! like an? )|i'd (?!rather|like an? |prefer)|i might|we might|i could|i may|we may|we could|we would|would be nice|i used to|"
    r"might be|could be|supposing|hypothetically|in my dream|i dreamt|i dreamed|pretend|joking|just kidding|"
    r"thinking (?:of|about)|considering|would have|would like to|wouldn't)\b"
    r"|\bif (?:i|we|my|she|he|they|it|the)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"^\W*(?!i\b|we\b|(?:the |my )?(?:blood )?(?:test|tests|results?|doctor|vet)\b)[\w' ]{1,30}?\b(?:said|says|told me|tells me|asked|claims?|claimed|wrote|writes|thinks|thought|"
    r"believes|believed|suggested|suggests|jokes|joked|replied|shouted)\b(?! me to| about)[\s,:]*(?:that\b)?",
    re.IGNORECASE,
)
_BECAUSE = re.compile(
    r",?\s+\b(?:because of|because|since(?! (?:\d|last|then|january|february|march|april|may|june|july|august|september|"
    r"october|november|december))|as long as|so that|given that|seeing that|now that|due to|thanks to|"
    r"as(?= (?:my|i|the|our|we|it|he|she|they|her|his)\b)|as(?= (?-i:[A-Z])\w+(?:'s| (?:is|has|lives|works|likes|wants|needs)\b)))\b\s*"
    r"|,\s*(?:which|that)(?:'s| is) why:\s*|,\s*(?:which|that|it) comes with\s+"
    r"|\s*,\s*(?:which|that)(?:'s| is) why\b\s*|\s*[.;,–-]\s*(?:and )?that(?:'s| is) (?:the reason )?why\b\s*",
    re.IGNORECASE,
)
_LEADING_CAUSE = re.compile(r"^\W*(?:because|since|as|now that|given that)\s+(?=\w)(.{6,200}?),\s+(.+)$", re.IGNORECASE)
_SO = re.compile(r",\s*so\s+(?!that\b|far\b|much\b|many\b)|;\s*so\s+|\s+so\s+(?=i\b|we\b|my\b)", re.IGNORECASE)
_THEREFORE = re.compile(
    r"^\W*(?:that(?:'s| is) why|so|therefore|because of (?:that|this)|for that reason)\b[\s,]*", re.IGNORECASE
)
_DEPENDS = re.compile(r"^(.{3,120}?)\s+(?:depends? on|hangs? on|relies on|rely on)\s+(.{3,120})$", re.IGNORECASE)
_SPLIT = re.compile(
    r"\s*;\s*|\s+–\s+|:\s+|,\s*(?:and|but|while|whereas)?\s*(?=(?:i|we|my|our|he|she|they|it|his|her|the [\w ]{2,30}? (?:now )?(?:is|are|leaves|starts|moved|ends)|"
    r"[A-Z]\w+(?:'s \w+)? (?:is|are|has|lives|works|left|moved|got))\b)"
    r"|\s+(?:and|but)\s+(?=(?:i|we|my|our|he|she|they|it|his|her)\b|[A-Z]\w+(?:'s \w+)? (?:is|are|has|lives|works|left|moved)\b"
    r"|(?:drive|drives|work|works|live|lives|now|moved|bought|go|take|took|left|got|use|started|am|have) )",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of a sentence that may state something. ``rests`` are the numbers of the
    clauses that it rests on; -1 is the statement before this text."""

    text: str
    rests: tuple[int, ...] = ()
    corrects: bool = False


def strip_lead(text: str) -> str:
    """A sentence without what people say before they say something."""
    return _LEAD.sub("", text, count=1).strip()


def is_idle(sentence: str) -> bool:
    """Whether a sentence asks, imagines or quotes, so that it states nothing."""
    return bool(_IDLE.search(sentence) or _QUOTED.match(sentence) or len(sentence.split()) > 70)


_CORRECTION = re.compile(
    r"^\W*(?:no|nope|sorry|oops|wait|actually|correction|i meant|i mean|rather|i was wrong|i misspoke|my mistake|"
    r"change of plans?|scratch that|not quite|that was wrong)\b|\b(?:i meant|instead of|correction|not \w+ but|change of plans?)\b",
    re.IGNORECASE,
)
_CORRECTION_LEAD = re.compile(
    r"^\W*(?:(?:no|nope|sorry|oops|wait|actually|correction|i meant(?: to say)?(?: that)?|i mean|rather|i was wrong|"
    r"i misspoke|my mistake|change of plans?|scratch that|not quite|that was wrong)\b[\s,:;.!–-]*)+",
    re.IGNORECASE,
)


def clauses_of(text: str) -> list[Clause]:
    """The clauses of a text that may state something, with what each rests on."""
    out: list[Clause] = []
    corrects = False
    for sentence in sentences(text[:4_000]):
        sentence = sentence.rstrip(" .!…").replace("’", "'")
        sentence = re.sub(r"^((?!And|But)[A-Z]\w+) and I (.+)$", r"I \2 with \1", sentence)
        bare = strip_lead(sentence)
        if _CORRECTION.search(bare):
            corrects, bare = True, strip_lead(_CORRECTION_LEAD.sub("", bare))
        if not bare or is_idle(sentence) or is_idle(bare):
            corrects = corrects and not bare
            continue
        therefore = bool(_THEREFORE.match(sentence))
        bare = _THEREFORE.sub("", bare)
        _add(out, bare, corrects=corrects, therefore=therefore)
        corrects = False
    return out


def _add(out: list[Clause], sentence: str, *, corrects: bool, therefore: bool) -> None:
    before = len(out) - 1
    leading = _LEADING_CAUSE.match(sentence)
    if leading:
        causes, effects = [leading[1]], [leading[2]]
    elif (found := _DEPENDS.match(sentence)) is not None:
        causes, effects = [found[2]], [found[1]]
    elif (found := _BECAUSE.search(sentence)) is not None and found.start() > 5:
        first, second = sentence[: found.start()], sentence[found.end() :]
        named_first = "why" in found[0] and ":" not in found[0]
        causes, effects = ([first], [second]) if named_first else ([second], [first])
    elif (found := _SO.search(sentence)) is not None and found.start() > 5:
        causes, effects = [sentence[: found.start()]], [sentence[found.end() :]]
    else:
        causes, effects = [], [sentence]
    numbers: list[int] = []
    for cause in causes:
        for piece in _pieces(cause):
            numbers.append(len(out))
            out.append(Clause(piece, (), corrects))
    rests = tuple(numbers) or ((before,) if therefore else ())
    out += [Clause(piece, rests, corrects) for effect in effects for piece in _pieces(effect)]


def _pieces(text: str) -> list[str]:
    return [p for piece in _SPLIT.split(text) if piece and len((p := strip_lead(piece).strip(" ,")).split()) >= 2]


def base_form(word: str) -> str:
    """The base form of a verb; empty for a word that is hardly one."""
    word = word.lower().strip(".,;:!")
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word in _VERBS:
        return word
    for ending, put in (
        ("ies", "y"),
        ("ied", "y"),
        ("es", ""),
        ("s", ""),
        ("ing", ""),
        ("ing", "e"),
        ("ed", ""),
        ("d", ""),
    ):
        if word.endswith(ending) and word.removesuffix(ending) + put in _VERBS:
            return word.removesuffix(ending) + put
    stem = word.removesuffix("ing").removesuffix("ed")
    return stem[:-1] if len(stem) > 3 and stem[-1:] == stem[-2:-1] and stem[:-1] in _VERBS else ""


_PERSONS = (
    (re.compile(r"\bI'm\b|\bI am\b", re.IGNORECASE), "the user is"),
    (re.compile(r"\bI've\b", re.IGNORECASE), "the user has"),
    (re.compile(r"\bI'll\b", re.IGNORECASE), "the user will"),
    (re.compile(r"\bI'd\b", re.IGNORECASE), "the user would"),
    (re.compile(r"\bI (?:do not|don't)\b", re.IGNORECASE), "the user doesn't"),
    (re.compile(r"\bI have\b", re.IGNORECASE), "the user has"),
    (re.compile(r"\bmy\b", re.IGNORECASE), "the user's"),
    (re.compile(r"\bmine\b", re.IGNORECASE), "the user's"),
    (re.compile(r"\bme\b|\bmyself\b", re.IGNORECASE), "the user"),
)
_I_VERB = re.compile(
    r"\bI( (?:also|always|usually|often|now|never|still|only|really|mostly|just|currently))? ([a-z]+)\b"
)


def third_person(clause: str) -> str:
    """A clause in the first person as a statement about "the user"."""
    text = clause
    for pattern, put in _PERSONS:
        text = pattern.sub(put, text)

    def verb(match: re.Match[str]) -> str:
        word = match[2]
        if base_form(word) == word and word not in {"put", "let", "cut", "quit", "read"}:
            ending = "es" if word.endswith(("s", "sh", "ch", "x", "o")) else "s"
            word = word[:-1] + "ies" if re.search(r"[^aeiou]y$", word) else word + ending
        return f"the user{match[1] or ''} {word}"

    text = re.sub(r"\bI\b", "the user", _I_VERB.sub(verb, text))
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "…")) else ".")
