"""`planner probe`: measure this machine's GPUs and links, as a folder for --catalogs."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import click

from planner.ask.probe import Probe
from planner.cli import options
from planner.cli.options import common, console, is_quiet, is_verbose, open_catalog
from planner.cli.printing import note, say_json
from planner.errors import EXIT_OK
from planner.probe.tasks import ProbeTask
from planner.render.page import Head, Page
from planner.text_io import json_text


@click.command("probe")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Catalog folder to write, for --catalogs; what it has is not measured again.")
@click.option("--dry-run", is_flag=True, help="Say what would be measured and how long it takes; measure nothing.")
@click.option("--as-of", metavar="YEAR-MONTH", callback=options.as_of, help="Date to record. Default: this month.")
@common
def command(output: Path, dry_run: bool, as_of: str | None, as_json: bool, catalogs: tuple[Path, ...]) -> int:
    """Measure this machine: matrix products, attention, memory, host transfers, and collectives.

    Needs torch (pip install 'planner[probe]'). On one node it starts a process for each GPU; across nodes run it under
    torchrun on all of them. A second run resumes where the first stopped. Without a GPU it measures the CPU.
    """
    catalog = open_catalog(catalogs)

    from planner.ask.probe import probe
    from planner.probe.torch_machine import TorchMachine

    def progress(done: int, of: int, task: ProbeTask) -> None:
        if is_verbose():
            note(f"{done}/{of} {task.key}")

    backend = TorchMachine()
    measured = probe(output, catalog, backend, as_of or f"{date.today():%Y-%m}", dry_run=dry_run, progress=progress)
    if not backend.leads:
        return EXIT_OK
    if as_json:
        say_json(json_text(measured.as_json(), indent=2))
        return EXIT_OK
    page = Page(console())
    _show(page, measured, dry_run=dry_run)
    return EXIT_OK


def _show(page: Page, probe: Probe, *, dry_run: bool) -> None:
    machine = probe.machine
    nodes = f"{machine.nodes} nodes of " if machine.nodes > 1 else ""
    what = f"{nodes}{machine.gpus} x {machine.name}" if machine.is_gpu else f"CPU ({machine.name}), no GPU"
    done = len(probe.tasks) - len(probe.left)
    if dry_run:
        page.paragraph(f"{what}: {len(probe.left)} measurements to make, about {probe.seconds:.0f} s"
                       + (f"; {done} are made" if done else ""))
    else:
        page.paragraph(f"{what}: {len(probe.tasks)} measurements made")
    if is_quiet():
        return
    counts = Counter((task.operation, task.precision, task.ranks) for task in (probe.left if dry_run else probe.tasks))
    page.table((Head("operation"), Head("precision"), Head("GPUs", True), Head("sizes", True)),
               [(operation, precision or "-", f"{ranks}", f"{count}")
                for (operation, precision, ranks), count in counts.items()])
    for text in probe.notes:
        page.paragraph(text)
    page.facts([("written", str(path)) for path in probe.files])
