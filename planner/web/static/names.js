"use strict";
// ---- names of the catalog, searched as they are typed: every word that is there, in any order --------------------------
const MOST_NAMES = 10;

// of a list with commas the last name is the one that is typed
const lastOf = input => /[^,]*$/.exec(input.value)[0].trimStart();

function namesLike(input) {
  const words = lastOf(input).toLowerCase().split(/\s+/).filter(Boolean), squeezed = words.join("-");
  const known = [...byId(input.dataset.list).options].map(one => one.value).filter(name => words.every(word => name.toLowerCase().includes(word)));
  const rank = name => name === squeezed ? 0 : name.toLowerCase().startsWith(squeezed) ? 1 : name.includes("/") ? 3 : 2;
  return known.sort((one, two) => rank(one) - rank(two) || one.length - two.length || one.localeCompare(two)).slice(0, MOST_NAMES);
}

function showNames(input, names) {
  const list = byId(input.getAttribute("aria-controls"));
  list.replaceChildren(...names.map((name, at) => Object.assign(document.createElement("li"), { id: `${list.id}-${at}`, role: "option", textContent: name })));
  for (const one of list.children) one.setAttribute("aria-selected", "false");
  list.hidden = !names.length;
  input.setAttribute("aria-expanded", String(!list.hidden));
  input.removeAttribute("aria-activedescendant");
}

function pointTo(input, by) {
  const options = [...byId(input.getAttribute("aria-controls")).children], was = options.findIndex(one => one.ariaSelected === "true");
  if (!options.length) return;
  const now = options[was < 0 && by < 0 ? options.length - 1 : (was + by + options.length) % options.length];
  for (const one of options) one.setAttribute("aria-selected", String(one === now));
  input.setAttribute("aria-activedescendant", now.id);
  now.scrollIntoView({ block: "nearest" });
}

function takeName(input, name) {
  input.value = input.value.slice(0, input.value.length - lastOf(input).length) + name;
  showNames(input, []);
  input.dispatchEvent(new Event("input", { bubbles: true }));
  showNames(input, []);
}

function enhanceNames(input) {
  const list = byId(input.getAttribute("aria-controls"));
  let fresh = false;
  input.addEventListener("focus", () => { fresh = true; });
  input.addEventListener("click", () => { if (fresh) input.select(); fresh = false; });  // another name replaces what stands there
  input.addEventListener("input", () => {
    fresh = false;
    const names = lastOf(input) ? namesLike(input) : [];
    showNames(input, names.length === 1 && names[0] === lastOf(input) ? [] : names);
  });
  input.addEventListener("blur", () => showNames(input, []));
  input.addEventListener("keydown", event => {
    const at = input.getAttribute("aria-activedescendant");
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (list.hidden) showNames(input, namesLike(input));
      pointTo(input, event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && at) takeName(input, byId(at).textContent);
    else if (event.key === "Escape" && !list.hidden) showNames(input, []);
    else return;
    event.preventDefault();
  });
  list.addEventListener("pointerdown", event => { event.preventDefault(); if (event.target.role === "option") takeName(input, event.target.textContent); });
}
