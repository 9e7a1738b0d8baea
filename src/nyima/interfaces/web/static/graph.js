// Zoom, drag and click in the drawing of the graph.
const svg = document.querySelector("#drawing svg"), side = document.getElementById("side");
const box = svg?.viewBox.baseVal;
let from = null;

async function show(id) {
  const answer = await fetch(`/graph/${encodeURIComponent(id)}`);
  side.innerHTML = answer.ok ? await answer.text() : "<p>It is gone.</p>";
  if (window.htmx) window.htmx.process(side);
}

if (svg) {
  svg.addEventListener("wheel", event => {
    event.preventDefault();
    const k = event.deltaY > 0 ? 1.15 : 1 / 1.15, r = svg.getBoundingClientRect();
    box.x += box.width * (event.clientX - r.left) / r.width * (1 - k);
    box.y += box.height * (event.clientY - r.top) / r.height * (1 - k);
    box.width *= k; box.height *= k;
  }, { passive: false });
  svg.addEventListener("pointerdown", event => { from = [event.clientX, event.clientY, box.x, box.y]; });
  window.addEventListener("pointermove", event => {
    if (!from) return;
    const r = svg.getBoundingClientRect();
    box.x = from[2] - (event.clientX - from[0]) * box.width / r.width;
    box.y = from[3] - (event.clientY - from[1]) * box.height / r.height;
  });
  window.addEventListener("pointerup", () => { from = null; });
  for (const group of svg.querySelectorAll("[data-id]")) {
    group.addEventListener("click", () => show(group.dataset.id));
    group.addEventListener("keydown", event => { if (event.key === "Enter") show(group.dataset.id); });
  }
}
