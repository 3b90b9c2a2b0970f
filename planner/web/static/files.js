"use strict";
// ---- files: chosen, or dropped anywhere on the page -----------------------------------------------------------------
// what is dropped beside its place is the config of a model, or else a question
function placeOf(text) {
  try { return "model_type" in JSON.parse(text) && byId("f-config") || byId("f-yaml"); } catch { return byId("f-yaml"); }
}

// wherever the config of a model is put, it is moved to where models are given
function movedConfig(place) {
  const own = byId("f-config");
  if (place === own || placeOf(place.value) !== own) return false;
  own.value = place.value;
  place.value = "";
  own.closest("details").open = true;
  own.focus();
  showModel();
  changed();
  return true;
}

// a file is read into its place, and where it is large kept by the server under a name that the question has
async function take(file, into) {
  if (file.size > 1 << 20) { showError({ field: into?.id.slice(2) ?? "", message: "a file has at most 1 MiB here" }); return; }
  const text = await file.text(), place = into ?? placeOf(text);
  place.closest("details").open = true;
  place.value = text;
  if (movedConfig(place)) return;
  if ("yaml" in place.dataset) fromFile(); else if ("config" in place.dataset) fromFile(place); else { showModel(); changed(); }
}

async function upload(file, place) {
  const send = () => fetch("/api/files?" + new URLSearchParams({ name: file.name, page: true }), { method: "POST", headers: { "content-type": "application/octet-stream" }, body: file });
  const said = file.size > 16 << 20 ? { error: { message: "a file has at most 16 MiB: use the command line for it" } } :
    await send().then(response => response.json()).catch(() => ({ error: { message: "the server is gone: start planner web again" } }));
  clearErrors();
  if (said.error) { showError({ ...said.error, field: place.id.slice(2) }); return; }
  place.value = said.file;
  changed();
}

function takeFiles() {
  const takesItself = event => event.target.type === "file";
  addEventListener("dragover", event => { if (!takesItself(event)) event.preventDefault(); });
  addEventListener("drop", event => {
    if (!event.dataTransfer.files[0] || takesItself(event)) return;
    event.preventDefault();  // the page would be left for the file
    take(event.dataTransfer.files[0], event.target.closest("[data-drop]"));
  });
  for (const pick of form.querySelectorAll("[data-into]")) pick.addEventListener("change", () => { if (pick.files[0]) take(pick.files[0], byId(pick.dataset.into)); });
  for (const pick of form.querySelectorAll("[data-upload]")) pick.addEventListener("change", () => { if (pick.files[0]) upload(pick.files[0], byId(pick.dataset.upload)); });
}
