"""The page of a launch folder: what to install, what to fill in, how to start, what to expect, and how to report."""

from __future__ import annotations

from collections.abc import Iterator

from planner.answer.assignment import Assignment, DiffusionAssignment, TrainingAssignment
from planner.answer.level import ServingFigures
from planner.catalog.load import Catalog
from planner.catalog.releases import Target
from planner.launch.given import Given, started_by
from planner.launch.nearest import held_to
from planner.launch.program import INSTALL, VARIABLES, Program, Start
from planner.launch.replicas import nodes_of
from planner.launch.title import title
from planner.render.layout_text import axes
from planner.units import plural, show_bytes, show_days, show_seconds

MEDIA = ("diffusion", "generation")
"""Work whose runs are held against the plan by their rows alone; no constants are fitted to them."""


def readme(given: Given, program: Program, job: Start, release: Target, catalog: Catalog) -> str:
    """Return the page as Markdown."""
    placed = given.placed
    lines = [f"# {title(placed)}: {program.target} on {plural(nodes_of(program), 'node')} of "
             f"{', '.join(dict.fromkeys(one.node for one in given.every))}", "",
             f"Written by `planner launch` for {release.package} {release.release} (as of {release.as_of}), to be "
             f"started by `{job.start}`. `planner launch --check .` has the stack's own parser read the files again.",
             "",
             *(f"Layout{_of(one)}: {axes(one)}." for one in given.every), "", *_unfit(given),
             *_install(release, program), *_variables(job),
             "## Start", "", "```bash", job.start, "```", "",
             "## Expect", "", *(f"- {line}" for one in given.every
                                for line in _expected(one, program, catalog)), "",
             *([] if _embeds(placed) else _back(program, job, release))]
    notes = [*program.notes, *job.notes]
    return "\n".join([*lines, "## Notes", "", *(f"- {note}" for note in notes)] if notes else lines).rstrip() + "\n"


def _of(placed: Assignment) -> str:
    """Return which replicas are meant, where those of a plan differ in what they do."""
    role = placed.serving.role if placed.serving is not None else "whole"
    return "" if role == "whole" else f" of {role}"


def unfit(given: Given) -> Iterator[str]:
    """Yield what of a plan is out of memory before it has begun."""
    for one in given.every:
        if not one.fits:
            needed = one.memory.peak_bytes - one.memory.components.reserve
            yield (f"the plan{_of(one)} does not fit: it needs {show_bytes(needed)} of a GPU's "
                   f"{show_bytes(one.memory.usable_bytes)}, and will be out of memory")


def _unfit(given: Given) -> list[str]:
    return [line for one in unfit(given) for line in (f"**Before you start:** {one}.", "")]


def _install(release: Target, program: Program) -> list[str]:
    image = [] if not release.image else [
        f"Or run in the image `{release.image}`" + (
            ", which has it." if release.complete else f", where the job runs `{INSTALL}` first."), ""]
    return ["## Install", "", f"`bash {INSTALL}` on every node, or once where nodes share an environment, runs:", "",
            "```bash", *release.install, *program.install, "```", "", *image]


def _variables(job: Start) -> list[str]:
    rows = [f"| `{one.name}` | `{one.default or ' '}` | {one.meaning} |" for one in job.variables]
    return ["## Fill in", "", f"Every variable is in `{VARIABLES}`; a value in the environment that the scripts run in "
            "goes before it. A first start needs no more than those without a default, and HF_TOKEN where a model is "
            "gated.", "",
            "| variable | default | what |", "|---|---|---|", *rows, ""]


