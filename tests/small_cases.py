"""Small random scenarios, and what each is worth by trying every point of its grid.

The brute force shares with the search the physics of a layout, goodput and spare nodes, the predicates of the rules and
the integers of staging, and nothing else: no stem, no bound, no order, no fast path, no CP-SAT, no pricing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import islice, product

import numpy as np

from planner.catalog.architecture import Block, Mlp, Model, MoeMlp
from planner.catalog.attention import Attention
from planner.catalog.stack import Stack
from planner.layouts.axes import AXES, SCHEDULES, Space, column_type, domain
from planner.layouts.candidate import Candidate
from planner.layouts.offload import OFFLOAD_AXES
from planner.layouts.rules import RULES, SPLIT_BY, Columns, Facts, rules_of, split_code
from planner.layouts.table import Floats, Ints, Layouts, Mask, from_rows
from planner.money.goodput import goodput, running, spare_nodes
from planner.physics.training.estimate import TimeTerms, faster_whole, time_terms
from planner.physics.training.memory import MemoryTerms, memory_terms
from planner.physics.training.question import Question, computes, question_of
from planner.physics.training.recipes import Recipe, with_recipe
from planner.solver.fleet.problem import FleetOffer, Goal
from planner.solver.search.job import JobTerms
from planner.solver.search.staging_input import staging_problem
from planner.solver.staging.problem import Staged, StagingProblem
from tests.exhaustive_staging import exhaustive_staging
from tests.search_cases import candidate, catalog, errors

STACKS = ("megatron-core", "megatron-core", "fsdp2", "fsdp2", "deepspeed", "hf-peft", "hai-llm")
NODES = ("rtx-4090-1x", "h100-sxm-1x", "rtx-4090-2x", "h200-sxm-2x", "l40s-4x", "rtx-4090-4x", "h100-sxm-4x",
         "dgx-a100", "dgx-h100", "dgx-b200")
OBJECTIVES: tuple[Goal, ...] = ("cost", "time", "gpus", "energy")
POINTS = 6000
"""Grid points of a scenario at most, every level of offload among them."""
MOST_GPUS = 24
DRAWS = 3000
"""Points tried at random to find a legal one."""
FREE = ("candidate", "tp", "dp", "pp", "micro_batch", "zero")
"""Axes of which any value may be dropped."""
STRADDLING: dict[str, tuple[float, ...]] = {
    "tp": (1,), "cp": (1,), "dp": (3,), "pp": (8,), "ep": (1,), "micro_batch": (1,), "zero": (1,)}
"""Stages of three GPUs on nodes of eight: every third node boundary cuts one."""


@dataclass(frozen=True)
class Small:
    """One scenario, in the form that search and physics read."""

    question: Question
    space: Space
    facts: Facts
    job: JobTerms


def small_case(seed: int, *, mixtures: float = 0.4) -> Small:
    """Return a toy model on one to three node types whose memory, prices and limits often decide.

    mixtures: share of mixtures of experts, two thirds of them behind dense layers.
    """
    rng = random.Random(seed)
    straddling = rng.random() < 0.025
    name = "megatron-core" if straddling else rng.choice(STACKS)
    stack = catalog().stack(name)
    model = _model(rng, 8 if straddling else rng.choice((2, 3, 4, 4, 5, 6)), mixtures if stack.experts else 0.0)
    recipe = Recipe(rng.choice(("adamw-8bit", "lion")), rng.random() < 0.3) if rng.random() < 0.1 else Recipe()
    nodes = rng.sample(NODES[-3:] if straddling else NODES, rng.choice((1, 2, 2, 3)))
    candidates = tuple(candidate(node) for node in sorted(nodes))
    question = question_of(
        catalog(), model, candidates, with_recipe(catalog().recipes, stack, model, recipe),
        precisions=_precisions(rng, stack, candidates), sequence_length=rng.choice((1024, 2048, 4096)),
        global_batch=6 if straddling else rng.choice((2, 4, 6, 8, 8, 12)),
        method=rng.choice(("lora", "qlora", "full")) if name == "hf-peft" else "pretrain", confidence=0.95,
        trained_layers=rng.randint(1, model.layers) if rng.random() < 0.05 and not model.leading_layers else None)
    space = _space(rng, question, model, STRADDLING if straddling else {})
    facts = _facts(rng, question, space, in_backward=recipe.optimizer_in_backward)
    some = _some_point(rng, facts)
    rows = from_rows([some], space.global_batch)
    job = _job(rng, question, rows)
    question = replace(question, candidates=tuple(_cut(rng, question, rows, at) for at in range(len(candidates))))
    space = replace(space, candidates=question.candidates, only=_thinned(rng, space, some))
    return Small(question, space, replace(facts, space=space), job)


def _model(rng: random.Random, layers: int, mixtures: float) -> Model:
    """Return a dense model, or a mixture of experts with up to two dense layers in front."""
    heads, width = rng.choice((4, 8)), rng.choice((64, 128, 256))
    hidden, attention = heads * width, Attention(heads=heads, kv_heads=rng.choice((2, 4, heads)), head_dim=width)
    dense = Mlp(kind="gated", ffn=4 * hidden)
    blocks = [Block(count=layers, mlp=dense, attention=attention)]
    if rng.random() < mixtures:
        mixture = MoeMlp(kind="moe", experts=rng.choice((4, 8)), experts_per_token=2, ffn=hidden,
                         shared_experts=rng.choice((0, 1)))
        lead = rng.choice((0, 1, 2))
        blocks = [Block(count=count, mlp=mlp, attention=attention)
                  for count, mlp in ((lead, dense), (layers, mixture)) if count]
    return Model(name="toy", source="made up for a test", as_of="2026", kind="assumed", hidden=hidden,
                 vocab=rng.choice((8000, 32000, 128256)), tied=rng.random() < 0.5, norm="rmsnorm",
                 blocks=tuple(blocks), sequence_length=4096, global_batch=8)


def _precisions(rng: random.Random, stack: Stack, candidates: tuple[Candidate, ...]) -> tuple[str, ...]:
    low = "fp8" in stack.states and all("fp8" in one.gpu.peak for one in candidates)
    return ("bf16", "fp8") if low and rng.random() < 0.15 else ("bf16",)


def _space(rng: random.Random, question: Question, model: Model, only: dict[str, tuple[float, ...]]) -> Space:
    stack, sizes = question.stack, [one.node.gpus for one in question.candidates]
    return Space(model, question.candidates, question.precisions, question.sequence_length, question.global_batch,
                 MOST_GPUS if only else min(MOST_GPUS, rng.choice(sizes) * rng.choice((1, 1, 2, 3))),
                 tolerance=0.0 if only else rng.choice((0.0, 0.0, 0.0, 0.13, 0.3)), hybrid_shard=stack.hybrid_shard,
                 sequence_parallel=(1, 0) if stack.sequence_parallel and rng.random() < 0.3 else (1,),
                 expert_tp=(0, 1) if stack.expert_tp else (0,), no_sync=stack.accumulation,
                 schedules=tuple(SCHEDULES.index(name) for name in stack.schedules),
                 only=only)


def _facts(rng: random.Random, question: Question, space: Space, *, in_backward: bool) -> Facts:
    candidates = question.candidates
    precisions = [[computes(c, r, p) for p in question.precisions]
                  for c, r in zip(candidates, question.rates, strict=True)]
    sizes = [one.node.gpus for one in candidates]
    return Facts(space=space, stack=question.stack, node_gpus=np.array(sizes),
                 clustered=np.array([rng.random() < 0.95 for _ in candidates]), precisions=np.array(precisions),
                 fixed_gpus=rng.choice((space.max_gpus, sizes[0])) if rng.random() < 0.1 else None,
                 max_nodes=None if space.only else rng.choice((None, None, None, 1, 2)),
                 whole_sequences=_whole_sequences(question, space),
                 frozen_layers=question.tuning.trained_layers is not None, steps_in_backward=in_backward,
                 partial_nodes=rng.random() < 0.1)


def _whole_sequences(question: Question, space: Space) -> Ints:
    """Return the codes of what decides about sequence parallelism, where a layer is faster without."""
    names = (*SPLIT_BY, "ep")
    points = (dict(zip(names, values, strict=True)) for values in product(*(domain(name, space) for name in names)))
    table = from_rows([row | {"dp": row["ep"]} for row in points if row["tp"] > 1], space.global_batch)
    if len(space.sequence_parallel) == 1 or not len(table):
        return np.zeros(0, np.int64)
    return split_code(table.columns)[faster_whole(question, table)]


def _some_point(rng: random.Random, facts: Facts) -> dict[str, float]:
    """Return a legal point of the grid, by trying some at random; an empty one where none of those is legal."""
    draw, columns = np.random.default_rng(rng.randrange(2**32)), {}
    for axis in AXES:
        values = np.array(domain(axis.name, facts.space), column_type(axis.name))
        resting = draw.random(DRAWS) > (1.0 if axis.name in FREE else 0.3)
        columns[axis.name] = values[np.where(resting, 0, draw.integers(0, len(values), DRAWS))]
    passing = np.flatnonzero(passes(columns, facts, RULES))
    return {name: column[passing[0]].item() for name, column in columns.items()} if len(passing) else {}


def _thinned(rng: random.Random, space: Space, kept: dict[str, float]) -> dict[str, tuple[float, ...]]:
    """Return domains of which values were dropped at random until the grid is small; what is `kept` stays.

    Most axes keep their first value too, at which the others are legal.
    """
    domains = {axis.name: domain(axis.name, space) for axis in AXES if axis.name != "candidate"}
    while len(space.candidates) * math.prod(map(len, domains.values())) > POINTS:
        name = max(domains, key=lambda name: len(domains[name]) * rng.random() * (len(domains[name]) > 1))
        values, free = domains[name], name in FREE or (name in OFFLOAD_AXES and rng.random() < 0.1)
        value = values[rng.randrange(0 if free else 1, len(values))]
        if value != kept.get(name):
            values.remove(value)
    return {name: tuple(values) for name, values in domains.items()}


def _job(rng: random.Random, question: Question, rows: Layouts) -> JobTerms:
    """Return a job whose limits lie around what one layout takes."""
    time, at = time_terms(question, rows), int(rows.candidate[0])
    stages = (question.shape.layers * time.layer + time.first + time.last) / rows.pp
    steps, step = int(10 ** rng.uniform(1, 6)), float((rows.micro_batches * stages + time.step)[0])
    node, nodes = question.candidates[at].node, math.ceil(rows.gpus[0] / question.candidates[at].node.gpus)
    prices = tuple(rng.randint(10**6, 10**8) for _ in question.candidates)
    seconds, dollars = (steps * step * 10 ** rng.uniform(0, 0.9) for _ in range(2))
    facts, sooner = catalog().reliability, rng.choice((1, 1, 1e-2, 1e-3))
    # now and then nodes are away for long, so that spares pay, at least where many nodes do
    away = random.Random(prices[-1])
    longer = away.choice((1, 1, 1, 10, 30, 300))
    hurried = longer > 1 and away.random() < 0.6
    return JobTerms(tokens=steps * question.global_batch * question.sequence_length + rng.randint(0, 10**4),
                    sequence_length=question.sequence_length, checkpoint_bytes=question.shape.total * 14.0,
                    reliability=facts.model_copy(update={"repair": facts.repair * longer, "gpu_hours_per_interruption":
                                                         facts.gpu_hours_per_interruption * sooner}),
                    objective=(rng.choice(OBJECTIVES), "time")[hurried], offers=_offers(rng, prices, seconds),
                    upper=tuple(rng.choice((1.0, 1.0, 0.9, 1.1, 1.3)) for _ in prices),
                    **errors(prices[0], len(prices), len(question.precisions)),
                    reclaims=tuple((math.inf, math.inf, math.inf, 10.0, 1000.0)[price % 5] for price in prices),
                    deadline_us=int(seconds * 1e6) if rng.random() < 0.25 else None,
                    budget_cents=int(dollars / 3600 * nodes * prices[at] / 1e4) if rng.random() < 0.25 else None,
                    max_power_w=int(node.power.load * (nodes + rng.choice((0, 0, 1)))) if rng.random() < 0.12 else None)


def _offers(rng: random.Random, prices: tuple[int, ...], seconds: float) -> tuple[FleetOffer, ...]:
    """Return one offer a candidate: few nodes, a commitment, or a price that depends on the count, now and then."""
    apart = random.Random(prices[0])
    most = tuple(rng.choice((None, None, None, None, 1, 2)) for _ in prices)
    least = tuple(int(seconds * 1e6) if apart.random() < 0.1 else 0 for _ in prices)
    by_count = tuple(partial(_by_count, price) if apart.random() < 0.1 else None for price in prices)
    return tuple(FleetOffer(at, at, price, most[at], least[at], by_count[at]) for at, price in enumerate(prices))


def _by_count(price: int, nodes: int) -> int:
    """Return a price that jumps where a network would need another tier."""
    return price // 2 + price * (1 + (nodes > 2)) // nodes


def _cut(rng: random.Random, question: Question, rows: Layouts, at: int) -> Candidate:
    """Return a candidate with GPU, host and flash memory around what one layout needs."""
    base, stack, each = question.candidates[at], question.stack, question.shape.layers / rows.pp[0]
    # all states outside the GPU, and weights where the stack has that
    weights = np.full(1, float(bool(stack.offload.parameters)))
    inside, out = (memory_terms(question, one) for one in (rows, rows.replace(offload=np.ones(1),
                                                                              offload_parameters=weights)))
    least, most, offloaded = (_held(question, memory, rows, mode)
                              for memory, mode in ((inside, -1), (inside, 0), (out, -1)))
    tight = bool(stack.offload.optimizer) and rng.random() < 0.3
    room = (offloaded * 0.95 + (least - offloaded) * rng.random() if tight
            else least * rng.uniform(0.9, 1.4) + (most - least) * rng.uniform(0, 1.3))
    usable = question.memory_margins[-1] * (stack.allocator_ratio * room + stack.context_bytes
                                            + float(inside.communicators[0]))
    gpu = base.gpu.model_copy(update={"usable_memory": min(usable, base.gpu.usable_memory)})
    need, host, flash = float(out.host_per_layer[0] * each), base.node.cpu.memory, base.node.nvme
    if rng.random() < 0.5:
        host = min(host, need * 10 ** rng.uniform(-0.3, 0.3) / question.kernels.host_memory_share)
    if flash and rng.random() < 0.5:
        flash = rng.choice((None, flash.model_copy(update={"capacity": need * 10 ** rng.uniform(-0.4, 0.5)})))
    node = base.node.model_copy(update={"cpu": base.node.cpu.model_copy(update={"memory": host}), "nvme": flash})
    return replace(base, node=node, gpu=gpu if tight or rng.random() < 0.7 else base.gpu)


def _held(question: Question, memory: MemoryTerms, rows: Layouts, mode: int) -> float:
    """Return about what a GPU of one layout holds with all its layers in one recompute mode."""
    layers = question.shape.layers
    ends, states = memory.first.every + memory.last.every, layers / rows.pp * memory.layer.every
    return float((ends + states + memory.gathered + memory.live + layers * memory.kept[:, mode])[0])


def passes(columns: Columns, facts: Facts, rules: Iterable[str]) -> Mask:
    """Say which points pass all of `rules`."""
    known = rules_of(facts.stack)
    keep: Mask = np.logical_and.reduce([known[name].passes(columns, facts) for name in rules])
    return keep


@dataclass(frozen=True)
class Plan:
    """One point of the grid that fits and keeps every limit. `rank` is the objective, then cost, GPUs and nodes."""

    rank: tuple[int, int, int, int, int]
    point: dict[str, float]
    staged: Staged
    spares: int
    most: int
    """Spares with which it takes the fewest node-hours."""

    @property
    def offloads(self) -> bool:
        """Whether anything is outside the GPU."""
        return any(self.point[name] for name in OFFLOAD_AXES)


@dataclass(frozen=True)
class Truth:
    """What a scenario is worth: its best plans, none where it is infeasible, and what memory had to do with it."""

    legal: int
    """Points that pass every rule."""
    best: tuple[Plan, ...]
    without_offload: int | None
    """The least value of the objective where nothing is offloaded."""
    with_endless_memory: int | None
    """The same if no memory were short."""


LEGALITY = tuple(name for name in RULES if name != "sp_wins")
"""The rules but the one that says what cannot win, which the brute force does not believe."""


def truth(case: Small) -> Truth:
    """Try every point of the grid."""
    rows = _legal(case)
    if not len(rows):
        return Truth(0, (), None, None)
    time, memory = time_terms(case.question, rows), memory_terms(case.question, rows)
    prices, plans, endless = _Prices(case, rows, time), list[Plan](), list[int]()
    for row in range(len(rows)):
        problem, point = staging_problem(case.question, rows, time, memory, row), rows.row(row)
        for now in (problem, None if any(point[name] for name in OFFLOAD_AXES) else _endless(problem)):
            found = now and _staged(now)
            rank = found and prices.rank(row, problem, found)
            if found and rank and now is problem:
                plans.append(Plan(rank, point, found, rank[4] - prices.nodes[row], prices.most[row]))
            elif rank:
                endless.append(rank[0])
    best = min((plan.rank for plan in plans), default=None)
    return Truth(len(rows), tuple(plan for plan in plans if plan.rank == best),
                 min((plan.rank[0] for plan in plans if not plan.offloads), default=None), min(endless, default=None))


def _legal(case: Small) -> Layouts:
    """Return the points of the whole grid that are legal."""
    domains = [domain(axis.name, case.space) for axis in AXES]
    places = np.indices([len(values) for values in domains]).reshape(len(domains), -1)
    columns = {axis.name: np.array(values, column_type(axis.name))[place]
               for axis, values, place in zip(AXES, domains, places, strict=True)}
    keep = passes(columns, case.facts, LEGALITY)
    columns = {name: column[keep] for name, column in columns.items()}
    batches = [_nearest(case.space.global_batch, each) for each in (columns["dp"] * columns["micro_batch"]).tolist()]
    return Layouts(**columns, micro_batches=np.array(batches, np.int64))


def _nearest(global_batch: int, each: int) -> int:
    """Return the number of micro-batches, at least one, whose `each` sequences come nearest the global batch."""
    return max(range(1, global_batch + 2), key=lambda count: (-abs(count * each - global_batch), count))


@lru_cache(maxsize=100_000)
def _staged(problem: StagingProblem) -> Staged | None:
    """Return the best of all splits; a stage that leaves the others less than their least is not tried."""
    spare = max(0, problem.layers - sum(problem.min_layers))
    most = tuple(min(low + spare, high) for low, high in zip(problem.min_layers, problem.max_layers, strict=True))
    return exhaustive_staging(replace(problem, max_layers=most))


def _endless(problem: StagingProblem) -> StagingProblem:
    """Return the problem as if memory were free, so that all layers are in the mode that takes least."""
    fixed, none = problem.min_layers == problem.max_layers, (0,) * problem.stages
    return replace(problem, keep_units=(0, 0, 0), state_units=0, fixed_units=none, backward_units=0,
                   backward_fixed=none, in_flight=(1,) * problem.stages, shared=(),
                   max_layers=problem.max_layers if fixed else (problem.layers,) * problem.stages,
                   mixes=tuple((mode,) for mode in sorted({mode for mix in problem.mixes for mode in mix})))


class _Prices:
    """Durations, costs, energy and limits of the points of one scenario, from their definitions."""

    def __init__(self, case: Small, rows: Layouts, time: TimeTerms) -> None:
        self.job, self.rows, self.time, self.candidates = case.job, rows, time, case.question.candidates
        node_gpus = [self.candidates[one].node.gpus for one in rows.candidate.tolist()]
        self.gpus = [math.prod(degrees) for degrees in zip(*(
            getattr(rows, name).tolist() for name in ("tp", "cp", "dp", "pp")), strict=True)]
        self.nodes = [math.ceil(Fraction(gpus, each)) for gpus, each in zip(self.gpus, node_gpus, strict=True)]
        named = np.array(self.gpus), np.array(self.nodes)
        full = goodput(self.job.reliability, *named, self.job.checkpoint_bytes, self._reclaims())
        usual = spare_nodes(self.job.reliability, *named, self._reclaims())
        self.most = usual.tolist()
        self.shares = list(islice((full * up for up in running(self.job.reliability, *named, self._reclaims())),
                                  int(usual.max(initial=0)) + 1))

    def _reclaims(self) -> Floats:
        return np.array([self.job.reclaims[one] for one in self.rows.candidate.tolist()])

    def rank(self, row: int, problem: StagingProblem, found: Staged) -> tuple[int, int, int, int, int] | None:
        """Return objective, cents, us, GPUs and nodes of a staged point with its best spares; none if none may be."""
        useful = self._seconds(row, problem, found)
        every = range(self.most[row] + 1)
        return min(filter(None, (self._rank(row, n, useful / float(self.shares[n][row])) for n in every)), default=None)

    def _rank(self, row: int, spares: int, seconds: float) -> tuple[int, int, int, int, int] | None:
        """Return the same with so many spares."""
        job, at = self.job, int(self.rows.candidate[row])
        nodes = self.nodes[row] + spares
        micros = math.ceil(seconds / 1e-6)
        # doublings begun past the largest run that errors are known by
        past = next(n for n in range(100) if self.gpus[row] <= job.known * 2**n)
        upper = max(micros, math.ceil(seconds * (job.uppers[at][past] if job.uppers else job.upper[at]) / 1e-6))
        paid = math.ceil(seconds * job.means[at][int(self.rows.precision[row])][past] / 1e-6) if job.means else micros
        offer = job.offers[at]
        hourly = offer.by_count(nodes) if offer.by_count else offer.micro_usd_per_node_hour
        cents = math.ceil(Fraction(nodes * hourly * max(paid, offer.least_us), 36 * 10**12))
        watts = math.ceil(Fraction(self.candidates[at].node.power.load) * nodes)
        energy = math.ceil(Fraction(watts * micros, 3600 * 10**6))
        limits = ((upper, job.deadline_us), (cents, job.budget_cents), (watts, job.max_power_w),
                  (nodes, offer.max_nodes))
        if any(limit is not None and value > limit for value, limit in limits):
            return None
        value = {"cost": cents, "time": micros, "gpus": self.gpus[row], "energy": energy}[job.objective]
        return value, cents, micros, self.gpus[row], nodes

    def _seconds(self, row: int, problem: StagingProblem, found: Staged) -> float:
        """Return the seconds of the job's steps."""
        batch = int(self.rows.dp[row] * self.rows.micro_batch[row] * self.rows.micro_batches[row])
        steps = math.ceil(Fraction(self.job.tokens, batch * self.job.sequence_length))
        stages = [problem.extra_ns[stage] + sum((problem.layer_ns + ns) * count
                                                for ns, count in zip(problem.mode_ns, counts, strict=True))
                  for stage, counts in enumerate(found.counts)]
        parts = problem.bubble_parts
        pipeline = (problem.micro_batches * parts - 1) * max(stages) + sum(stages)
        step = (pipeline * (1e-9 * problem.unit_ns) / parts + float(self.time.step[row])) * float(self.time.jitter[row])
        return steps * step
