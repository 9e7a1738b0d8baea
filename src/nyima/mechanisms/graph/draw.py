"""The graph as text, as DOT, as SVG, and as a page that needs nothing from elsewhere."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence

from nyima.domain.records import Claim
from nyima.mechanisms.graph.look import Neighbourhood

__all__ = ["as_dot", "as_html", "as_svg", "as_tree"]

_RING = 150
_MOST = 400


def _mark(claim: Claim) -> str:
    """What is to be said of a claim: over, or no longer certain."""
    if claim.recorded.until is not None:
        return " (until " + claim.recorded.until.strftime("%-d %b %Y") + ")"
    if claim.stale:
        return " (not known any more)"
    return " (until " + claim.valid.until.strftime("%-d %b %Y") + ")" if claim.valid.until else ""


def as_tree(found: Neighbourhood) -> list[tuple[int, str, str]]:
    """Lines as (depth, text, id), each relation once, from the root on."""
    names = {id: e.name for id, e in found.entities.items()}
    lines = [(0, names.get(found.root, found.root), found.root)]
    seen: set[str] = set()

    def below(id: str, depth: int) -> None:
        for claim in found.claims:
            if claim.id in seen or id not in {claim.subject, claim.object}:
                continue
            seen.add(claim.id)
            out = claim.subject == id
            other = claim.object if out else claim.subject
            name = names.get(other, claim.value if out else claim.name)
            arrow = f"{claim.attribute} → " if out else f"← {claim.attribute} of "
            lines.append((depth, f"{arrow}{name}{_mark(claim)}", claim.id))
            if other not in {"", "user"} and depth < 4:
                below(other, depth + 1)

    below(found.root, 1)
    for claim in found.claims:  # what hangs together with nothing above
        if claim.id not in seen:
            lines.append((1, names.get(claim.subject, claim.name), claim.subject))
            below(claim.subject, 2)
    return lines


def as_dot(found: Neighbourhood) -> str:
    """The graph in the DOT language of Graphviz."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'

    nodes = [f"  {quoted(id)} [label={quoted(e.name)}];" for id, e in sorted(found.entities.items())]
    edges = [
        f"  {quoted(r.subject)} -> {quoted(r.object)} [label={quoted(r.attribute)}"
        f"{', style=dashed' if r.stale or r.recorded.until else ''}];"
        for r in found.claims
        if r.object
    ]
    return "\n".join(("digraph memory {", "  rankdir=LR;", *nodes, *edges, "}"))


def _places(found: Neighbourhood) -> dict[str, tuple[float, float]]:
    """Each entity on a ring by its distance from the root, spread evenly."""
    beside: dict[str, set[str]] = {}
    for claim in found.claims:
        beside.setdefault(claim.subject, set()).add(claim.object)
        beside.setdefault(claim.object, set()).add(claim.subject)
    rings, seen = [[found.root]], {found.root}
    while rings[-1] and len(seen) < _MOST:
        ring = sorted({n for id in rings[-1] for n in beside.get(id, ())} - seen)[:_MOST]
        seen |= set(ring)
        rings.append(ring)
    places: dict[str, tuple[float, float]] = {}
    for depth, ring in enumerate(rings):
        radius = depth * max(_RING, 26 * len(ring) / (2 * math.pi) / max(1, depth))
        for i, id in enumerate(ring):
            angle = 2 * math.pi * i / max(1, len(ring)) + 0.35 * depth
            places[id] = (round(radius * math.cos(angle), 1), round(radius * math.sin(angle), 1))
    return places


