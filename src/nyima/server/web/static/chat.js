// The chat: streams the reply, then shows what it used and why.
import { headers, tell } from "./page.js";
const talk = document.getElementById("talk"), form = document.getElementById("say"), text = document.getElementById("text");
const hidden = document.getElementById("private"), before = [];
const held = sessionStorage.getItem("session");  // of this tab: the way back from another page
if (held && !location.search) location.replace(`/?session=${encodeURIComponent(held)}`);
const REVISED = ["claim", "note", "summary"];  // what was said word for word can be forgotten, not changed

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

async function act(path, body) {
  const answer = await fetch(path, { method: "POST", headers, body: new URLSearchParams(body) });
  tell(answer.ok ? "Done." : (await answer.json()).detail);
  return answer.ok;
}

function evidence(used, hidden) {
  const row = made("li", "", `${used.score.toFixed(2)} ${used.source}: `), said = made("span", "said", used.text.slice(0, 300));
  row.append(said, made("span", "quiet", ` ${used.at.slice(0, 10)}${used.superseded ? ", no longer true" : ""} `));
  if (hidden) return row;
  const edit = made("button", "", "Edit"), forget = made("button", "danger", "Forget");
  edit.addEventListener("click", async () => {
    const now = prompt("What should it say?", used.text);
    if (!now || !await act(`/memories/${encodeURIComponent(used.id)}/revise`, { text: now })) return;
    said.textContent = now;
    edit.remove(); forget.remove();
    row.append(made("em", "quiet", "corrected"));
  });
  forget.addEventListener("click", async () => {
    if (!confirm("Erase it for good?") || !await act(`/memories/${encodeURIComponent(used.id)}/forget`, {})) return;
    row.replaceChildren(made("em", "quiet", "Erased for good."));
  });
  if (REVISED.includes(used.kind)) row.append(edit);
  row.append(forget);
  return row;
}

function usedBox(list, hidden) {
  const box = made("details", "why"), rows = made("ul");
  box.append(made("summary", "", `What it used (${list.length})`), rows);
  rows.append(...list.map(used => evidence(used, hidden)));
  return box;
}

function why(item, done) {
  if (done.noted.length) {
    const chip = made("p", "why", `Noted: ${done.noted.map(([k, v]) => `${k.replaceAll("_", " ")} = ${v}`).join(", ")} `);
    const undo = made("button", "", "Undo");
    undo.addEventListener("click", async () => {
      const answer = await fetch("/undo", { method: "POST", headers, body: new URLSearchParams({ turn: done.said }) });
      if (answer.ok) { undo.remove(); chip.classList.add("gone"); }
      tell(answer.ok ? "Taken back." : "There is nothing of it to take back.");
    });
    chip.append(undo);
    item.append(chip);
  }
  if (done.used.length) item.append(usedBox(done.used, done.private));
}

for (const item of talk.querySelectorAll("li.assistant[data-turn]")) {
  const ask = made("button", "why", "What it used");
  ask.addEventListener("click", async () => {
    const answer = await fetch(`/chat/used?turn=${encodeURIComponent(item.dataset.turn)}`);
    const list = answer.ok ? (await answer.json()).used : [];
    const box = list.length ? usedBox(list, false) : made("p", "why quiet", "Nothing that is still there.");
    box.open = true;
    ask.replaceWith(box);
  });
  item.append(ask);
}

function at(shown, session) {  // the address goes on with this conversation when the page is loaded again
  talk.dataset.session = session;
  if (shown) sessionStorage.setItem("session", shown); else sessionStorage.removeItem("session");
  history.replaceState(null, "", shown ? `/?session=${encodeURIComponent(shown)}` : "/");
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
      if (data.done) { at(data.private ? "" : data.session, data.session); why(body.parentElement, data); }
    }
  }
  if (hidden.checked) before.push({ text: message, role: "user" }, { text: shown, role: "assistant" });
  body.scrollIntoView({ block: "end" });
}

form.addEventListener("submit", async event => {
  event.preventDefault();
  const message = text.value.trim(), buttons = [...form.querySelectorAll("button"), hidden];
  if (!message || buttons[0].disabled) return;  // one at a time: the next belongs to the session that the first begins
  text.value = "";
  for (const button of buttons) button.disabled = true;
  try { await say(message); } catch (error) { tell(`The connection broke off (${error.message})${hidden.checked ? "" : "; what you said is kept"}.`); }
  for (const button of buttons) button.disabled = false;
  text.focus();
});
text.addEventListener("keydown", event => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); form.requestSubmit(); } });
document.getElementById("fresh").addEventListener("click", async () => {
  if (talk.dataset.session && !hidden.checked) await fetch("/chat/end", { method: "POST", headers, body: new URLSearchParams({ session: talk.dataset.session }) });
  at("", ""); talk.replaceChildren(); before.length = 0; text.focus();
});
hidden.addEventListener("change", () => {
  document.getElementById("kept").textContent = hidden.checked ? "Nothing that you say here is kept." : "What you say here is remembered.";
  at("", ""); talk.replaceChildren(); before.length = 0;
});
