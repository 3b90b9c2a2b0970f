"""`planner plan --jobs LOG`: how many nodes a log needs; `planner simulate --jobs LOG`: what it does on some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from planner.catalog.load import Catalog
from planner.cli.options import say_answer, warn
from planner.cli.plan_file import read_plan
from planner.cli.printing import say, say_json
from planner.cli.question import LABELS, overrides
from planner.errors import EXIT_OK, EXIT_STOPPED, InputError
from planner.text_io import read_text


def plan_log(log: Path, wait: str | None, flags: Mapping[str, object], catalog: Catalog, *, as_json: bool) -> int:
    """Print the fewest nodes for a log, and return the exit code. Raises InputError."""
    from planner.ask.sizing import sized
    from planner.render.sizing import render_sizing, sizing_sentence

    sizing = sized(log, wait, overrides(flags), catalog, LABELS)
    warn(sizing.notes)
    say_answer(sizing, lambda: sizing_sentence(sizing), lambda page: render_sizing(sizing, page), as_json=as_json)
    return EXIT_OK if sizing.sizes[0].status == "optimal" else EXIT_STOPPED


def replay_log(log: Path, fleet: Path | None, node: str | None, gpus: object, catalog: Catalog, *, as_json: bool
               ) -> int:
    """Print what a log does on a fleet: that of a document, or so many GPUs in nodes of a type. Raises InputError."""
    from planner.answer.schema import to_json
    from planner.ask.sizing import replayed
    from planner.render.sizing import replayed_sentence
    from planner.simulate.joblog import read_jobs

    name, nodes = _fleet(fleet, node, gpus, catalog)
    jobs = read_jobs(log)
    outcome = replayed(jobs, nodes, catalog.node(name).gpus)
    say_json(to_json(outcome)) if as_json else say(replayed_sentence(outcome, name, len(jobs.submit)))
    return EXIT_OK


def _fleet(fleet: Path | None, node: str | None, gpus: object, catalog: Catalog) -> tuple[str, int]:
    if fleet is None:
        if node is None or gpus is None:
            raise InputError("--jobs needs a fleet: what planner plan --json printed, or --node and --gpus")
        name = catalog.node(node).name
        count = TypeAdapter(int).validate_python(gpus) if str(gpus).isdigit() else 0
        if count <= 0 or count % catalog.node(name).gpus:
            raise InputError(f"--gpus {gpus}: expected whole nodes of {catalog.node(name).gpus} GPUs")
        return name, count // catalog.node(name).gpus
    counts = _nodes(fleet)
    if node is not None:
        counts = {name: count for name, count in counts.items() if name == catalog.node(node).name}
    if len(counts) != 1:
        raise InputError(f"the fleet has {', '.join(counts) or 'no nodes'}: name one node type with --node",
                         file=str(fleet))
    return next(iter(counts.items()))


def _nodes(fleet: Path) -> dict[str, int]:
    """Return the nodes of each type that a document has: of a sizing those of its first type, of a plan of many jobs
    the most that are there at a time. Raises InputError.
    """
    from planner.answer.sizing import Sizing

    with suppress(ValidationError):
        first = Sizing.model_validate_json(read_text(fleet)).sizes[0]
        return {first.node: first.fewest.nodes}
    plan, counts = read_plan(fleet), Counter[str]()
    for pool, node in dict.fromkeys((supply.pool, supply.node) for supply in plan.supply):
        counts[node] += max((period.available for period in plan.periods if period.pool == pool), default=0)
    for assignment in plan.assignments if not plan.supply else ():
        counts[assignment.node] += assignment.nodes + assignment.spare_nodes
    return counts
