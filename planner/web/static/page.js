"use strict";
// A question is a form, a file and the address; whichever changes, the others follow. No answer is made here.
const byId = id => document.getElementById(id);
const form = byId("question");
const json = { "content-type": "application/json" };

function later(wait, does) {
  let timer;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => does(...given), wait); };
}

// ---- the question -------------------------------------------------------------------------------------------------
function showKind() {
  const kind = form.querySelector("[name=kind]:checked")?.value ?? "";
  for (const field of form.querySelectorAll("[data-kind]")) {
    const other = field.dataset.kind !== "" && kind !== "" && field.dataset.kind !== kind;
    field.hidden = other;
    for (const input of field.querySelectorAll("[name]")) input.disabled = other;
  }
}

function asked() {
  const said = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    const text = name === "yaml" ? value : name === "config" ? compact(value) : value.trim();
    if (text && !(name === "kind" && text === "training")) said.append(name, text);
  }
  if (said.has("config")) said.delete("model");
  return said;
}

// a config in an address is as short as JSON can be
function compact(text) {
  try { return JSON.stringify(JSON.parse(text)); } catch { return text.trim(); }
}

function question() {
  const values = Object.fromEntries(asked());
  delete values.kind;
  for (const box of form.querySelectorAll("input[type=checkbox]")) if (box.name in values) values[box.name] = true;
  return values;
}

