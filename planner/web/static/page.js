"use strict";
// A question is a form, a file and the address; whichever changes, the others follow. No answer is made here.
const byId = id => document.getElementById(id);
const form = byId("question");
// what the page says of itself: not on the form, whose properties its fields hide (one is called dataset)
const about = byId("ask")?.dataset ?? {};
const json = { "content-type": "application/json" };

function later(wait, does) {
  let timer;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => does(...given), wait); };
}

// ---- the question -------------------------------------------------------------------------------------------------
const fieldsOf = of => [...of.querySelectorAll("[data-forms].field")].sort((one, two) => one.dataset.at - two.dataset.at);
const shown = new Map();  // form -> the kind of work whose fields it shows

// each kind of work has its fields, its methods and its models; what it leaves out is not asked
function showKind(of = form) {
  const kind = of.querySelector("[name=kind]:checked");
  if (!kind) return;
  const has = (one, key) => one.dataset[key].split(" ").includes(kind.value), all = fieldsOf(of);
  for (const field of all) {
    field.hidden = !has(field, "forms");
    for (const input of field.querySelectorAll("input, select")) input.disabled = field.hidden;
  }
  if (kind.value !== shown.get(of)) for (const field of all) of.querySelector(has(field, "usual") ? ".fields" : ".more .fields").append(field);
  shown.set(of, kind.value);
  const method = of.querySelector("#f-method"), largest = of.querySelector("#f-largest");
  for (const select of [method, largest]) for (const option of select?.options ?? []) {
    option.hidden = option.disabled = option.value ? option.dataset.forms !== undefined && !has(option, "forms") : select === method && !("blank" in kind.dataset);
  }
  if (largest?.selectedOptions[0]?.disabled) largest.value = "";
  if (method && !method.disabled && method.selectedOptions[0]?.disabled) method.value = JSON.parse(kind.dataset.start).method;
  of.querySelector("#f-model")?.setAttribute("data-list", kind.dataset.models);
  showModel();
}

// the model of a pasted config has no name to be chosen
function showModel() {
  const model = byId("f-model"), own = byId("f-config");
  if (!model || !own) return;
  model.disabled = Boolean(own.value.trim());
  model.placeholder = model.disabled ? "the one of the config below" : "";
  if (model.disabled) model.value = "";
}

const knows = (list, name) => [...byId(list).options].some(one => one.value.toLowerCase() === name.trim().toLowerCase());
const beginsWith = kind => JSON.parse(form.querySelector(`[name=kind][value=${kind}]`).dataset.start);

// another kind of work begins with what it needs, where nothing of it is said: what the kind before began with goes
const typed = new Set();
function startKind(of = form) {
  const kind = of.querySelector("[name=kind]:checked"), model = byId("f-model");
  const foreign = knows(kind.dataset.models === "models" ? "diffusion" : "models", model.value) && !knows(kind.dataset.models, model.value);
  for (const name of ["layout", "stack"]) if (byId("f-" + name)) byId("f-" + name).value = "";  // of the kind before
  if ("live" in about) {
    const start = beginsWith(kind.value), before = shown.has(of) ? beginsWith(shown.get(of)) : {};
    for (const name of new Set([...Object.keys(before), ...Object.keys(start)])) {
      const input = byId("f-" + name), place = foreign && (name === "model" || name === "node");
      if (!input.value || place || (input.value === before[name] && !typed.has(name))) input.value = start[name] ?? "";
    }
  } else if (foreign) model.value = "";
}

// a model of another kind of work says which one is meant
const LIKE = { training: "diffusion", preferences: "diffusion", posttraining: "diffusion", serving: "generation", diffusion: "training", generation: "serving" };
function followModel(model, of = form) {
  const kind = of.querySelector("[name=kind]:checked");
  if (!kind || knows(kind.dataset.models, model.value) || !["models", "diffusion"].some(list => knows(list, model.value))) return;
  of.querySelector(`[name=kind][value=${LIKE[kind.value]}]`).checked = true;
  startKind(of);
  showKind(of);
}

function asked() {
  const said = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value instanceof File) continue;
    const text = name === "yaml" || name === "from_" ? value : name === "config" ? compact(value) : value.trim();
    if (text && !(name === "kind" && text === "training")) said.append(name, text);
  }
  if (said.has("config")) said.delete("model");
  if (said.has("from_") && !said.get("from_").trim()) said.delete("from_");
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

// an answer that is being replaced is not taken for the new one
function busy(is) {
  byId("busy").textContent = is ? "Answering" : "";
  byId("answer").setAttribute("aria-busy", is);
  byId("answer").classList.toggle("old", is);
}

async function writeWords() {
  const said = asked();
  linkTo(said);
  const written = byId("f-yaml").value;  // its comments stay
  const response = await fetch(`/words/${about.verb}?${said}`, { method: "POST", headers: json, body: JSON.stringify({ written }) }).catch(() => null);
  const { yaml, command, python } = response?.ok ? await response.json() : {};
  if (command === undefined) return;
  byId("as-command").value = command;
  byId("as-python").value = python;
  if (document.activeElement === byId("f-yaml") || said.toString() === asWritten) return;  // as somebody wrote it
  byId("f-yaml").value = yaml;
  await showJobs();
}
const words = later(250, writeWords);

function withoutKind(said) {
  const rest = new URLSearchParams(said);
  rest.delete("kind");
  return rest;
}

// what a file says is in the fields; those that a config leaves open keep only where it is to run
let unread = null, reading = null, asWritten = null;
const soon = later(300, place => { if (unread) reading = readFile(place); });

function fromFile(place) {
  unread = place ?? byId("f-yaml");
  soon(place);
}

