// The chat: streams the reply, then shows what it used and why.
import { headers, tell } from "./page.js";
const talk = document.getElementById("talk"), form = document.getElementById("say"), text = document.getElementById("text");
const hidden = document.getElementById("private"), before = [];

function made(tag, kind, content) {
  const found = document.createElement(tag);
  if (kind) found.className = kind;
  if (content !== undefined) found.textContent = content;
  return found;
}

function line(role, who, content) {
  const item = made("li", role);
  const body = made("div", "text", content);
  item.append(made("span", "who", who), body);
  talk.append(item);
  item.scrollIntoView({ block: "end" });
  return body;
}

async function act(button, path, body) {
  const answer = await fetch(path, { method: "POST", headers, body: new URLSearchParams(body) });
  tell(answer.ok ? "Done." : (await answer.json()).detail);
  if (answer.ok) button.closest("li").classList.add("gone");
}

function why(item, done) {
  if (done.noted.length) {
    const chip = made("p", "why", `Noted: ${done.noted.map(([k, v]) => `${k.replaceAll("_", " ")} = ${v}`).join(", ")} `);
    const undo = made("button", "", "Undo");
    undo.addEventListener("click", async () => tell((await fetch("/undo", { method: "POST", headers })).ok ? "Taken back." : "There is nothing to take back yet."));
    chip.append(undo);
    item.append(chip);
  }
  if (!done.used.length) return;
  const box = made("details", "why");
  box.append(made("summary", "", `What it used (${done.used.length})`));
  const list = made("ul");
  for (const used of done.used) {
    const row = made("li", "", `${used.score.toFixed(2)} ${used.source}: ${used.text.slice(0, 300)} `);
    row.append(made("span", "quiet", `${used.at.slice(0, 10)}${used.superseded ? ", no longer true" : ""} `));
    if (!done.private) {
      const edit = made("button", "", "Edit"), forget = made("button", "danger", "Forget");
      edit.addEventListener("click", () => { const now = prompt("What should it say?", used.text); if (now) act(edit, `/memories/${used.id}/revise`, { text: now }); });
      forget.addEventListener("click", () => { if (confirm("Erase it for good?")) act(forget, `/memories/${used.id}/forget`, {}); });
      row.append(edit, forget);
    }
    list.append(row);
  }
  box.append(list);
  item.append(box);
}

async function say(message) {
  line("user", "You", message);
  const body = line("assistant", "Nyima", "…");
  const given = { text: message, session: talk.dataset.session || null, private: hidden.checked, before: hidden.checked ? before.filter(turn => turn.text).slice(-200) : [] };
  const answer = await fetch("/chat", { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(given) });
  if (!answer.ok) { body.textContent = (await answer.json()).detail; return; }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", shown = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = JSON.parse(event.slice(6));
      if (data.delta) { shown += data.delta; body.textContent = shown; }
      if (data.error) body.textContent = `${shown} ${data.error}`.trim();
      if (data.done) { talk.dataset.session = data.session; why(body.parentElement, data); }
    }
  }
  if (hidden.checked) before.push({ text: message, role: "user" }, { text: shown, role: "assistant" });
  body.scrollIntoView({ block: "end" });
}

form.addEventListener("submit", async event => {
  event.preventDefault();
  const message = text.value.trim();
  if (!message) return;
  text.value = "";
  const button = form.querySelector("button");
  button.disabled = true;
  try { await say(message); } catch (error) { tell(`The connection broke off (${error.message}); what you said is kept.`); }
  button.disabled = false;
  text.focus();
});
text.addEventListener("keydown", event => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); form.requestSubmit(); } });
document.getElementById("fresh").addEventListener("click", async () => {
  if (talk.dataset.session && !hidden.checked) await fetch("/chat/end", { method: "POST", headers, body: new URLSearchParams({ session: talk.dataset.session }) });
  talk.dataset.session = ""; talk.replaceChildren(); before.length = 0; text.focus();
});
hidden.addEventListener("change", () => { talk.dataset.session = ""; talk.replaceChildren(); before.length = 0; });
