"use strict";
// ---- what is wrong with a question, at the fields that caused it ------------------------------------------------------
function clearErrors(of = form) {
  for (const place of of.querySelectorAll(".error")) place.textContent = "";
  for (const input of of.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
  byId("wrong").replaceChildren();
}

function showError(error) {
  busy(false);
  byId("answer").replaceChildren();
  showAfter(false);
  byId("wrong").replaceChildren("No answer: ");
  for (const one of [error, ...error.also ?? []]) showWrong(one);
  sayVerdict(byId("wrong"));
}

const fieldOf = error => error.field && byId("e-" + error.field) ? error.field : error.file ? "yaml" : "";

// each stands at its field, and where the answer would be with a link to it
function showWrong(error) {
  const input = markWrong(error), link = document.createElement(input ? "a" : "span"), line = document.createElement("div");
  link.textContent = error.message;
  line.append(link);
  byId("wrong").append(line);
  if (!input) return;
  link.href = "#" + input.id;
  if (error.line && "yaml" in input.dataset) link.addEventListener("click", event => { event.preventDefault(); selectLine(input, error.line); });
  offer(input, error.message, line);
}

function markWrong(error) {
  const field = fieldOf(error), input = byId("f-" + field);
  byId("e-" + field).textContent = error.message;
  input?.setAttribute("aria-invalid", "true");
  for (let fold = input?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  return input;
}

function selectLine(place, line) {
  const lines = place.value.split("\n"), from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  place.focus();
  place.setSelectionRange(from, from + (lines[line - 1] ?? "").length);
}

// what is wrong with what has been written stands at its field before anything is asked; what is missing is no mistake yet
let checking = new AbortController();  // who goes on writing does not wait for what was looked at before

async function checkWritten() {
  const asked = question(), written = byId("f-yaml").value, at = JSON.stringify(asked);
  checking.abort();
  checking = new AbortController();
  const response = await fetch("/check", { method: "POST", headers: json, signal: checking.signal, body: JSON.stringify({ verb: about.verb, question: asked, written }) }).catch(() => null);
  const { error } = response?.ok ? await response.json() : {};
  if (at !== JSON.stringify(question()) || byId("wrong").firstChild) return error;
  clearErrors();
  for (const one of error ? [error, ...error.also ?? []] : []) if (byId("f-" + fieldOf(one))?.value) markWrong(one);
  return error;
}

// a line that a message names is one of the text that stands there, of which fields may say a part
const inLines = async error => error.file && byId("f-yaml").value ? await checkWritten() ?? error : error;

// names that a message proposes are taken by a click
function offer(input, message, line) {
  const names = /(?:did you mean|node types:) ([^;?]+)/.exec(message)?.[1].split(", ").filter(name => /^[\w.-]*\w[\w.-]*$/.test(name)) ?? [];
  for (const name of names) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => { input.value = name; changed(); input.focus(); });
    line.append(" ", button);
  }
}

async function told(response) {
  try { return (await response.json()).error ?? { message: response.statusText }; } catch { return { message: "the server does not answer as expected: " + response.status }; }
}
