"""Validators that share nothing with the solvers: they recompute every constraint and number of an answer."""

from __future__ import annotations

from planner.solver.column import Column
from planner.solver.fleet.covering import Cover, Covered, Supplied
from planner.solver.fleet.problem import Choice, FleetOffer, RunProblem, Solution
from planner.solver.fleet.schedule import Schedule
from planner.solver.staging.problem import Modes, Staged, StagingProblem


def check_staging(problem: StagingProblem, staged: Staged) -> list[str]:
    """Return what is wrong with `staged` as an answer to `problem`; empty when nothing is."""
    if not len(staged.layers) == len(staged.counts) == len(staged.stage_ns) == problem.stages:
        return [f"the answer does not have {problem.stages} stages"]
    return staging_violations(problem, staged) + _staging_numbers(problem, staged)


def staging_violations(problem: StagingProblem, staged: Staged) -> list[str]:
    """Return the constraints of `problem` that the layers and counts of `staged` break."""
    violations = []
    if sum(staged.layers) != problem.layers:
        violations.append(f"stages hold {sum(staged.layers)} layers, the model has {problem.layers}")
    used = {mode for row in staged.counts for mode, count in enumerate(row) if count}
    if not any(used <= set(mix) for mix in problem.mixes):
        violations.append(f"modes {sorted(used)} may not be used together")
    for stage, (layers, counts) in enumerate(zip(staged.layers, staged.counts, strict=True)):
        if sum(counts) != layers:
            violations.append(f"stage {stage}: modes {counts} do not add up to {layers} layers")
        violations += [f"stage {stage}: {what}" for what in stage_violations(problem, stage, counts)]
    for number, limit in enumerate(problem.shared):
        need = limit.fixed + sum(limit.units_per_layer * staged.layers[stage] for stage in limit.stages)
        if need > limit.capacity:
            violations.append(f"shared limit {number}: needs {need} of {limit.capacity} units")
    return violations


def stage_violations(problem: StagingProblem, stage: int, counts: Modes) -> list[str]:
    """Return what one stage breaks on its own with `counts` layers in each mode."""
    layers, violations = sum(counts), []
    if min(counts) < 0:
        violations.append(f"modes {counts} are negative")
    if not problem.min_layers[stage] <= layers <= problem.max_layers[stage]:
        violations.append(f"{layers} layers, allowed {problem.min_layers[stage]} to {problem.max_layers[stage]}")
    kept = sum(problem.keep_units[mode] * counts[mode] for mode in range(len(counts)))
    held = problem.fixed_units[stage] + problem.state_units * layers
    loss = problem.chunks * held + problem.in_flight[stage] * kept
    if loss > problem.chunks * problem.capacity_units:
        violations.append(f"loss phase needs {loss} of {problem.chunks * problem.capacity_units} units")
    backward = problem.backward_fixed[stage] + problem.backward_units * layers
    if backward > problem.capacity_units:
        violations.append(f"backward phase needs {backward} of {problem.capacity_units} units")
    return violations


def _staging_numbers(problem: StagingProblem, staged: Staged) -> list[str]:
    violations = []
    for stage, (layers, counts) in enumerate(zip(staged.layers, staged.counts, strict=True)):
        time = problem.extra_ns[stage] + problem.layer_ns * layers
        time += sum(problem.mode_ns[mode] * counts[mode] for mode in range(len(counts)))
        if time != staged.stage_ns[stage]:
            violations.append(f"stage {stage}: takes {time} ns, the answer says {staged.stage_ns[stage]}")
    passes = problem.micro_batches * problem.bubble_parts - 1
    objective = passes * max(staged.stage_ns) + sum(staged.stage_ns)
    if objective != staged.objective:
        violations.append(f"objective is {objective}, the answer says {staged.objective}")
    return violations


def check_run(problem: RunProblem, solution: Solution) -> list[str]:
    """Return what is wrong with `solution` as an answer to `problem`; empty for an answer without a choice."""
    if solution.choice is None:
        return [f"there is no choice after {solution.status}"] if solution.status in ("optimal", "feasible") else []
    if solution.status in ("infeasible", "undecided"):
        return [f"there is a choice after {solution.status}"]
    column, offer = solution.choice
    value = {"cost": _cents(column, offer), "time": column.duration_us, "gpus": column.gpus,
             "energy": column.energy_wh}[problem.objective]
    violations = [] if column in problem.columns else [f"column {column.key} is not one of the columns"]
    if offer not in problem.offers or offer.candidate != column.candidate:
        violations.append(f"offer {offer.key} does not sell candidate {column.candidate}")
    return [*violations, *over_limits(problem, solution.choice), *claims(solution, problem.objective, value)]


