"""What a question in English begins with, and what it mentions."""

from __future__ import annotations

import re

__all__ = ["MENTION", "WH"]

WH = re.compile(
    r"^\W*(?:(?:so|and|but|hey|please|nyima|can you tell me|do you (?:know|remember)|tell me|remind me)[\s,]+)*"
    r"(?:what(?:'s| is| are| was| time| day| kind of)?|which|who(?:'s| is)?|where(?:'s| is)?|when(?:'s| is)?|how(?: many| much| old| long)?|why|"
    r"do|does|did|is|are|am|was|were|can|could|should|will|would)\b",
    re.IGNORECASE,
)

MENTION = re.compile(r"\b(?:my|our) [\w-]+(?:'s [\w-]+)*|(?<=\s)[A-Z][\w-]*(?: [A-Z0-9][\w-]*)*|\"[^\"]+\"")
