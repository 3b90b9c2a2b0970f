"use strict";
// ---- what is wrong with a question, at the fields that caused it ------------------------------------------------------
function clearErrors() {
  for (const place of form.querySelectorAll(".error")) place.textContent = "";
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
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

// each stands at its field, and where the answer would be with a link to it
function showWrong(error) {
  const field = error.field && byId("e-" + error.field) ? error.field : error.file ? "yaml" : "";
  byId("e-" + field).textContent = error.message;
  const input = byId("f-" + field), link = document.createElement(input ? "a" : "span"), line = document.createElement("div");
  link.textContent = error.message;
  line.append(link);
  byId("wrong").append(line);
  if (!input) return;
  link.href = "#f-" + field;
  input.setAttribute("aria-invalid", "true");
  offer(input, error.message, line);
  for (let fold = input.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}

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