def claims(answer: Solution | Covered | Schedule, what: str, value: int) -> list[str]:
    """Return what is wrong with the value, bound and status that an answer claims; `value` is recomputed."""
    violations = []
    if value != answer.value:
        violations.append(f"{what} is {value}, the answer says {answer.value}")
    if answer.bound is not None and answer.bound > value:
        violations.append(f"the bound {answer.bound} is above the value {value}")
    if answer.status == "optimal" and answer.bound != answer.value:
        violations.append(f"optimal with bound {answer.bound} and value {answer.value}")
    return violations


def over_limits(problem: RunProblem, choice: Choice) -> list[str]:
    """Return the limits that a choice breaks."""
    column, offer = choice
    limits, nodes = problem.limits, column.nodes + column.spare_nodes
    uses = (("nodes of the offer", nodes, offer.max_nodes), ("us", column.upper_us, limits.deadline_us),
            ("cents", _cents(column, offer), limits.budget_cents), ("watts", column.power_w, limits.max_power_w))
    return [f"{what}: {have} against a limit of {limit}" for what, have, limit in uses
            if limit is not None and have > limit]


def _cents(column: Column, offer: FleetOffer) -> int:
    """Return the cost by definition: micro-USD times us over an hour, rounded up to a cent."""
    quantum, nodes = 3_600_000_000 * 10_000, column.nodes + column.spare_nodes
    price = offer.by_count(nodes) if offer.by_count else offer.micro_usd_per_node_hour
    return -(-nodes * price * max(column.mean_us or column.duration_us, offer.least_us) // quantum)


def check_cover(problem: Cover, covered: Covered) -> list[str]:
    """Return what is wrong with replicas and nodes as an answer to `problem`; empty for an answer without any."""
    if covered.value is None:
        return ["there are replicas after " + covered.status] if covered.replicas else []
    wrong, periods = [], range(len(problem.hours))
    counts = [{key: replicas[p] for key, replicas in covered.replicas.items()} for p in periods]
    nodes = [_on_supplies(problem, count) for count in counts]
    held = tuple(max(of) for of in zip(*nodes, strict=True))
    needed = _answering(problem, counts)
    groups = {problem.alike(nodes_of) for nodes_of, most in zip(problem.supplies, held, strict=True) if most}
    if len(groups) > 1:
        wrong.append(f"supplies of {len(groups)} groups are used: {sorted(groups)}")
    values = []
    for p in periods:
        wrong += [f"service {at} lacks replicas in period {p}" for at in needed
                  if _answered(problem, at, counts[p]) < problem.needs[at][p]]
        for supply, taken in zip(problem.supplies, nodes[p], strict=True):
            if covered.nodes[supply.key][p] != taken:
                wrong.append(f"supply {supply.key} has {covered.nodes[supply.key][p]} nodes in period {p}, not {taken}")
            if taken > supply.most:
                wrong.append(f"supply {supply.key} has {supply.most} nodes, {taken} are taken in period {p}")
        used = _used(problem, counts[p], nodes[p], held)
        limits = {"cost": problem.micro_budget, "gpus": problem.max_gpus, "nodes": problem.max_nodes,
                  "energy": problem.max_watts}
        wrong += [f"{name} of period {p}: {used[name]} against a limit of {limit}" for name, limit in limits.items()
                  if limit is not None and used[name] > limit]
        values.append(used[problem.objective])
    value = max(values) if problem.objective == "gpus" else sum(
        hours * each for hours, each in zip(problem.hours, values, strict=True))
    if problem.changing:
        wrong += [f"supply {supply.key} has {supply.most} nodes, {both} are taken as period {p} begins"
                  for p in periods for supply, both in zip(problem.supplies, _beside(problem, counts, p), strict=True)
                  if both > supply.most]
        if problem.objective == "cost":
            value += sum(problem.change(supply) * (both - taken) for p in periods for supply, both, taken in zip(
                problem.supplies, _beside(problem, counts, p), nodes[p], strict=True))
    return [*wrong, *claims(covered, problem.objective, value)]


def _beside(problem: Cover, counts: list[dict[int, int]], period: int) -> tuple[int, ...]:
    """Return the nodes of each supply for the replicas of a period and of the one before, whichever are more."""
    before, now = counts[period - 1], counts[period]
    return _on_supplies(problem, {key: max(before[key], count) for key, count in now.items()})


def _answering(problem: Cover, counts: list[dict[int, int]]) -> list[int]:
    """Return the services that must answer: all, or where some are parts of one, those that have replicas."""
    if not problem.ranges:
        return list(range(len(problem.needs)))
    active = sorted({c.service for c in problem.columns if any(count.get(c.key, 0) for count in counts)})
    classes = [(problem.ranges[at][0], number) for at in active
               for number in range(problem.ranges[at][1], problem.ranges[at][2] + 1)]
    every = {(of, number) for of, first, last in problem.ranges for number in range(first, last + 1)}
    if sorted(classes) != sorted(every):
        raise RuntimeError(f"an independent check contradicts the solver: classes {classes} are answered, not {every}")
    return active


def _left(columns: list[Supplied], counts: dict[int, int], spares: int) -> int:
    """Return micro-requests/s of a pool without its strongest replicas."""
    total = 0
    for column in sorted(columns, key=lambda c: -c.micro_rate):
        count = counts.get(column.key, 0)
        total += max(count - spares, 0) * column.micro_rate
        spares = max(spares - count, 0)
    return total


def _without_nodes(problem: Cover, mine: list[Supplied], counts: dict[int, int], spares: int) -> int:
    """Return what a service answers without as many nodes of each pool, each as strong as its strongest could be."""
    def left(pool: list[Supplied]) -> int:
        nodes = [problem.fail_together(c) * c.micro_rate for c in pool if counts.get(c.key, 0)]
        return max(0, sum(counts.get(c.key, 0) * c.micro_rate for c in pool) - spares * max(nodes, default=0))

    return left([c for c in mine if c.role == "whole"]) + sum(
        min(left([c for c in mine if (c.role, c.supply) == (role, supply.key)]) for role in ("prefill", "decode"))
        for supply in problem.supplies)


def _answered(problem: Cover, service: int, counts: dict[int, int]) -> int:
    """Return micro-requests/s that a service answers with its spares failed; pools apart what the weaker does."""
    mine, spares = [c for c in problem.columns if c.service == service], problem.spares[service]
    if problem.whole_nodes and problem.whole_nodes[service]:
        return _without_nodes(problem, mine, counts, spares)
    total = _left([c for c in mine if c.role == "whole"], counts, spares)
    for supply in problem.supplies:
        total += min(_left([c for c in mine if (c.role, c.supply) == (role, supply.key)], counts, spares)
                     for role in ("prefill", "decode"))
    return total


def _on_supplies(problem: Cover, counts: dict[int, int]) -> tuple[int, ...]:
    """Return the nodes of each supply, filled one by one with the largest replicas first, each where it fits."""
    nodes_on = []
    for supply in problem.supplies:
        nodes, free = 0, list[tuple[int, int]]()
        for column in sorted((c for c in problem.columns if c.supply == supply.key), key=lambda c: -c.gpus):
            free, left = _onto(free, column.gpus, counts.get(column.key, 0))
            whole, rest = divmod(column.gpus, supply.node_gpus)
            if whole:
                nodes, opened = nodes + left * (whole + bool(rest)), [(supply.node_gpus - rest, left if rest else 0)]
            else:
                more = -(-left // (supply.node_gpus // rest))
                nodes, opened = nodes + more, _onto([(supply.node_gpus, more)], rest, left)[0]
            free += opened
        nodes_on.append(nodes)
    return tuple(nodes_on)


def _onto(free: list[tuple[int, int]], size: int, replicas: int) -> tuple[list[tuple[int, int]], int]:
    """Put replicas of `size` GPUs on the first of nodes with room, given as runs of free GPUs and how many nodes have
    them; return what is free then, and how many replicas found no place.
    """
    then: list[tuple[int, int]] = []
    for gpus, nodes in free:
        each = gpus // size
        full, last = divmod(min(replicas, nodes * each), each) if each else (0, 0)
        replicas -= full * each + last
        then += [(gpus - each * size, full), (gpus - last * size, int(last > 0)), (gpus, nodes - full - (last > 0))]
    return [(gpus, nodes) for gpus, nodes in then if gpus and nodes], replicas


def _used(problem: Cover, counts: dict[int, int], nodes: tuple[int, ...], held: tuple[int, ...]) -> dict[str, int]:
    """Return money, GPUs, nodes and power of a period; what is always paid costs what is held."""
    paid = [h if supply.always else n for supply, n, h in zip(problem.supplies, nodes, held, strict=True)]
    return {"cost": sum(supply.micro_usd(n) if n else 0 for supply, n in zip(problem.supplies, paid, strict=True)),
            "gpus": sum(c.gpus * counts.get(c.key, 0) for c in problem.columns), "nodes": sum(nodes),
            "energy": sum(supply.watts * n for supply, n in zip(problem.supplies, nodes, strict=True))}
