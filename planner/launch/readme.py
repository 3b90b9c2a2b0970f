"""The page of a launch folder: what to install, what to fill in, how to start, what to expect, and how to report."""

from __future__ import annotations

from collections.abc import Iterator

from planner.answer.assignment import Assignment, TrainingAssignment
from planner.catalog.load import Catalog
from planner.catalog.releases import Target
from planner.launch.program import VARIABLES, Job, Program
from planner.render.layout_text import axes
from planner.units import plural, show_bytes, show_seconds


def readme(placed: Assignment, program: Program, job: Job, release: Target, scheduler: str, catalog: Catalog) -> str:
    """Return the page as Markdown."""
    lines = [f"# {placed.workload}: {program.target} on {plural(program.nodes, 'node')} of {placed.node}", "",
             f"Written by `planner launch` for {release.package} {release.release} (as of {release.as_of}), to be "
             f"started by {scheduler}. `planner launch --check .` has the stack's own parser read the files again.", "",
             f"Layout: {axes(placed)}.", "", *_install(release), *_variables(job), "## Start", "", "```bash",
             job.start, "```", "", *_expect(placed, program, catalog), *_back(placed, program)]
    notes = [*program.notes, *job.notes]
    return "\n".join([*lines, "## Notes", "", *(f"- {note}" for note in notes)] if notes else lines).rstrip() + "\n"


def _install(release: Target) -> list[str]:
    image = [f"Or run in the image `{release.image}`.", ""] if release.image else []
    return ["## Install", "", "```bash", *release.install, "```", "", *image]


def _variables(job: Job) -> list[str]:
    rows = [f"| `{one.name}` | `{one.default or ' '}` | {one.meaning} |" for one in job.variables]
    return ["## Fill in", "", f"Every variable is in `{VARIABLES}`; a value in the environment goes before it. With "
            "the defaults, a first start needs nothing.", "",
            "| variable | default | what |", "|---|---|---|", *rows, ""]


def _expect(placed: Assignment, program: Program, catalog: Catalog) -> list[str]:
    return ["## Expect", "", *(f"- {line}" for line in _expected(placed, program, catalog)), ""]


def _expected(placed: Assignment, program: Program, catalog: Catalog) -> Iterator[str]:
    time, memory = placed.time, placed.memory
    low, high = time.interval90_seconds
    yield f"step: {show_seconds(time.step_seconds)}, 90% interval {show_seconds(low)} to {show_seconds(high)}"
    if time.tokens_per_second_per_gpu:
        yield f"speed: {time.tokens_per_second_per_gpu:,.0f} tokens/s/GPU, MFU {time.mfu:.1%}"
    spread = memory.interval90_bytes
    between = f", 90% interval {show_bytes(spread[0])} to {show_bytes(spread[1])}" if spread else ""
    yield (f"memory of the fullest GPU: {show_bytes(memory.peak_bytes - memory.components.reserve)}{between}; usable "
           f"{show_bytes(memory.usable_bytes)}")
    if isinstance(placed, TrainingAssignment) and time.steps:
        days = f" in {show_seconds(placed.duration_days * 86400)}" if placed.duration_days else ""
        yield f"run: {time.steps:,} steps{days}"
    if program.target not in catalog.releases.of_stack(placed.stack):
        yield (f"these figures are of {placed.stack}; for those of {program.target}, plan with --launchable "
               f"{program.target}")


def _back(placed: Assignment, program: Program) -> list[str]:
    log = program.feedback or "train.log"
    return ["## And back", "", "Predicted against measured, from the log of a run beside this folder's plan.json; with "
            "several runs, constants fitted to your cluster:", "", "```bash", f"planner validate {log}",
            f"planner calibrate {log} -o my-cluster", "```", ""]