async function readFile(place) {
  unread = null;
  const yaml = (place ?? byId("f-yaml")).value, name = place?.name || "yaml";
  const said = yaml.trim() ? await (await fetch("/fields", { method: "POST", headers: json, body: JSON.stringify({ yaml, as: name }) })).json() : { fields: {} };
  clearErrors();
  const wrong = said.error && { ...said.error, field: name };
  if (wrong) { ("live" in about ? showError : markWrong)(wrong); return wrong; }
  const { kind, fields: values } = said;
  if (name === "from_" || values.from_) for (const one of ["node", "nodes", "gpus", "on"]) values[one] = byId("f-" + one)?.value ?? "";
  const radio = kind && form.querySelector(`[name=kind][value=${kind}]`);
  if (radio) radio.checked = true;
  if (values.from_) byId("have").open = true;
  for (const input of form.querySelectorAll(".field [name], [name=yaml], [name=from_]")) setValue(input, values[input.name] ?? "");
  asWritten = asked().toString();
  showKind();
  unfold();
  showJobs();
  changed();
  return null;
}

// what says something is not folded
function unfold(of = form) {
  for (const field of of.querySelectorAll(".more .field")) {
    if (!field.hidden && [...field.querySelectorAll("[name]")].some(one => one.type === "checkbox" ? one.checked : one.value)) of.querySelector(".fields").append(field);
  }
}

function setValue(input, value) {
  if (input.type === "checkbox") input.checked = value === "true";
  else if (input.tagName === "SELECT") choose(input, value);
  else input.value = value;
}

function choose(select, value) {
  if (value && ![...select.options].some(option => option.value === value)) select.add(new Option(value));
  select.value = value;
}

// ---- what happens when -----------------------------------------------------------------------------------------------
function keepAddress(add) {
  const at = `${about.page}?${asked()}`;
  if (add) history.pushState(null, "", at); else history.replaceState(null, "", at);
}

function changed() {
  stopped = "";
  words();
  if ("live" in about) live(); else check();
}
const check = later(500, checkWritten);
const live = later(120, () => { keepAddress(false); estimate(); });

// the answer goes with a slider while it moves: what was asked comes first, then the place where it is now
let follows = false, moved = false;
async function slid() {
  words();
  moved = true;
  if (follows) return;
  follows = true;
  while (moved) { moved = false; await estimate(); }
  follows = false;
  keepAddress(false);
}

function slide(range) {
  const input = byId(range.dataset.for);
  const power = Math.floor(range.value);
  input.value = Math.round(2 ** power * (range.value > power ? 1.5 : 1));
}

// what a kind of work begins with gives way to what somebody says in its stead: a service has one load
const LOADS = ["rate", "users", "concurrency"];
function giveWay(input) {
  const kind = form.querySelector("[name=kind]:checked"), start = kind ? JSON.parse(kind.dataset.start) : {};
  if (!LOADS.includes(input.name) || !input.value.trim()) return;
  for (const name of LOADS) if (name !== input.name && name in start && byId("f-" + name).value === start[name]) byId("f-" + name).value = "";
}

function showSliders() {
  for (const range of form.querySelectorAll("input[type=range]")) {
    const input = byId(range.dataset.for), value = Number(input.value || input.placeholder);
    if (value > 0 && range !== document.activeElement) range.value = Math.log2(value);
  }
}

if (form) {
  const kind = form.querySelector("[name=kind]:checked");
  if (kind) shown.set(form, kind.value);
  showKind();
  document.querySelectorAll("[data-list]").forEach(enhanceNames);
  if (editor) enhanceEditor();
  showUsed(byId("answer"));
  showSliders();
  if (editor) listJobs(JSON.parse(byId("asked-jobs").dataset.listed));
  linkTo(asked());
  enhance(byId("answer"));
  sayVerdict(byId("answer").querySelector(".answer"));
  form.addEventListener("input", event => {
    if (event.target.type === "file") return;  // what it holds is read first
    if (event.target.type === "range") { slide(event.target); typed.add(event.target.dataset.for.slice(2)); giveWay(byId(event.target.dataset.for)); slid(); return; }
    else if ("drop" in event.target.dataset && movedConfig(event.target)) return;
    else if ("yaml" in event.target.dataset) { fromFile(); return; }
    else if ("config" in event.target.dataset) { fromFile(event.target); return; }
    else if (event.target.id.startsWith("f-")) showSliders();
    if (event.target.id === "f-config") showModel();
    typed.add(event.target.name);
    if (event.target.id === "f-model") followModel(event.target);
    giveWay(event.target);
    changed();
  });
  form.addEventListener("change", event => {
    if (event.target.name === "kind") { startKind(); showKind(); changed(); }
    if (event.target.name === "scenario") form.querySelector("[name=yaml]").value = byId("f-yaml").value = "";
  });
  form.addEventListener("submit", async event => {
    event.preventDefault();
    if (unread) reading = readFile(unread);
    const wrong = await reading;  // what was just written is what is asked
    if (wrong) { showError(wrong); return; }
    await lastChange;
    keepAddress(true);
    words();
    if ("live" in about) estimate(); else search();
  });
  takeFiles();
  byId("cancel").addEventListener("click", stop);
  byId("copy").addEventListener("click", async () => {
    byId("copy").textContent = await navigator.clipboard?.writeText(location.href).then(() => "Copied", () => null) ?? location.href;
  });
  for (const link of document.querySelectorAll("[data-to^='/download']")) link.addEventListener("click", save);
  byId("keep")?.addEventListener("click", () => { localStorage.setItem("kept", withoutKind(asked()).toString()); showKept(); });
  addEventListener("popstate", () => location.reload());
  if (about.wrong) showError(JSON.parse(about.wrong));
  if ("begin" in about) search();
  showKept();
}
for (const section of document.querySelectorAll("[data-plan]")) besides(section);
stack(document);
