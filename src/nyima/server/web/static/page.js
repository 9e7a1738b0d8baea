// What every page has: forms that carry the page's token, uploads, the as-of slider.
const token = document.body.dataset.form;
export const headers = { "X-Nyima-Form": token };
const said = document.getElementById("said");

export function tell(text) {
  said.textContent = text;
  setTimeout(() => { if (said.textContent === text) said.textContent = ""; }, 6000);
}

async function problem(answer) {
  try { const body = await answer.json(); return body.detail || body.error?.message || answer.statusText; } catch { return answer.statusText; }
}

document.addEventListener("submit", async event => {
  const form = event.target;
  if (form.dataset.post !== undefined) {
    event.preventDefault();
    if (form.dataset.confirm && !confirm(form.dataset.confirm)) return;
    const answer = await fetch(form.action, { method: "POST", headers, body: new URLSearchParams(new FormData(form)) });
    if (answer.ok) location.assign(answer.redirected ? answer.url : location.href); else tell(await problem(answer));
  } else if (form.dataset.upload) {
    event.preventDefault();
    const file = form.elements.file.files[0];
    tell(`Reading ${file.name}…`);
    const answer = await fetch(`${form.dataset.upload}?name=${encodeURIComponent(file.name)}`, { method: "POST", headers, body: file });
    if (answer.ok) location.reload(); else tell(await problem(answer));
  }
});

document.addEventListener("input", event => {
  const slider = event.target;
  if (!slider.dataset?.first) return;
  const day = new Date(slider.dataset.first + "T00:00:00Z");
  day.setUTCDate(day.getUTCDate() + Number(slider.value));
  document.getElementById(slider.dataset.output).textContent = slider.value === slider.max ? "now" : day.toISOString().slice(0, 10);
});

document.addEventListener("erased", event => tell(event.detail.text));
document.addEventListener("htmx:responseError", async event => {
  try { tell(JSON.parse(event.detail.xhr.responseText).detail); } catch { tell(`HTTP ${event.detail.xhr.status}`); }
});
document.addEventListener("htmx:afterRequest", event => {
  if (event.detail.successful && event.target.dataset?.reload !== undefined) location.reload();
});