function clearErrors() {
  for (const place of form.querySelectorAll(".error")) place.textContent = "";
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

function showError(error) {
  const field = error.field && byId("e-" + error.field) ? error.field : error.file ? "yaml" : "";
  byId("e-" + field).textContent = error.message;
  const input = byId("f-" + field);
  if (!input) return;
  input.setAttribute("aria-invalid", "true");
  for (let fold = input.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}

async function told(response) {
  try { return (await response.json()).error ?? { message: response.statusText }; } catch { return { message: "the server does not answer as expected: " + response.status }; }
}

const words = later(250, async () => {
  const said = asked();
  for (const link of document.querySelectorAll("[data-to]")) link.href = link.dataset.to + "?" + withoutKind(said);
  const response = await fetch(`/words/${form.dataset.verb}?${said}`).catch(() => null);
  if (!response?.ok) return;
  const { yaml, command, python } = await response.json();
  byId("as-command").value = command;
  byId("as-python").value = python;
  if (document.activeElement !== byId("f-yaml")) { byId("f-yaml").value = yaml; showJobs(); }
});

function withoutKind(said) {
  const rest = new URLSearchParams(said);
  rest.delete("kind");
  return rest;
}

const fromFile = later(300, async () => {
  const yaml = byId("f-yaml").value;
  const response = yaml.trim() ? await fetch("/fields", { method: "POST", headers: json, body: JSON.stringify({ yaml }) }) : null;
  clearErrors();
  if (response && !response.ok) { showError({ ...await told(response), field: "yaml" }); return; }
  const values = response ? await response.json() : {};
  for (const input of form.querySelectorAll(".field [name], [name=yaml]")) {
    if (input.type === "checkbox") input.checked = values[input.name] === "true";
    else if (input.tagName === "SELECT") choose(input, values[input.name] ?? "");
    else input.value = values[input.name] ?? "";
  }
  const serves = Object.keys(values).some(name => byId("f-" + name)?.closest("[data-kind]")?.dataset.kind === "serving");
  const kind = form.querySelector(`[name=kind][value=${serves ? "serving" : "training"}]`);
  if (kind) kind.checked = true;
  showKind();
  showJobs();
  changed();
});

function choose(select, value) {
  if (value && ![...select.options].some(option => option.value === value)) select.add(new Option(value));
  select.value = value;
}

// ---- deadlines of a portfolio's jobs, as fields beside its file ------------------------------------------------------
function showJobs() {
  const place = byId("jobs"), lines = byId("f-yaml").value.split("\n");
  place.replaceChildren();
  let name = "";
  lines.forEach((line, at) => {
    name = /^\s*-?\s*name:\s*(.+)$/.exec(line)?.[1] ?? name;
    const found = /^(\s*(?:-\s*)?deadline:\s*)['"]?(\d{4}-\d{2}-\d{2})['"]?(.*)$/.exec(line);
    if (!found || !name) return;
    const label = document.createElement("label"), input = document.createElement("input");
    input.type = "date";
    input.value = found[2];
    label.append(`Deadline of ${name} `, input);
    input.addEventListener("change", () => {
      lines[at] = found[1] + input.value + found[3];
      byId("f-yaml").value = lines.join("\n");
      fromFile();
    });
    place.append(label);
  });
}

// ---- answers ------------------------------------------------------------------------------------------------------
let asking = null;

async function estimate() {
  asking?.abort();
  asking = new AbortController();
  byId("answer").classList.add("old");
  try {
    const response = await fetch("/part/estimate?" + withoutKind(asked()), { signal: asking.signal });
    clearErrors();
    if (!response.ok) { showError(await told(response)); return; }
    put(byId("answer"), await response.text());
    byId("after").hidden = false;
  } catch (error) {
    if (error.name !== "AbortError") byId("e-").textContent = "the server is gone: start planner web again";
  }
}

function put(place, html) {
  place.innerHTML = html;
  if (byId("verdict")) byId("verdict").textContent = place.querySelector(".answer")?.textContent ?? "";
  place.classList.remove("old");
  enhance(place);
}

const amounts = { cost_usd: value => value.toLocaleString("en", { maximumFractionDigits: 0 }) + " USD",
  duration_days: value => value.toFixed(2) + " days", gpus: value => value + " GPUs", energy_kwh: value => Math.round(value).toLocaleString("en") + " kWh" };

function progressText(job) {
  if (job.state === "waiting") return job.waiting_before ? `In line: ${job.waiting_before} before this` : "In line: next";
  const so = job.progress;
  if (!so) return "Searching";
  const show = amounts[so.objective] ?? String, parts = [`${Math.round(100 * so.done)}% of the hardware searched`];
  if (so.value !== null) parts.push("best so far " + show(so.value));
  if (so.bound !== null) parts.push("none below " + show(so.bound));
  return parts.join("; ");
}

async function follow(verb, body, hear) {
  const response = await fetch("/api/jobs", { method: "POST", headers: json, body: JSON.stringify({ verb, question: body, page: true }) });
  if (!response.ok) throw await told(response);
  const job = await response.json();
  hear(job);
  const end = job.state === "done" ? job : await new Promise((ended, lost) => {
    const events = new EventSource(job.events);
    events.addEventListener("progress", event => hear(JSON.parse(event.data)));
    events.addEventListener("ended", event => { events.close(); ended(JSON.parse(event.data)); });
    events.onerror = () => { events.close(); lost({ message: "the server is gone: start planner web again" }); };
  });
  if (end.error) throw end.error;
  return (await fetch(`/api/jobs/${job.id}/page`)).text();
}

let running = null;

async function search() {
  const mine = running = {}, bar = byId("progress"), cancel = byId("cancel");
  clearErrors();
  bar.hidden = cancel.hidden = false;
  byId("answer").classList.add("old");
  try {
    const page = await follow(form.dataset.verb, question(), job => {
      if (running !== mine) return;
      mine.id = job.id;
      bar.querySelector("span").textContent = progressText(job);
      if (job.progress) bar.querySelector("progress").value = job.progress.done; else bar.querySelector("progress").removeAttribute("value");
    });
    if (running !== mine) return;
    put(byId("answer"), page);
    byId("after").hidden = false;
    showKept();
  } catch (error) {
    if (running === mine) showError(error.message ? error : { message: String(error) });
  }
  if (running === mine) bar.hidden = cancel.hidden = true;
}

// ---- tables that sort and filter ---------------------------------------------------------------------------------------
async function fill(place) {
  const response = await fetch(place.dataset.later).catch(() => null);
  if (place.isConnected) place.textContent = response?.ok ? await response.text() : "";
}

function enhance(place) {
  place.querySelectorAll("[data-later]").forEach(fill);
  for (const table of place.querySelectorAll("table.sortable")) {
    const label = document.createElement("label"), filter = document.createElement("input");
    label.append("Only rows with ", filter);
    filter.addEventListener("input", () => {
      for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(filter.value.toLowerCase());
    });
    table.parentElement.before(label);
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => sort(table, head, column));
    });
  }
}

