"""`planner estimate`: one layout in full, what would save memory, and the largest thing it still holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from planner.answer.assignment import Assignment
from planner.ask.fastest import Estimated, fastest, fits
from planner.ask.largest import Largest, largest_count, largest_model, largest_of, largest_sequence
from planner.ask.levers import FUSED, Ask, Lever, fuses, levers, released, served_levers, together
from planner.catalog.load import Catalog
from planner.errors import InputError, PlannerError
from planner.jobs.kinds import (
    check_axes,
    computed_on,
    estimate_of,
    idle_in,
    loads_of,
    names_stacks,
    narrower_of,
    on_node,
    open_layout,
    with_steps,
    work_asked,
)
from planner.jobs.media_sizes import sizes
from planner.jobs.request_sizes import request_sizes
from planner.layouts.axes import divisors
from planner.physics.shapes import parameters
from planner.scenario.accumulated import EACH, TIMES
from planner.scenario.called import as_called
from planner.scenario.configs.read import NODE, Config, degrees
from planner.scenario.hardware_names import least_of_memory, node_named
from planner.scenario.in_thousands import thousands
from planner.scenario.load import Reference, load_work
from planner.scenario.media import SEEN, estimate_notes
from planner.scenario.model_notes import stands_for, text_notes
from planner.scenario.pool import ANY
from planner.scenario.scenario import AnyScenario, only_training
from planner.units import plural, show_bytes
from planner.units.reading import parse_count

OTHERWISE = ("inference", "qlora", "lora", "full")  # methods that take less than pre-training, the least first
UNSAID = "That is pre-training, as no --method is given"
SERVE = "to ask whether it can be served: --method inference, or a load such as --rate 1"
"""Said beside `UNSAID` where no weights stay on the GPUs, which is hardly what was meant."""
MOST_MICRO_BATCH = 4096
"""Largest micro-batch tried, in sequences."""
Measured = Literal["micro-batch", "sequence", "model", "resolution", "frames", "batch", "audio"]
"""What the largest may be asked of."""
HEARD = ("workload.", "limits.gpus", "confidence")
"""How the paths of what an estimate depends on begin: it searches nothing, and no offer, limit or goal decides."""


@dataclass(frozen=True, slots=True)
class Estimating:
    """What `planner estimate` was asked: the work (and in `limits.gpus` the GPUs), the node type, the layout."""

    scenario: AnyScenario
    catalog: Catalog
    node: str
    layout: Mapping[str, str]
    left_to_plan: tuple[str, ...] = ()
    """Keys of the work that the scenario states for plans."""
    notes: tuple[str, ...] = ()
    """What the question may not have meant."""

    def __call__(self, layout: Mapping[str, str] | None = None, **work: Any) -> Assignment:  # noqa: ANN401 - keys
        """Return the estimate, with some keys of the workload changed. Raises InputError for an illegal layout."""
        return self._answer(layout, work, told=False).assignment

    def answer(self, layout: Mapping[str, str] | None = None) -> Estimated:
        """Return the estimate and how its layout was chosen. Raises InputError for an illegal layout."""
        return self._answer(layout, {}, told=True)

    def _answer(self, layout: Mapping[str, str] | None, work: Mapping[str, Any], *, told: bool) -> Estimated:
        asked, layout = self._with(work), self.layout if layout is None else layout
        made = estimate_of(asked, self.catalog, self.node, layout)
        found = self._searched(asked, layout, told=told) if made is None else Estimated(*made)
        return replace(found, assignment=found.assignment.model_copy(update={"asked": work_asked(asked)}))

    def _with(self, work: Mapping[str, Any]) -> AnyScenario:
        """Return what is asked with some keys of the workload changed."""
        changed = self.scenario.workload
        return self.scenario if not work or changed is None else self.scenario.model_copy(
            update={"workload": changed.model_copy(update=work)})

    def _searched(self, asked: AnyScenario, layout: Mapping[str, str], *, told: bool) -> Estimated:
        best = self._fastest(asked, layout, told=told)
        why = (*best.why, *self._besides(asked, layout, best)) if told else ()
        return Estimated(with_steps(best.assignment, only_training(asked, "its steps").workload, self.catalog), why)

    def _besides(self, asked: AnyScenario, layout: Mapping[str, str], best: Estimated) -> Iterator[str]:
        """Yield what is said of an estimate beside how its layout was chosen."""
        fit = best.assignment.memory.fits == "fits"
        if only_training(asked, "the best layout").workload.method is None:
            more = SERVE if fit and best.assignment.layout.offload.parameters else (
                "" if fit else self._otherwise(asked, layout))
            yield f"{UNSAID}; {more}" if more else UNSAID
        if not fit and fuses(best.assignment):
            yield from self._fused(asked, layout, best.assignment)

    def _fits(self, asked: AnyScenario, layout: Mapping[str, str]) -> bool:
        """Say whether the estimate of a question fits in memory."""
        made = estimate_of(asked, self.catalog, self.node, layout)
        return made[0].memory.fits == "fits" if made is not None else fits(
            on_node(asked, self.catalog, self.node), asked.limits.gpus, open_layout(layout))

    def _fastest(self, asked: AnyScenario, layout: Mapping[str, str], *, told: bool = False) -> Estimated:
        return fastest(on_node(asked, self.catalog, self.node), asked.limits.gpus, open_layout(layout), told=told)

    def _fused(self, asked: AnyScenario, layout: Mapping[str, str], now: Assignment) -> Iterator[str]:
        """Yield what a loss that holds no logits would change, where that is something."""
        assert asked.workload is not None
        with suppress(PlannerError):
            then = self._fastest(asked.model_copy(update={"workload": asked.workload.model_copy(update=FUSED)}),
                                 layout).assignment.memory
            if then.peak_bytes < now.memory.peak_bytes:
                verdict = "it fits" if then.fits == "fits" else "it takes less"
                yield (f"With --loss fused (Liger, cut cross entropy) {verdict}: {show_bytes(then.peak_bytes)} of "
                       f"{show_bytes(then.usable_bytes)}")

    def _otherwise(self, asked: AnyScenario, layout: Mapping[str, str]) -> str:
        """Return in words for what else than pre-training, which was not asked for by name, a model fits."""
        fit = []
        assert asked.workload is not None
        for method in OTHERWISE:
            work = asked.workload.model_copy(update={"method": method})
            with suppress(PlannerError):
                fit += [method] if self._fits(asked.model_copy(update={"workload": work}), layout) else []
        return f"with --method {' or '.join(fit)} it fits" if fit else "nor is there room to tune it, or to hold it"

    @property
    def rate(self) -> float | None:
        """Requests/s that a service is asked for; none for another load or kind."""
        return loads_of(self.scenario)[0]

    @property
    def is_offline(self) -> bool:
        """Whether no load is given of a service, so that what it can do at most is estimated."""
        return loads_of(self.scenario)[1]

    def levers(self, now: Assignment) -> list[Lever]:
        """Return what single changes of the layout would save."""
        return levers(self._by_stack_of(now), self.layout, now)

    def enough(self, now: Assignment, alone: Sequence[Lever]) -> Lever | None:
        """Return the fewest changes of the layout that make it fit, where none of `alone` does."""
        if now.memory.fits == "fits" or any(lever.fits for lever in alone):
            return None
        if estimate_of(self.scenario, self.catalog, self.node, self.layout) is None:
            return released(self, self.layout, now)
        return together(self._by_stack_of(now), self.layout, now)

    def _by_stack_of(self, now: Assignment) -> Ask:
        """Return what estimates other layouts of the stack that a layout was chosen for."""
        return partial(self, stack=(now.stack,)) if names_stacks(self.scenario) else self

    def served_levers(self, now: Assignment) -> list[tuple[str, Assignment]]:
        """Return what single changes would make of a service of text; nothing of other work."""
        return served_levers(self, narrower_of(self.scenario), now)

    def largest(self, what: Measured) -> Largest[Any]:
        """Return the largest `micro-batch`, `sequence` or `model` that fits, or of images and clips the largest
        `resolution`, `frames` or `batch`. Raises InputError.
        """
        if what in ("audio", "resolution", "frames", "batch"):
            size, most = sizes(self.scenario, what, self.catalog)
            return largest_count(lambda count: self({**self.layout, **size(count).layout}, **size(count).work),
                                 lambda count: size(count).shown, most)
        requests = request_sizes(self.scenario, self.catalog) if what == "sequence" else None
        if requests is not None:
            keys, *ends = requests
            return largest_count(lambda count: self(**keys(count)), lambda count: keys(count)["max_model_len"], *ends)
        only_training(self.scenario, "the largest that fits")
        check_axes(self.layout)
        if what == "model":
            names = sorted(_trainable(self.catalog), key=lambda name: -parameters(self.catalog.model(name)))
            return largest_model(names, lambda name: self(model=name),
                                 lambda name: self._fits(self._with({"model": name}), self.layout))
        layout = {key: value for key, value in self.layout.items() if key not in ("mbs", "micro_batch")}
        now = self(layout)
        if what == "sequence":
            multiple = 2 * now.layout.cp if now.layout.cp > 1 else 1
            return largest_sequence(lambda length: self(sequence_length=length), multiple)
        each = now.layout.micro_batches * now.layout.micro_batch
        return largest_of([size for size in divisors(each) if size <= MOST_MICRO_BATCH],
                          lambda size: self({**layout, "mbs": str(size)}))


def estimating(reference: Reference, overrides: Mapping[str, object], catalog: Catalog, *, node: str | None,
               layout: Mapping[str, str], labels: Mapping[str, str], largest: Measured | None = None,
               nodes: int | None = None, config: Config | None = None) -> Estimating:
    """Return the question, from the same values as a plan's; a model that `largest` looks for need not be given.

    nodes: all GPUs of so many nodes, instead of `limits.gpus`. `config` is that of a framework or an engine, whose
    values and layout hold where none are given.
    Raises InputError for what is stated and does nothing to an estimate: whatever an override says so, and of a file
    what describes the work. What a file says of offers, limits, targets and the objective is there for plans.
    """
    node, overrides = _placed(node, overrides)
    for path in overrides:
        if path == "hardware.candidates" and node is None:
            raise InputError(f"{labels.get(path, path)}: an estimate is of one node type; planner plan chooses among "
                             "several, and planner compare puts them side by side")
        if not path.startswith(HEARD):
            raise InputError(f"{labels.get(path, path)}: has no effect on an estimate, which is about the node and the "
                             "layout named; planner plan chooses by it")
    stated = overrides.get("limits.gpus")
    if config is not None:
        node = node or config.hardware(catalog) or _usual_node(config)
        named, cluster = node_named(node, catalog)
        each = catalog.node(named).gpus
        counted = cluster or (nodes and nodes * each)
        labels = {**labels, **config.labels(overrides)}
        overrides, layout = config.alone(reference).asked(
            overrides if stated or not counted else {**overrides, "limits.gpus": counted}, layout, each, catalog)
    overrides, layout, batched = _in_a_step(overrides, layout, node, nodes, catalog)
    if largest == "model" and reference is None:
        overrides = {"workload.model": _trainable(catalog)[0], **overrides}
    scenario, document = load_work(reference, overrides, catalog, labels=labels)
    said_node = node or _only_one(scenario, labels)
    node, cluster = node_named(said_node, catalog, scenario.limits.gpus)
    gpus = cluster or (nodes and nodes * catalog.node(node).gpus)
    if gpus and (stated or (cluster and nodes)):
        raise InputError(f"{labels.get('limits.gpus', 'gpus')} and the number of nodes are both given: one says how "
                         "many GPUs")
    if gpus:
        scenario = scenario.model_copy(update={"limits": scenario.limits.model_copy(update={"gpus": gpus})})
    scenario = computed_on(scenario, node, catalog)
    idle_keys = idle_in(scenario)
    for idle in idle_keys:
        if not idle.left_to_plan or idle.path in overrides:
            raise document.error(idle.path.split("."), idle.why)
    said = estimate_notes(scenario.workload, catalog, document) if scenario.workload else []
    called = as_called(reference, overrides, scenario.workload)
    several = [f"{said_node} is what several cards have: estimated on {node}, on which programs have the least of it"
               ] if least_of_memory(said_node, (node,), catalog) else []
    decided = SEEN[:2] if largest == "sequence" else SEEN  # a request then has the length that is looked for
    return Estimating(scenario, catalog, node, layout, tuple(key.key for key in idle_keys), (
        *batched, *several, *stands_for(called), *text_notes([*called, *said]), *(
            f"{default.name} is {default.value}: {default.why}" for default in (
                *(default for default in said if default.name in decided), *thousands(document)))))


def _in_a_step(overrides: Mapping[str, object], layout: Mapping[str, str], node: str | None, nodes: int | None,
               catalog: Catalog) -> tuple[Mapping[str, object], Mapping[str, str], Sequence[str]]:
    """Return values and layout with the batch of a step where micro-batches are counted, and what is said of it.

    What a GPU takes at once is the micro-batch of the layout, and as many copies of the model as there are take it.
    """
    each, times, batch = (overrides.get(f"workload.{key}") for key in (EACH, TIMES, "global_batch"))
    if (each is None and times is None) or node is None or (each is not None and batch is not None):
        return overrides, layout, ()
    named, cluster = node_named(node, catalog)
    stated = overrides.get("limits.gpus")
    gpus = parse_count(stated, "gpus") if stated else cluster or (nodes or 1) * catalog.node(named).gpus
    micro = str(each or layout.get("mbs") or batch or 1)
    width = degrees(layout, "tp", "pp", "cp")
    if not (micro.isdecimal() and str(times or 1).isdecimal()):
        return overrides, layout, ()
    copies, often = max(1, gpus // width), int(str(times or 1))
    made = int(micro) * often * copies
    rest = {path: value for path, value in overrides.items() if path not in (f"workload.{EACH}", f"workload.{TIMES}")}
    said = f"global_batch is {made:,}: {int(micro):,} at once x {often:,} accumulated x {plural(copies, 'copy')}"
    return {**rest, "workload.global_batch": made}, {"mbs": micro, **layout}, (said,)


def _placed(node: str | None, overrides: Mapping[str, object]) -> tuple[str | None, Mapping[str, object]]:
    """Return the node type and the other values, where a plan's `on` with one name says where it is."""
    path = "hardware.candidates"
    said = overrides.get(path)
    names = said.split(",") if isinstance(said, str) else said
    if node is not None or not isinstance(names, list | tuple) or len(names) != 1:
        return node, overrides
    return str(names[0]), {key: value for key, value in overrides.items() if key != path}


def _only_one(scenario: AnyScenario, labels: Mapping[str, str]) -> str:
    """Return the only candidate of a scenario. Raises InputError where it names none, or several."""
    names = [name for name in scenario.hardware.candidates if name.lower() != ANY]
    if len(names) != 1:
        raise InputError(f"{labels.get('node', 'node')}: an estimate needs a node type, such as dgx-h100"
                         + (f"; the scenario has {', '.join(names[:4])}" if names else ""))
    return names[0]


def _usual_node(config: Config) -> str:
    """Return where a config is run whose user names no hardware."""
    config.reading.defaults.append(f"node {NODE}")
    return NODE


def _trainable(catalog: Catalog) -> list[str]:
    """Return the models that can be trained: all but encoders."""
    return [name for name in catalog.names("models") if not catalog.model(name).encodes]
