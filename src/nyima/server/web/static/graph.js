// Zoom, drag and click in the drawing of the graph.
const svg = document.querySelector("#drawing svg"), side = document.getElementById("side");
const box = svg?.viewBox.baseVal;

async function show(id) {
  const answer = await fetch(`/graph/${encodeURIComponent(id)}`);
  side.innerHTML = answer.ok ? await answer.text() : "<p>It is gone.</p>";
  if (window.htmx) window.htmx.process(side);
}

function zoom(k, x = 0.5, y = 0.5) {
  box.x += box.width * x * (1 - k);
  box.y += box.height * y * (1 - k);
  box.width *= k; box.height *= k;
}

function move(x, y) { box.x += box.width * x; box.y += box.height * y; }

function place(event) {
  const r = svg.getBoundingClientRect();
  return [(event.clientX - r.left) / r.width, (event.clientY - r.top) / r.height];
}

if (svg) {
  const whole = [box.x, box.y, box.width, box.height], fingers = new Map();
  const reset = () => { [box.x, box.y, box.width, box.height] = whole; };
  const keys = { "+": () => zoom(1 / 1.25), "=": () => zoom(1 / 1.25), "-": () => zoom(1.25), 0: reset,
    ArrowLeft: () => move(-0.1, 0), ArrowRight: () => move(0.1, 0), ArrowUp: () => move(0, -0.1), ArrowDown: () => move(0, 0.1) };
  document.getElementById("drawing").addEventListener("keydown", event => {
    if (keys[event.key] && !event.ctrlKey && !event.metaKey) { event.preventDefault(); keys[event.key](); }
  });
  document.getElementById("nearer").addEventListener("click", () => zoom(1 / 1.25));
  document.getElementById("farther").addEventListener("click", () => zoom(1.25));
  document.getElementById("whole").addEventListener("click", reset);
  svg.addEventListener("wheel", event => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, ...place(event)); }, { passive: false });
  svg.addEventListener("pointerdown", event => { fingers.set(event.pointerId, place(event)); });
  window.addEventListener("pointermove", event => {
    const before = fingers.get(event.pointerId), now = place(event);
    if (!before) return;
    const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
    fingers.set(event.pointerId, now);
    if (!other) { move(before[0] - now[0], before[1] - now[1]); return; }
    const far = ([x, y]) => Math.hypot(x - other[0], y - other[1]);  // two fingers: pinch
    zoom(Math.min(2, Math.max(0.5, far(before) / (far(now) || 1))), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
  });
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, event => fingers.delete(event.pointerId));
  for (const group of svg.querySelectorAll("[data-id]")) {
    group.addEventListener("click", () => show(group.dataset.id));
    group.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); show(group.dataset.id); } });
  }
}
