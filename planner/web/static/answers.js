"use strict";
// ---- answers ------------------------------------------------------------------------------------------------------
let asking = null;

// what is wrong with a question is an answer too, as JSON
const isPage = response => response.headers.get("content-type")?.startsWith("text/html");

async function estimate() {
  asking?.abort();
  asking = new AbortController();
  busy(true);
  try {
    const response = await fetch("/part/estimate?" + withoutKind(asked()), { signal: asking.signal });
    clearErrors();
    if (!isPage(response)) { showError(await inLines(await told(response))); return; }
    put(byId("answer"), await response.text());
    showAfter(true);
  } catch (error) {
    if (error.name !== "AbortError") showError({ message: "the server is gone: start planner web again" });
  }
}

// what can be done with an answer, above it and below
function showAfter(is) {
  for (const part of document.querySelectorAll(".after")) part.hidden = !is;
}

function put(place, html) {
  const folds = [...place.querySelectorAll("details[open] > summary")].map(one => one.textContent);
  place.innerHTML = html;
  for (const head of place.querySelectorAll("details > summary")) if (folds.includes(head.textContent)) head.parentElement.open = true;
  sayVerdict(place.querySelector(".answer"));
  showUsed(place);
  if (place.id === "answer") busy(false);
  enhance(place);
}

// what an estimate is of where nobody said it stands in its field in gray, and there its slider begins
function showUsed(place) {
  const used = JSON.parse(place.querySelector("[data-used]")?.dataset.used ?? "null");
  if (!used || !form) return;
  for (const range of form.querySelectorAll("input[type=range]")) byId(range.dataset.for).placeholder = used[range.dataset.for.slice(2)] ?? "";
  showSliders();
}

// the verdict stands below while the answer is out of sight, so that it is seen as values move
const sight = new IntersectionObserver(seen => { byId("verdict").hidden = seen.at(-1).isIntersecting; });

function sayVerdict(said) {
  sight.disconnect();
  if (!byId("verdict")) return;
  byId("verdict").textContent = said?.textContent ?? "";
  if (said) sight.observe(said);
}

const amounts = { cost_usd: value => value.toLocaleString("en", { maximumFractionDigits: 0 }) + " USD",
  duration_days: value => value.toFixed(2) + " days", gpus: value => value + " GPUs", energy_kwh: value => Math.round(value).toLocaleString("en") + " kWh" };

function progressText(job) {
  if (job.state === "waiting") return job.waiting_before ? `In line: ${job.waiting_before} before this` : "In line: next";
  const so = job.progress;
  if (!so) return "Searching";
  const show = amounts[so.objective] ?? String, best = [];
  if (so.value !== null) best.push("best so far " + show(so.value));
  if (so.bound !== null) best.push("none below " + show(so.bound));
  const now = [so.part, best.join(", ")].filter(Boolean).join(": ");  // a part has its own best
  return [`${Math.round(100 * so.done)}% searched`, now].filter(Boolean).join("; ");
}

async function follow(verb, body, hear) {
  const response = await fetch("/api/jobs", { method: "POST", headers: json, body: JSON.stringify({ verb, question: body, page: true }) });
  const job = await response.json();
  if (job.error && !job.id) throw job.error;
  hear(job);
  const end = job.state === "done" ? job : await new Promise((ended, lost) => {
    const events = new EventSource(job.events);
    events.addEventListener("progress", event => hear(JSON.parse(event.data)));
    events.addEventListener("ended", event => { events.close(); ended(JSON.parse(event.data)); });
    events.onerror = () => { events.close(); lost({ message: "the server is gone: start planner web again" }); };
  });
  if (end.error) throw end.error;
  hear(end);
  return (await fetch(`/api/jobs/${job.id}/page`)).text();
}

// the search that runs, and that which was stopped, whose answer is what is downloaded
let running = null, stopped = "";

function linkTo(said) {
  for (const link of document.querySelectorAll("[data-to]")) {
    const { to, without = "", unless = "" } = link.dataset, values = withoutKind(said);
    for (const name of without.split(" ")) values.delete(name);  // another verb is not told it,
    link.hidden = unless.split(" ").some(name => values.has(name));  // or cannot be
    if (/\.(csv|zip)$/.test(to)) link.parentElement.hidden = !!document.querySelector("#answer [data-nothing]");
    if (stopped && to.startsWith("/download")) values.set("job", stopped);
    link.href = to + "?" + values;
  }
  byId("whole").hidden = Boolean(stopped);
  byId("cut").hidden = !stopped;
}

async function search() {
  const mine = running = {}, bar = byId("progress"), cancel = byId("cancel");
  clearErrors();
  stopped = "";
  bar.hidden = cancel.hidden = cancel.disabled = false;
  busy(true);
  const { top, bottom } = bar.getBoundingClientRect();
  if (top < 0 || bottom > innerHeight) bar.scrollIntoView();  // the answer comes in its place
  try {
    const page = await follow(about.verb, question(), job => {
      if (running !== mine) return;
      mine.id = job.id;
      if (mine.ends) stop();
      if (job.final === false) { stopped = job.id; linkTo(asked()); }
      bar.querySelector("span").textContent = progressText(job);
      if (job.progress) bar.querySelector("progress").value = job.progress.done; else bar.querySelector("progress").removeAttribute("value");
    });
    if (running !== mine) return;
    const before = jobsShown();
    put(byId("answer"), page);
    linkTo(asked());
    showMoved(before);
    showAfter(true);
    showKept();
  } catch (error) {
    if (running === mine) showError(error.message ? await inLines(error) : { message: String(error) });
  }
  if (running === mine) bar.hidden = cancel.hidden = true;
}

