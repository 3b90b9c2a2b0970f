"use strict";
// ---- a portfolio's timeline: deadlines are marks that move, and what they move stands below ---------------------------
const DAY = 86400000, dayOf = time => new Date(time).toISOString().slice(0, 10), timeOf = text => Date.parse(text.slice(0, 10) + "T00:00Z");

// the schedule that stands here: what it says, and of every job its hardware, dates and work
function jobsShown() {
  const rows = [...byId("answer").querySelectorAll("#jobs tr")].slice(1).map(row => [...row.cells].map(cell => cell.textContent));
  return { said: byId("answer").querySelector(".answer")?.textContent, jobs: new Map(rows.map(([job, on, , ...when]) => [job, [on, ...when].filter(Boolean).join(", ")])) };
}

// what became of the schedule that stood here before
function showMoved(before) {
  const now = jobsShown(), rows = [["answer", before.said, now.said]];
  if (!before.jobs.size || !now.jobs.size) return;
  for (const job of new Set([...before.jobs.keys(), ...now.jobs.keys()])) rows.push([job, before.jobs.get(job) ?? "", now.jobs.get(job) ?? ""]);
  const section = document.createElement("section"), head = document.createElement("h2"), wide = document.createElement("div"), table = document.createElement("table");
  const row = (kind, texts) => { const made = document.createElement("tr"); made.append(...texts.map(text => Object.assign(document.createElement(kind), { textContent: text }))); return made; };
  section.id = "moved";
  head.textContent = "Before and after";
  wide.className = "wide";
  wide.tabIndex = 0;
  wide.setAttribute("role", "group");
  wide.setAttribute("aria-label", head.textContent);
  const moved = rows.filter(([, one, other]) => one !== other);
  table.append(...moved.length ? [row("th", ["", "before", "now"]), ...moved.map(texts => row("td", texts))] : [row("td", ["Nothing moves: the answer is the same"])]);
  wide.append(table);
  section.append(head, wide);
  byId("answer").querySelector("header").after(section);
}

let atHand = null;  // the job whose deadline was moved last: its mark is at hand again in the new timeline

function enhanceTimeline(svg) {
  const wide = svg.viewBox.baseVal.width, left = Number(svg.dataset.left), right = wide - svg.dataset.right;
  const start = Date.parse(svg.dataset.start + "Z"), per = (Date.parse(svg.dataset.end + "Z") - start) / (right - left);
  const said = document.createElement("p"), marks = svg.querySelectorAll(".due");
  if (!marks.length) return;
  said.className = "muted";
  said.setAttribute("role", "status");
  said.textContent = "Drag a deadline, or move it by the arrow keys and press Enter: the plan is made again.";
  (svg.closest(".wide") ?? svg).after(said);
  for (const mark of marks) {
    const { job, day } = mark.dataset, was = timeOf(day);
    let now = was, from = null;
    const show = () => {
      mark.setAttribute("transform", `translate(${(now - was) / per} 0)`);
      mark.setAttribute("aria-valuenow", Math.round((now - start) / DAY));
      mark.setAttribute("aria-valuetext", dayOf(now));
      if (now !== was) said.textContent = `Deadline of ${job}: ${dayOf(now)} instead of ${day}`;
    };
    const done = () => { if (now !== was) { atHand = job; moveDeadline(job, dayOf(now), true); } };
    mark.setAttribute("role", "slider");
    mark.setAttribute("tabindex", 0);
    mark.setAttribute("aria-label", `Move ${job}'s deadline`);
    mark.setAttribute("aria-valuemin", 0);
    mark.setAttribute("aria-valuemax", Math.round((Date.parse(svg.dataset.end + "Z") - start) / DAY));
    show();
    if (job === atHand) mark.focus({ preventScroll: true });
    mark.addEventListener("pointerdown", event => { mark.setPointerCapture(event.pointerId); from = event.clientX; event.preventDefault(); });
    mark.addEventListener("pointermove", event => {
      if (from === null) return;
      const moved = (event.clientX - from) * wide / svg.getBoundingClientRect().width * per;
      now = Math.max(start + DAY, was + Math.round(moved / DAY) * DAY);
      show();
    });
    mark.addEventListener("pointerup", () => { from = null; done(); });
    mark.addEventListener("keydown", event => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -7, PageUp: 7 }[event.key];
      if (event.key === "Enter") done();
      else if (event.key === "Escape") now = was;
      else if (by) now = Math.max(start + DAY, now + by * DAY);
      else return;
      event.preventDefault();
      show();
    });
  }
  atHand = null;
}