def as_svg(found: Neighbourhood, *, styled: bool = True) -> str:
    """A drawing; dashed lines no longer hold, or are no longer certain. ``styled`` has its
    style in it."""
    places = _places(found)
    width = max((abs(x) for x, _ in places.values()), default=0) + 140
    height = max((abs(y) for _, y in places.values()), default=0) + 60
    lines: list[str] = []
    for r in found.claims:
        if r.subject not in places or r.object not in places:
            continue
        (x1, y1), (x2, y2) = places[r.subject], places[r.object]
        dash = ' stroke-dasharray="4 3"' if r.stale or r.recorded.until else ""
        label = html.escape(r.attribute)
        lines.append(
            f'<g class="edge" data-id="{html.escape(r.id)}" tabindex="0" role="button" aria-label="{html.escape(r.text)}"><title>{html.escape(r.text + _mark(r))}</title>'
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"{dash}/>'
            f'<text x="{(x1 + x2) / 2:.0f}" y="{(y1 + y2) / 2 - 3:.0f}">{label}</text></g>'
        )
    for id, (x, y) in places.items():
        name = html.escape((found.entities[id].name if id in found.entities else id)[:80])
        kind = "node root" if id == found.root else "node"
        lines.append(
            f'<g class="{kind}" data-id="{html.escape(id)}" tabindex="0" role="button" aria-label="{name}"><circle cx="{x}" cy="{y}" r="9"/>'
            f'<text x="{x}" y="{y + 22}">{name}</text></g>'
        )
    style = (
        "<style>line{stroke:#8a8f98;stroke-width:1.2}circle{fill:#4c78a8}.root circle{fill:#e45756}"
        "text{font:11px sans-serif;text-anchor:middle;fill:#333}.edge text{fill:#777;font-size:9px}</style>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-width:.0f} {-height:.0f} {2 * width:.0f} {2 * height:.0f}"'
        f' role="group" aria-label="The memory graph">{style if styled else ""}{"".join(lines)}</svg>'
    )


_SCRIPT = """
const data = JSON.parse(document.getElementById('data').textContent);
const svg = document.querySelector('svg'), side = document.getElementById('side');
let box = svg.viewBox.baseVal, from = null;
svg.addEventListener('wheel', e => { e.preventDefault(); const k = e.deltaY > 0 ? 1.15 : 1 / 1.15;
  const r = svg.getBoundingClientRect(), px = (e.clientX - r.left) / r.width, py = (e.clientY - r.top) / r.height;
  box.x += box.width * px * (1 - k); box.y += box.height * py * (1 - k); box.width *= k; box.height *= k; }, {passive: false});
svg.addEventListener('pointerdown', e => { from = [e.clientX, e.clientY, box.x, box.y]; });
window.addEventListener('pointermove', e => { if (!from) return; const r = svg.getBoundingClientRect();
  box.x = from[2] - (e.clientX - from[0]) * box.width / r.width; box.y = from[3] - (e.clientY - from[1]) * box.height / r.height; });
window.addEventListener('pointerup', () => { from = null; });
function show(id) { side.replaceChildren(); const item = data[id]; if (!item) return;
  for (const line of item) { const p = document.createElement('p'); p.textContent = line; side.append(p); } }
for (const g of document.querySelectorAll('[data-id]')) {
  g.addEventListener('click', () => show(g.dataset.id));
  g.addEventListener('keydown', e => { if (e.key === 'Enter') show(g.dataset.id); }); }
"""


def as_html(found: Neighbourhood, details: Mapping[str, Sequence[str]]) -> str:
    """A page to zoom, drag and click; ``details`` are the lines beside it by id."""
    data = json.dumps(dict(details), ensure_ascii=False).replace("<", "\\u003c")
    title = html.escape(found.entities[found.root].name if found.root in found.entities else "memory")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>'
        "body{margin:0;display:flex;height:100vh;font:14px sans-serif}svg{flex:1;cursor:grab;touch-action:none}"
        "#side{width:22rem;padding:1rem;overflow:auto;border-left:1px solid #ddd}[data-id]{cursor:pointer}"
        "@media (prefers-color-scheme:dark){body{background:#16181d;color:#ddd}text{fill:#ddd!important}}</style>"
        f'{as_svg(found)}<aside id="side" aria-live="polite"><p>Click a line or a dot.</p></aside>'
        f'<script type="application/json" id="data">{data}</script><script>{_SCRIPT}</script></html>'
    )