def _expected(placed: Assignment, program: Program, catalog: Catalog) -> Iterator[str]:
    time, memory, serving = placed.time, placed.memory, placed.serving
    low, high = time.interval90_seconds
    if serving is not None and serving.made is not None:
        made = serving.made
        yield (f"{plural(serving.replicas, 'replica')} of {placed.node}: {made.resolution}, {made.steps} steps"
               f"{' of two passes' if made.passes > 1 else ''}, {made.batch} in a call")
        yield (f"{show_seconds(made.seconds_each)} each; {serving.requests_per_second:.4g} {made.noun}/s in all")
    elif serving is not None:
        yield from _answered(placed, serving)
        if serving.max_model_len is not None:
            yield (f"prompt and answer together at most {serving.max_model_len:,} tokens, the longest request of the "
                   "question: what is longer is refused")
    if isinstance(placed, DiffusionAssignment):
        yield f"speed: {placed.samples_per_second:.4g} {placed.noun}s/s"
    prefills = serving is not None and serving.role == "prefill"
    what = "step" if serving is None or _embeds(placed) else "call" if serving.made is not None else (
        "prefill step" if prefills else "decode step")
    yield f"{what}: {show_seconds(time.step_seconds)}, 90% interval {show_seconds(low)} to {show_seconds(high)}"
    if time.tokens_per_second_per_gpu and not prefills and not isinstance(placed, DiffusionAssignment):
        yield f"speed: {time.tokens_per_second_per_gpu:,.0f} tokens/s/GPU" + (
            "" if serving else f", MFU {time.mfu:.1%}")
    spread = memory.interval90_bytes
    between = f", 90% interval {show_bytes(spread[0])} to {show_bytes(spread[1])}" if spread else ""
    yield (f"memory of the fullest GPU: {show_bytes(memory.peak_bytes - memory.components.reserve)}{between}; usable "
           f"{show_bytes(memory.usable_bytes)}")
    if isinstance(placed, TrainingAssignment | DiffusionAssignment) and time.steps:
        days = f" in {show_days(placed.duration_days)}" if placed.duration_days else ""
        yield f"run: {time.steps:,} steps{days}"
    if placed.duration_days is None and isinstance(placed, TrainingAssignment) and placed.asked is None:
        yield "of an estimate that does not state its optimizer, loss and packing: the files have the usual ones"
    if program.target not in catalog.releases.of_stack(stack := started_by(placed)):
        held = held_to(program.target, catalog)
        yield f"these figures are of {stack}" + (f"; for those of {program.target}, plan with {held}" if held else "")


def _answered(placed: Assignment, serving: ServingFigures) -> Iterator[str]:
    """Yield what a replica answers, and how fast: with vectors at once, with tokens one after another."""
    kind = "replica" if serving.role == "whole" else f"{serving.role} replica"
    first, each = serving.ttft_seconds, serving.tpot_seconds
    each_takes = (f"TTFT {show_seconds(first.p50)} and TPOT {show_seconds(each.p50)} at p50, {show_seconds(first.p95)} "
                  f"and {show_seconds(each.p95)} at p95" if serving.writes else
                  f"answered in {show_seconds(first.p50)} at p50, {show_seconds(first.p95)} at p95")
    yield (f"{plural(serving.replicas, kind)} of {placed.node}: {serving.requests_per_second:.4g} requests/s, "
           f"{each_takes}")
    if serving.kv_tokens:
        yield f"key-value cache: {serving.kv_tokens:,} tokens of a replica"


def _embeds(placed: Assignment) -> bool:
    """Say whether requests are answered with vectors, of which no run that comes back tells."""
    return placed.serving is not None and placed.serving.made is None and not placed.serving.writes


def _back(program: Program, job: Start, release: Target) -> list[str]:
    if release.work in MEDIA:
        return ["## And back", "", "Predicted against measured:", "", "```bash", f"planner validate {program.feedback}",
                "```", ""] if program.feedback else []
    log = program.feedback if program.serves and program.feedback else "bench.json" if program.serves else job.log
    first = ["bash bench.sh  # or, from elsewhere: bash bench.sh HOST"] if program.serves and program.feedback else [
        job.gather] if job.gather and not program.serves else []
    return ["## And back", "", "Predicted against measured, from the log of a run beside this folder's plan.json; with "
            "several runs, constants fitted to your cluster:", "", "```bash", *first, f"planner validate {log}",
            f"planner calibrate {log} -o my-cluster", "```", ""]
