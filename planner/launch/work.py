"""A training assignment as emitters read it: every axis by its name, and what the question said beside the layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from planner.answer.assignment import Assignment, TrainingAssignment
from planner.answer.layout import Layout
from planner.catalog.architecture import Model
from planner.catalog.buildable import unbuilt
from planner.catalog.hardware import Gpu, Node
from planner.catalog.load import Catalog
from planner.catalog.releases import Target
from planner.catalog.stack import Stack
from planner.errors import InputError, Unsupported
from planner.launch.hosts import host, on_hosts
from planner.launch.older import attention_on
from planner.scenario.portfolio_job import AnyWork
from planner.scenario.workload import Training

STEPS = 100
"""Of a run whose length the plan does not say."""


def gpus_each(placed: Assignment) -> int:
    """Return the GPUs that run on each node; raises Unsupported where nodes would run different numbers."""
    if placed.gpus % placed.nodes:
        raise Unsupported(f"{placed.gpus} GPUs on {placed.nodes} nodes: as many on each")
    return placed.gpus // placed.nodes


@dataclass(frozen=True, slots=True)
class Work:
    """One training job, placed: what an emitter turns into files."""

    placed: TrainingAssignment
    asked: Training
    """The workload of the question; its defaults where the plan has none."""
    model: Model
    stack: Stack
    node: Node
    gpu: Gpu
    target: str
    release: Target
    attention: str
    """Of Transformers, that the GPU has kernels of."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """Matrix of a layer -> what the model's code calls it; empty where that is not known."""

    @property
    def layout(self) -> Layout:
        """How it is split."""
        return self.placed.layout

    @property
    def method(self) -> str:
        """What trains: pretrain, full, lora or qlora."""
        return self.placed.tuning or self.placed.method or "pretrain"

    @property
    def preference(self) -> str | None:
        """The method that takes preferences; none of supervised training."""
        return None if self.placed.tuning is None else self.placed.method

    @property
    def gpus_per_node(self) -> int:
        """GPUs that run on each node; raises Unsupported where nodes would run different numbers."""
        return gpus_each(self.placed)

    @property
    def sequence_length(self) -> int:
        """Tokens of a sequence."""
        return self.placed.sequence_length or self.model.sequence_length

    @property
    def global_batch(self) -> int:
        """Sequences of a step."""
        layout = self.layout
        return self.placed.global_batch or layout.dp * layout.micro_batch * layout.micro_batches

    @property
    def steps(self) -> int:
        """Of the whole run."""
        return self.placed.time.steps or STEPS

    @property
    def copies(self) -> int:
        """Groups that each hold a whole set of shards (HSDP); 1 where everything is one group."""
        ranks = self.layout.dp * self.layout.cp
        return ranks // self.layout.shard if self.layout.zero and self.layout.shard else 1

    @property
    def stage_layers(self) -> tuple[int, ...]:
        """Layers of every pipeline stage."""
        return tuple(stage.layers for stage in self.layout.stages) or (self.model.layers,)

    @property
    def even(self) -> bool:
        """Whether all stages hold as many layers."""
        return len(set(self.stage_layers)) == 1

    def value(self, axis: str) -> object:
        """Return the value of an axis, or of a choice of the question."""
        return VALUES[axis](self)


def _recompute(work: Work) -> str:
    counts = [stage.recompute_layers for stage in work.layout.stages]
    if work.layout.recompute != "mixed" or not counts:
        return work.layout.recompute
    return ", ".join(f"{c.full} full {c.selective} selective {c.none} none" for c in counts)


VALUES: Mapping[str, Callable[[Work], object]] = {
    "candidate": lambda w: f"{w.placed.nodes} x {w.placed.node}",
    "precision": lambda w: w.layout.precision,
    "tp": lambda w: w.layout.tp,
    "cp": lambda w: w.layout.cp,
    "dp": lambda w: w.layout.dp,
    "micro_batch": lambda w: w.layout.micro_batch,
    "sp": lambda w: int(bool(w.layout.sequence_parallel)),
    "ep": lambda w: w.layout.ep,
    "expert_tp": lambda w: w.layout.expert_tp,
    "pp": lambda w: w.layout.pp,
    "vpp": lambda w: w.layout.vpp,
    "schedule": lambda w: w.layout.schedule or "1f1b",
    "zero": lambda w: w.layout.zero,
    "hsdp": lambda w: w.copies,
    "no_sync": lambda w: int(bool(w.layout.no_sync)),
    "recompute": _recompute,
    "offload": lambda w: w.layout.offload.optimizer,
    "offload_parameters": lambda w: w.layout.offload.parameters,
    "offload_activations": lambda w: w.layout.offload.activations,
    "nvme": lambda w: int(w.layout.offload.to == "nvme"),
    # what is no axis of the search, and decides the files as well
    "stages": lambda w: "even" if w.even else ", ".join(map(str, w.stage_layers)),
    "cp_method": lambda w: w.layout.cp_method or "ring",
    "method": lambda w: w.method,
    "preference": lambda w: w.preference,
    "reference": lambda w: w.placed.reference,
    "lora_rank": lambda w: w.asked.rank if w.method in ("lora", "qlora") else None,
    "lora_targets": lambda w: ", ".join(w.asked.lora_targets) or "all",
    "optimizer": lambda w: w.asked.optimizer,
    "optimizer_in_backward": lambda w: w.asked.optimizer_in_backward,
    "loss": lambda w: w.asked.loss or "the stack's",
    "trained_layers": lambda w: w.asked.trained_layers,
    "packing": lambda w: "padded" if w.asked.mean_length is not None and not w.asked.packing else "packed",
}
"""Every axis of a layout, and every choice of the question that a stack has to be told; each emitter names them all."""


def work_of(placed: Assignment, asked: AnyWork | None, catalog: Catalog, target: str) -> Work:
    """Return what an emitter reads of an assignment. Raises InputError for what trains nothing, Unsupported for a
    model that the target does not have.
    """
    if not isinstance(placed, TrainingAssignment) or placed.method == "inference":
        raise InputError(f"{target} trains, and the plan is of {placed.method or placed.kind}")
    if placed.model is None:
        raise InputError("the plan does not name its model")
    work = asked if isinstance(asked, Training) else Training(model=placed.model, method=placed.method)
    node = host(catalog, placed.node)
    model = catalog.model(placed.model)
    if model.attends_to is not None:
        raise InputError(f"no files start the training of {model.name}, whose layers attend to {model.attends_to}: "
                         "targets train language models on text")
    if (reason := unbuilt(catalog.releases, target, model)) is not None:
        raise Unsupported(reason)
    return Work(placed=on_hosts(placed, catalog), asked=work, model=model, stack=catalog.stack(placed.stack),
                node=node, gpu=catalog.gpu(placed.gpu), target=target, release=catalog.releases.target(target),
                attention=attention_on(catalog.gpu(placed.gpu), catalog.releases),
                modules=catalog.releases.modules_in(model))
