"use strict";
// ---- jobs of a portfolio: a form for each, put into its file -----------------------------------------------------------
const editor = document.getElementById("job");
let planned = [], changing = null;  // the jobs of the file; the place of the one that is changed, none of a new one

// the file is what was written, or the scenario that was chosen: what the fields below say stays with them
let lastChange = Promise.resolve();
const fileWith = change => lastChange = lastChange.then(() => sendChange(change));  // each is of the file that the one before it left

async function sendChange(change) {
  const hidden = form.querySelector("[name=yaml]"), said = { yaml: hidden.value, scenario: hidden.value ? "" : byId("f-scenario").value, ...change };
  const response = await fetch("/jobs", { method: "POST", headers: json, body: JSON.stringify(said) }).catch(() => null);
  const told = response?.ok ? await response.json() : { error: { message: "the server is gone: start planner web again" } };
  if (told.error || !Object.keys(change).length) return told;
  byId("f-yaml").value = hidden.value = told.yaml;
  byId("f-scenario").value = "";
  listJobs(told);
  changed();
  return told;
}

async function showJobs() {
  if (editor) listJobs(await fileWith({}));
}

function listJobs({ jobs = [], horizon = {} }) {
  planned = jobs;
  byId("asked-jobs").replaceChildren(...jobs.map(({ fields, work }, at) => {
    const row = byId("row").content.querySelector("li").cloneNode(true), label = row.querySelector("label"), input = label.querySelector("input");
    row.querySelector("strong").textContent = label.querySelector("span").textContent = fields.name;
    row.querySelector("strong + span").textContent = work;
    if (!fields.deadline) label.remove();
    else {
      const day = /^\d{4}-\d\d-\d\d/.exec(fields.deadline);
      if (day) input.value = day[0];
      else { input.removeAttribute("type"); input.value = fields.deadline; }
      input.addEventListener("change", () => { if (input.value) moveDeadline(fields.name, input.value, false); });
    }
    const act = (button, does) => {
      button.setAttribute("aria-label", `${button.textContent} ${fields.name}`);
      button.addEventListener("click", does);
    };
    const [change, remove] = row.querySelectorAll("button");
    act(change, () => edit(at));
    act(remove, async () => { const told = await fileWith({ remove: at }); if (told.error) showError(told.error); leave(); });
    return row;
  }));
  for (const key of ["start", "length"]) byId("f-" + key).value = horizon[key]?.slice(0, key === "start" ? 10 : undefined) ?? "";
}

async function moveDeadline(job, day, search) {
  const told = await fileWith({ job, day });
  if (told.error) { showError(told.error); return; }
  if (search) form.requestSubmit();
}

function edit(at) {
  const { kind, fields } = planned[at];
  begin();
  changing = at;
  editor.querySelector(`[name=kind][value=${kind}]`).checked = true;
  showKind(editor);
  for (const input of editor.querySelectorAll(".field [name], [name=yaml]")) setValue(input, fields[input.name] ?? "");
  unfold(editor);
  byId("editor").open = true;
  sayEditor();
  byId("f-name").focus();
}

function sayEditor() {
  const name = changing === null ? "" : planned[changing]?.fields.name;
  byId("editor").querySelector("summary").textContent = name ? `Change ${name}` : "Add a job";
  editor.querySelector("[type=submit]").textContent = name ? `Change ${name}` : "Add this job";
}

const leave = () => editor.reset();

// what the browser has emptied begins again
function begin() {
  changing = null;
  editor.querySelector("[name=yaml]").value = "";
  clearErrors(editor);
  showKind(editor);
  sayEditor();
}

function enhanceEditor() {
  editor.addEventListener("change", event => { if (event.target.name === "kind") { startKind(editor); showKind(editor); } });
  editor.addEventListener("input", event => { if (event.target.id === "f-model") followModel(event.target, editor); });
  editor.addEventListener("reset", () => queueMicrotask(begin));
  showKind(editor);
  editor.addEventListener("submit", async event => {
    event.preventDefault();
    clearErrors(editor);
    const put = Object.fromEntries([...new FormData(editor)].filter(([, value]) => typeof value === "string" && value.trim()));
    const { error, jobs } = await fileWith({ put, ...changing === null ? {} : { at: changing } });
    if (error) { markWrong({ ...error, field: byId("e-" + error.field) ? error.field : "job" }); return; }
    const done = put.name || jobs.at(changing ?? -1).fields.name;
    leave();
    byId("f-name").focus();
    byId("said").textContent = `${done} is in the list`;
  });
  for (const key of ["start", "length"]) byId("f-" + key).addEventListener("change", async event => {
    const { error } = await fileWith({ horizon: { [key]: event.target.value } });
    if (error) showError(error);
  });
}
