"""The general staging model in CP-SAT: what `exact` solves, and limits that stages share as well."""

from __future__ import annotations

from dataclasses import dataclass

from ortools.sat.python import cp_model

from planner.solver.engine import CpModel, run
from planner.solver.settings import Settings, Status
from planner.solver.staging.problem import MODES, Modes, Staged, StagingProblem, staged


@dataclass(frozen=True, slots=True)
class CpsatStaging:
    """How the solve ended; `bound` is a proven bound from below in ns, None when infeasible."""

    status: Status
    staged: Staged | None
    bound: int | None

    def proven(self) -> Staged | None:
        """Return the optimum, or None where none exists. Raises RuntimeError when a limit cut the proof short."""
        if self.status in {"optimal", "infeasible"}:
            return self.staged
        raise RuntimeError(f"staging is not proven: {self.status}")


@dataclass(frozen=True, slots=True)
class Variables:
    """Per stage its layers and its layers in each mode; the slowest stage in ns; which mix the job uses."""

    layers: list[cp_model.IntVar]
    counts: list[list[cp_model.IntVar]]
    slowest: cp_model.IntVar
    mixes: list[cp_model.IntVar]


def solve_cpsat(problem: StagingProblem, hint: Staged | None = None,
                settings: Settings | None = None) -> CpsatStaging:
    """Solve `problem` with one worker and a fixed seed by default; `hint` need not be feasible."""
    if any(low > high for low, high in zip(problem.min_layers, problem.max_layers, strict=True)):
        return CpsatStaging("infeasible", None, None)
    model = CpModel()
    variables = _variables(problem, model)
    add_constraints(problem, variables, model)
    if hint is not None:
        _hint(variables, hint, model)
    ending = run(model, objective(problem, variables), settings or Settings())
    if ending.value is None:
        return CpsatStaging(ending.status, None, ending.bound)
    rows: list[Modes] = [(ending.read(a), ending.read(b), ending.read(c)) for a, b, c in variables.counts]
    layout = staged(problem, tuple(rows))
    return CpsatStaging(ending.status, layout, ending.bound)


def _variables(problem: StagingProblem, model: cp_model.CpModel) -> Variables:
    stages = range(problem.stages)
    top = [min(problem.max_layers[s], problem.layers) for s in stages]
    layers = [model.new_int_var(min(problem.min_layers[s], top[s]), top[s], f"layers[{s}]") for s in stages]
    counts = [[model.new_int_var(0, top[s], f"count[{s},{k}]") for k in range(MODES)] for s in stages]
    per_layer = problem.layer_ns + max(problem.mode_ns)
    longest = max(problem.extra_ns[s] + per_layer * top[s] for s in stages)
    slowest = model.new_int_var(max(problem.extra_ns), longest, "slowest")
    mixes = [model.new_bool_var(f"mix[{number}]") for number in range(len(problem.mixes))]
    return Variables(layers, counts, slowest, mixes)


def add_constraints(problem: StagingProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """Add every constraint of the problem, one function each."""
    all_layers_placed(problem, variables, model)
    layer_limits(problem, variables, model)
    modes_add_up(problem, variables, model)
    one_mix(problem, variables, model)
    loss_phase_memory(problem, variables, model)
    backward_phase_memory(problem, variables, model)
    shared_memory(problem, variables, model)
    slowest_stage(problem, variables, model)


def all_layers_placed(problem: StagingProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """The stages hold the model: sum_s l_s = L."""
    model.add(cp_model.LinearExpr.sum(variables.layers) == problem.layers)


def layer_limits(problem: StagingProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """Every stage holds min_layers to max_layers."""
    for layers, low, high in zip(variables.layers, problem.min_layers, problem.max_layers, strict=True):
        model.add_linear_constraint(layers, low, high)


def modes_add_up(problem: StagingProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """Every layer of a stage runs in one mode: sum_k n[s, k] = l_s."""
    for layers, counts in zip(variables.layers, variables.counts, strict=True):
        model.add(cp_model.LinearExpr.sum(counts) == layers)


def one_mix(problem: StagingProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """The job uses the modes of one mix."""
    model.add_exactly_one(variables.mixes)
    for counts in variables.counts:
        for mode, count in enumerate(counts):
            mixes = zip(variables.mixes, problem.mixes, strict=True)
            allowed = [chosen for chosen, modes in mixes if mode in modes]
            model.add(count <= problem.layers * cp_model.LinearExpr.sum(allowed))


def loss_phase_memory(problem: StagingProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """States and the activations in flight fit, in units times v."""
    for stage in range(problem.stages):
        kept = cp_model.LinearExpr.weighted_sum(variables.counts[stage], problem.keep_units)
        states = problem.state_units * variables.layers[stage] + problem.fixed_units[stage]
        capacity = problem.chunks * problem.capacity_units
        model.add(problem.chunks * states + problem.in_flight[stage] * kept <= capacity)


def backward_phase_memory(problem: StagingProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """What the end of the backward pass needs fits, in units."""
    for layers, fixed in zip(variables.layers, problem.backward_fixed, strict=True):
        model.add(fixed + problem.backward_units * layers <= problem.capacity_units)


def shared_memory(problem: StagingProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """What stages share (the host memory of a node) fits, in units."""
    for limit in problem.shared:
        layers = cp_model.LinearExpr.sum([variables.layers[stage] for stage in limit.stages])
        model.add(limit.fixed + limit.units_per_layer * layers <= limit.capacity)


def slowest_stage(problem: StagingProblem, variables: Variables, model: cp_model.CpModel) -> None:
    """`slowest` is at least the time of every stage."""
    for stage in range(problem.stages):
        model.add(variables.slowest >= stage_time(problem, variables, stage))


def stage_time(problem: StagingProblem, variables: Variables, stage: int) -> cp_model.LinearExpr:
    """Return T_s in ns."""
    modes = cp_model.LinearExpr.weighted_sum(variables.counts[stage], problem.mode_ns)
    return modes + problem.layer_ns * variables.layers[stage] + problem.extra_ns[stage]


def objective(problem: StagingProblem, variables: Variables) -> cp_model.LinearExpr:
    """Return (m b - 1) max_s T_s + sum_s T_s in ns."""
    times = [stage_time(problem, variables, stage) for stage in range(problem.stages)]
    return problem.weight * variables.slowest + cp_model.LinearExpr.sum(times)


def _hint(variables: Variables, hint: Staged, model: cp_model.CpModel) -> None:
    for layers, value in zip(variables.layers, hint.layers, strict=True):
        model.add_hint(layers, value)
    for counts, row in zip(variables.counts, hint.counts, strict=True):
        for count, number in zip(counts, row, strict=True):
            model.add_hint(count, number)
    model.add_hint(variables.slowest, max(hint.stage_ns))