function sort(table, head, column) {
  const down = head.getAttribute("aria-sort") === "ascending", number = head.classList.contains("figure");
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = row => row.cells[column].textContent.trim();
  const rows = [...table.tBodies[0].rows].sort((one, two) => {
    const a = key(one), b = key(two);
    if (!a || !b) return a ? -1 : b ? 1 : 0;
    const order = number ? parseFloat(a.replaceAll(",", "")) - parseFloat(b.replaceAll(",", "")) : a.localeCompare(b);
    return down ? -order : order;
  });
  table.tBodies[0].append(...rows);
}

// ---- two plans side by side -----------------------------------------------------------------------------------------
function showKept() {
  const kept = localStorage.getItem("kept"), link = byId("beside");
  if (!link) return;
  const mine = withoutKind(asked()).toString();
  link.hidden = !kept || kept === mine;
  link.href = "/two?" + new URLSearchParams({ left: kept ?? "", right: mine });
}

async function besides(section) {
  const values = Object.fromEntries(new URLSearchParams(section.dataset.plan)), progress = section.querySelector(".progress");
  try {
    const page = await follow("plan", values, job => { progress.textContent = progressText(job); });
    put(section.querySelector(".answer"), page);
    progress.hidden = true;
  } catch (error) { progress.textContent = error.message ?? String(error); }
}

// ---- what happens when -----------------------------------------------------------------------------------------------
function keepAddress(add) {
  const at = `${form.dataset.page}?${asked()}`;
  if (add) history.pushState(null, "", at); else history.replaceState(null, "", at);
}

function changed() {
  words();
  if ("live" in form.dataset) live();
}
const live = later(120, () => { keepAddress(false); estimate(); });

function slide(range) {
  const input = byId(range.dataset.for);
  input.value = Math.round(2 ** Number(range.value));
}

function showSliders() {
  for (const range of form.querySelectorAll("input[type=range]")) {
    const value = Number(byId(range.dataset.for).value);
    if (value > 0) range.value = Math.log2(value);
  }
}

if (form) {
  showKind();
  showSliders();
  showJobs();
  enhance(byId("answer"));
  if (byId("verdict")) byId("verdict").textContent = byId("answer").querySelector(".answer")?.textContent ?? "";
  form.addEventListener("input", event => {
    if (event.target.type === "range") slide(event.target);
    else if ("yaml" in event.target.dataset) { fromFile(); return; }
    else if (event.target.id.startsWith("f-")) showSliders();
    if (!event.target.closest("#jobs")) changed();
  });
  form.addEventListener("change", event => {
    if (event.target.name === "kind") { showKind(); changed(); }
    if (event.target.name === "scenario" && form.querySelector("[name=yaml]").value) form.querySelector("[name=yaml]").value = "";
  });
  form.addEventListener("submit", event => {
    event.preventDefault();
    keepAddress(true);
    if ("live" in form.dataset) estimate(); else search();
  });
  for (const place of form.querySelectorAll("[data-drop]")) {
    place.addEventListener("dragover", event => event.preventDefault());
    place.addEventListener("drop", async event => {
      const file = event.dataTransfer.files[0];
      if (!file) return;
      event.preventDefault();
      if (file.size > 1 << 20) { showError({ field: place.id.slice(2), message: "a file has at most 1 MiB" }); return; }
      place.value = await file.text();
      if ("yaml" in place.dataset) fromFile(); else changed();
    });
  }
  byId("cancel").addEventListener("click", () => { if (running?.id) fetch("/api/jobs/" + running.id, { method: "DELETE" }); });
  byId("keep")?.addEventListener("click", () => { localStorage.setItem("kept", withoutKind(asked()).toString()); byId("keep").textContent = "Kept"; showKept(); });
  addEventListener("popstate", () => location.reload());
  if ("begin" in form.dataset) search();
  showKept();
}
for (const section of document.querySelectorAll("[data-plan]")) besides(section);
