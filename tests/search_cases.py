"""Small random questions on shipped hardware, for tests that compare the search with staging everything."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from planner.catalog.architecture import Block, Mlp, Model
from planner.catalog.attention import Attention
from planner.catalog.load import Catalog
from planner.layouts.axes import SCHEDULES, Space
from planner.layouts.candidate import Candidate
from planner.layouts.enumerate import Grid
from planner.layouts.rules import Facts
from planner.physics.training.question import Question, computes, question_of
from planner.solver.fleet.problem import FleetLimits, FleetOffer, RunProblem
from planner.solver.fleet.single import single
from planner.solver.search.found import Frontier, StagedLayout
from planner.solver.search.job import DOUBLINGS, JobTerms
from planner.solver.search.parallel import search_grid
from planner.solver.settings import UNLIMITED, Effort
from tests.enumerated import Enumeration, enumerate_layouts

STACKS = ("megatron-core", "megatron-core", "megatron-core", "fsdp2", "deepspeed", "hf-peft", "hai-llm")
NODES = ("dgx-a100", "dgx-h100", "dgx-b200", "l40s-4x", "rtx-4090-4x")


@cache
def catalog() -> Catalog:
    return Catalog()


def candidate(name: str) -> Candidate:
    node = catalog().node(name)
    return Candidate(node=node, gpu=catalog().gpu(node.gpu), nics=node.nics, fabric=catalog().fabric(node.fabric),
                     scaleup=catalog().fabric(node.scaleup) if node.scaleup else None)


def toy_model(rng: random.Random) -> Model:
    heads = rng.choice((4, 8, 16))
    hidden = heads * 128
    block = Block(count=rng.randint(3, 9), mlp=Mlp(kind="gated", ffn=4 * hidden),
                  attention=Attention(heads=heads, kv_heads=rng.choice((4, heads)), head_dim=128))
    return Model(name="toy", source="made up for a test", as_of="2026", kind="assumed", hidden=hidden,
                 vocab=rng.choice((8000, 128256)), tied=rng.random() < 0.5, norm="rmsnorm", blocks=(block,),
                 sequence_length=4096, global_batch=8)


@dataclass(frozen=True)
class Case:
    question: Question
    space: Space
    facts: Facts
    job: JobTerms
    enumeration: Enumeration


def random_case(seed: int, *, limits: bool = True) -> Case:
    """A toy model on one or two node types whose memory is cut so that it often binds."""
    rng = random.Random(seed)
    model = toy_model(rng)
    stack = catalog().stack(rng.choice(STACKS))
    nodes = sorted(rng.sample(NODES, rng.choice((1, 2))))
    candidates = []
    for name in nodes:
        base = candidate(name)
        usable = base.gpu.usable_memory * rng.choice((1.0, 0.3, 0.15, 0.1, 0.07))
        host = base.node.cpu.model_copy(update={"memory": base.node.cpu.memory * rng.choice((1.0, 0.02))})
        changes = {"cpu": host} | rng.choice(({}, {"nvme": None}))
        candidates.append(replace(base, gpu=base.gpu.model_copy(update={"usable_memory": usable}),
                                  node=base.node.model_copy(update=changes)))
    sequence, batch = rng.choice((2048, 4096)), rng.choice((4, 8, 12))
    question = question_of(catalog(), model, tuple(candidates), stack, sequence_length=sequence, global_batch=batch,
                           precisions=("bf16",), method="pretrain", confidence=0.95)
    space = Space(model, tuple(candidates), ("bf16",), sequence, batch, rng.choice((8, 16, 24)),
                  hybrid_shard=stack.hybrid_shard, sequence_parallel=rng.choice(((1,), (1,), (1, 0))),
                  no_sync=stack.accumulation,
                  schedules=tuple(sorted({0, SCHEDULES.index(rng.choice(stack.schedules))})))
    facts = Facts(space=space, stack=stack, node_gpus=np.array([c.node.gpus for c in candidates]),
                  clustered=np.array([rng.random() < 0.9 for _ in candidates]),
                  precisions=np.array([[computes(c, r, "bf16")]
                                       for c, r in zip(candidates, question.rates, strict=True)]),
                  fixed_gpus=None, max_nodes=rng.choice((None, 2)))
    job = JobTerms(tokens=rng.randint(10**8, 10**11), sequence_length=sequence,
                   checkpoint_bytes=question.shape.total * 14.0, reliability=catalog().reliability,
                   objective=rng.choice(("cost", "time", "gpus", "energy")),
                   offers=tuple(FleetOffer(at, at, rng.randint(10**6, 10**8), rng.choice((None, None, 1)))
                                for at in range(len(candidates))),
                   upper=tuple(rng.choice((1.0, 1.1)) for _ in candidates),
                   **errors(sequence + batch + model.layers, len(candidates), 1),
                   deadline_us=rng.choice((None, 10**12, 10**11)) if limits else None,
                   budget_cents=rng.choice((None, 10**6, 10**5)) if limits else None)
    return Case(question, space, facts, job, enumerate_layouts(facts))


def errors(seed: int, candidates: int, precisions: int) -> dict[str, Any]:
    """Return errors that rise with GPUs past those of known runs, and means that costs count, for some seeds."""
    apart = random.Random(seed)
    if apart.random() < 0.5:
        return {}
    rising = [tuple(first * (1 + step) ** past for past in range(DOUBLINGS + 1)) for first, step in (
        (apart.uniform(1, 1.3), apart.uniform(0, 0.2)) for _ in range(candidates * (precisions + 1)))]
    return {"known": apart.choice((1, 2, 4, 8)), "uppers": tuple(rising[:candidates]),
            "means": tuple(tuple(rising[candidates * (1 + p) + at] for p in range(precisions))
                           for at in range(candidates))}


@dataclass(frozen=True)
class Choice:
    """How the search of one job ended: what the fleet chose of its columns, with their account."""

    status: str
    value: int | None
    bound: int | None
    best: StagedLayout | None
    frontier: Frontier


def choose(question: Question, grid: Grid, job: JobTerms, effort: Effort = UNLIMITED, *, each: bool = True) -> Choice:
    """Return the choice of one job's fleet, as `planner plan` makes it, and (not each) as `planner explain` does."""
    frontier = search_grid(question, grid, job, effort, each=each)
    runs = tuple(one.column for one in sorted(frontier.found, key=lambda one: one.key))
    problem = RunProblem(runs, job.offers, job.objective,
                         FleetLimits(job.deadline_us, job.budget_cents, job.max_power_w))
    found = single(problem, frontier.open_bound[0] if frontier.open_bound else None)
    best = next((one for one in frontier.found if found.choice and one.column == found.choice.column), None)
    return Choice(found.status, found.value, found.bound, best, frontier)
