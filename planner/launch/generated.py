"""One kind of replica that makes images or clips, as emitters read it: every axis by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.answer.assignment import Assignment, ServingAssignment
from planner.answer.level import Made, ServingFigures
from planner.catalog.diffusion import Diffusion
from planner.catalog.hardware import Gpu, Node
from planner.catalog.load import Catalog
from planner.catalog.releases import Target
from planner.errors import InputError
from planner.launch.hosts import host, on_hosts
from planner.scenario.generation import Generation
from planner.scenario.portfolio_job import AnyWork


@dataclass(frozen=True, slots=True)
class Generated:
    """Replicas of one layout on one node type: what an emitter turns into a script."""

    placed: ServingAssignment
    serving: ServingFigures
    made: Made
    asked: Generation
    model: Diffusion
    node: Node
    gpu: Gpu
    target: str
    release: Target

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.placed.gpus // self.serving.replicas

    @property
    def on_node(self) -> int:
        """Replicas that share a node, of all but the last."""
        return -(-self.serving.replicas // self.placed.nodes)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels; of sound nothing."""
        width, by, height = self.made.resolution.partition("x")
        return (int(width), int(height)) if by else (0, 0)

    @property
    def samples(self) -> int:
        """Of a batch; where none is asked for, two calls of every replica."""
        return self.asked.samples or 2 * self.made.batch * self.serving.replicas

    @property
    def guidance(self) -> float:
        """Its scale; 1 is none."""
        said = self.asked.guidance
        return self.model.sampling.guidance if said is None else said

    def value(self, axis: str) -> object:
        """Return the value of an axis."""
        return VALUES[axis](self)


VALUES: Mapping[str, Callable[[Generated], object]] = {
    "model": lambda w: w.model.name,
    "candidate": lambda w: w.placed.node,
    "replicas": lambda w: w.serving.replicas,
    "rate": lambda w: w.asked.rate is not None,
    "precision": lambda w: w.placed.layout.precision,
    "resolution": lambda w: w.made.resolution,
    "frames": lambda w: w.made.frames,
    "steps": lambda w: w.made.steps,
    "guidance": lambda w: w.guidance,
    "passes": lambda w: w.made.passes,
    "batch": lambda w: w.made.batch,
    "offload": lambda w: w.made.offload,
    "vae": lambda w: w.made.vae,
    "compile": lambda w: w.asked.compile,
    "step_cache": lambda w: w.asked.step_cache,
    "cfg": lambda w: w.made.cfg,
    "ulysses": lambda w: w.made.ulysses,
    "ring": lambda w: w.made.ring,
    "pipefusion": lambda w: w.made.pipefusion,
}
"""Every axis of how images are made, and every choice of the question that a program has to be told."""


def generated_of(placed: Assignment, asked: AnyWork | None, catalog: Catalog, target: str) -> Generated:
    """Return what an emitter reads of replicas. Raises InputError for what makes nothing."""
    serving = placed.serving
    if not isinstance(placed, ServingAssignment) or serving is None or serving.made is None or placed.model is None:
        raise InputError(f"{target} makes images and clips, and the plan is of {placed.method or placed.kind}")
    if not isinstance(asked, Generation):
        raise InputError("the plan does not say what was asked: plan again, with this release of planner")
    return Generated(placed=on_hosts(placed, catalog), serving=serving, made=serving.made, asked=asked,
                     model=catalog.diffusion(placed.model), node=host(catalog, placed.node),
                     gpu=catalog.gpu(placed.gpu), target=target, release=catalog.releases.target(target))
