"""The public functions. Each returns what the command of its name prints with `--json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.answer.validation import Validation
from planner.ask.estimate import Estimating
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.errors import UnknownName
from planner.physics.training.recipes import Recipe
from planner.scenario.load import FLAGS, load_any, load_service

PathLike_ = str | PathLike[str]


def plan(scenario: PathLike_ | None = None, *, catalogs: Sequence[PathLike_] = (),
         time_limit: float | None = None, prefer: str | None = None, pareto: str | None = None,
         workers: int = 1, replay: PathLike_ | None = None, **values: object) -> Plan:
    """Return the cheapest (or fastest, or smallest) plan for a question, with its proof.

    `scenario` is a file or the name of a shipped one. `values` are the flags of `planner plan`, underscored,
    with their units (`model="llama-3.1-70b", tokens="15 T", deadline="60 d"`), and override the file.
    `time_limit` is in seconds; `prefer="simple"` takes the simplest of the tied layouts; `pareto="cost,days"` gives
    the exact frontier of trade-offs as alternatives; `workers` processes share the search out; a service's plan is
    replayed on the trace `replay`. The plan's `status` says whether it is proven, infeasible or undecided.
    Raises PlannerError where the input is wrong.
    """
    if prefer not in (None, "simple"):
        raise UnknownName("prefer", str(prefer), ["simple"])
    for name in values:
        if name not in FLAGS:
            raise UnknownName("argument of planner.plan", name, FLAGS)
    catalog = _catalog(catalogs)
    question, defaults = load_any(
        None if scenario is None else fspath(scenario),
        {FLAGS[name]: value for name, value in values.items() if value is not None}, catalog,
        labels={path: name for name, path in FLAGS.items()})
    return make_plan(question, catalog, defaults=defaults, time_limit=time_limit, simple=prefer is not None,
                     pareto=pareto.split(",") if pareto else (), workers=workers,
                     replay=None if replay is None else Path(replay))


def estimate(model: str, node: str, layout: Mapping[str, object] | None = None, *, gpus: int | None = None,
             sequence_length: int | None = None, global_batch: int | None = None, method: str = "pretrain",
             stack: str | None = None, precision: str = "bf16", confidence: float = 0.95,
             optimizer: str = "adamw", optimizer_in_backward: bool = False, loss: str | None = None,
             trained_layers: int | None = None, catalogs: Sequence[PathLike_] = (), **service: object) -> Assignment:
    """Return whether one layout fits, how fast it is, and where bytes and seconds go.

    `layout` holds axis values as in `planner estimate --layout` (`{"tp": 8, "pp": 4}`); `sequence_length` is
    in tokens, `global_batch` in sequences, `confidence` that of the memory verdict; `loss` is plain, chunked or
    fused; of the layers the last `trained_layers` train. With `service`, the keys of a workload of kind: serving
    (`input=2000, output=300, concurrency=64`), it is of one layout of that service, and nothing of training is heard.
    Raises PlannerError.
    """
    axes = {axis: str(value) for axis, value in (layout or {}).items()}
    if service:
        from planner.jobs.serving.estimate import estimate_serving  # another physics

        catalog = _catalog(catalogs)
        asked, _ = load_service({"model": model, **service}, catalog, {})
        return estimate_serving(asked, catalog, node, gpus, axes)
    return Estimating(_catalog(catalogs), model, node, gpus, axes, sequence_length, global_batch, method, stack,
                      precision, confidence, Recipe(optimizer, optimizer_in_backward, loss), trained_layers)()


def validate(evidence: PathLike_, *, catalogs: Sequence[PathLike_] = ()) -> Validation:
    """Return predicted against measured for an evidence CSV. Raises PlannerError."""
    from planner.ask.validate import validate_file

    return validate_file(Path(evidence), _catalog(catalogs))


def _catalog(folders: Sequence[PathLike_]) -> Catalog:
    return Catalog([Path(folder) for folder in folders])