// who says so before the server has told which job it is means that one too
function stop() {
  byId("busy").textContent = "Stopping";
  byId("cancel").disabled = true;
  if (running) running.ends = !running.id;
  if (running?.id) fetch("/api/jobs/" + running.id, { method: "DELETE" });
}

// what cannot be made into a file is told here; another page would be left behind
async function save(event) {
  event.preventDefault();
  const link = event.currentTarget, response = await fetch(link.href).catch(() => null), wrong = byId("e-download");
  wrong.textContent = response?.ok ? "" : response ? (await told(response)).message : "the server is gone: start planner web again";
  if (!response?.ok) return;
  const file = document.createElement("a");
  file.href = URL.createObjectURL(await response.blob());
  file.download = /filename="(.+)"/.exec(response.headers.get("content-disposition"))?.[1] ?? "planner";
  file.click();
  setTimeout(() => URL.revokeObjectURL(file.href), 60000);
}

// ---- tables that sort and filter ---------------------------------------------------------------------------------------
let filling = new AbortController();

async function fill(place) {
  const text = await fetch(place.dataset.later, { signal: filling.signal }).then(response => isPage(response) ? response.text() : "").catch(() => "");
  if (place.isConnected) place.innerHTML = text;
}

// a table that is wider than a phone stands there row by row, each figure with its head
const phone = matchMedia("(max-width: 760px)");

function stack(place) {
  if (phone.matches) for (const wide of place.querySelectorAll(".wide")) {
    const table = wide.querySelector("table:not(.stacked)");
    if (!table || wide.scrollWidth <= wide.clientWidth + 1) continue;
    const [heads, ...rows] = table.rows;
    heads.className = "heads";
    for (const row of rows) [...row.cells].forEach((cell, at) => { cell.dataset.head = heads.cells[at]?.textContent ?? ""; });
    for (const [role, parts] of [["table", [table]], ["row", table.rows], ["columnheader", heads.cells], ["cell", table.querySelectorAll("td")]]) {
      for (const part of parts) part.setAttribute("role", role);  // which it is not by its look
    }
    for (const group of table.querySelectorAll("thead, tbody")) group.setAttribute("role", "rowgroup");
    table.classList.add("stacked");
  }
}
phone.addEventListener("change", () => stack(document));
document.addEventListener("toggle", event => stack(event.target), true);

// what is told beside an answer that is gone is not waited for
function enhance(place) {
  stack(place);
  filling.abort();
  filling = new AbortController();
  place.querySelectorAll("[data-later]").forEach(fill);
  for (const fold of place.querySelectorAll("details[data-more]")) fold.addEventListener("toggle", async () => {
    const response = await fetch(fold.dataset.more).catch(() => null);
    fold.querySelector("p").outerHTML = response && isPage(response) ? await response.text() : "<p>The server did not answer.</p>";
  }, { once: true });
  const timeline = form && place.querySelector("svg[data-start]");
  if (timeline) enhanceTimeline(timeline);
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

// what a figure is in its unit's base: 764 ms p95 is less than 1.47 s p95
const bases = { us: 1e-6, ms: 1e-3, min: 60, h: 3600, d: 86400, days: 86400, MUSD: 1e6, MWh: 1e3, GWh: 1e6 };
const amount = text => { const [number, unit] = text.replaceAll(",", "").split(" "); return parseFloat(number) * (bases[unit] ?? 1); };

function sort(table, head, column) {
  const down = head.getAttribute("aria-sort") === "ascending", number = head.classList.contains("figure");
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = row => row.cells[column].textContent.trim();
  const rows = [...table.tBodies[0].rows].sort((one, two) => {
    const a = key(one), b = key(two);
    if (!a || !b) return a ? -1 : b ? 1 : 0;
    const order = number ? amount(a) - amount(b) : a.localeCompare(b);
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
  byId("keep").textContent = kept === mine ? "Kept" : "Keep, to compare with another plan";
  byId("kept").textContent = kept === mine ? "Change the question and press Plan: both stand side by side." : "";
  link.href = "/two?" + new URLSearchParams({ left: kept ?? "", right: mine });
}

async function besides(section) {
  const values = Object.fromEntries(new URLSearchParams(section.dataset.plan)), progress = section.querySelector(".progress");
  try {
    const page = await follow("plan", values, job => { progress.textContent = progressText(job); });
    put(section.querySelector(".answer"), page);
    progress.hidden = true;
    showDiffering();
  } catch (error) { progress.textContent = error.message ?? String(error); }
}

// facts of both plans that are not the same
function showDiffering() {
  const sides = [...document.querySelectorAll("[data-plan]")].map(section => section.querySelector(".answer"));
  if (!sides.every(side => side.firstChild)) return;
  const facts = sides.map(side => new Map([["answer", side.querySelector(".answer")?.textContent ?? ""],
    ...[...side.querySelectorAll("#plan dt")].map(head => [head.textContent, head.nextElementSibling.textContent])]));
  const names = [...new Set(facts.flatMap(side => [...side.keys()]))].filter(name => facts[0].get(name) !== facts[1].get(name));
  const rows = names.map(name => [name, ...facts.map(side => side.get(name) ?? "")]);
  byId("differ").replaceChildren(...(rows.length ? rows : [["Nothing: both are the same plan", "", ""]]).map(texts => {
    const row = document.createElement("tr");
    row.append(...texts.map(text => Object.assign(document.createElement("td"), { textContent: text })));
    return row;
  }));
  byId("differ").closest("table").classList.remove("stacked");
  stack(document);
}
