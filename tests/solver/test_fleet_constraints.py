"""Each constraint of the fleet model alone: one fixing that must be feasible, one that must not."""

from dataclasses import replace

import pytest
from ortools.sat.python import cp_model

from planner.solver.fleet import constraints
from planner.solver.fleet.problem import FleetOffer, FleetProblem
from planner.solver.fleet.variables import make
from tests.solver.test_fleet import COLUMNS, HOUR, THREE

TWO = FleetProblem((COLUMNS[:2], (replace(COLUMNS[0], key=7, spare_nodes=1),)), (FleetOffer(1, 0, 10**6),))
ALL = {"take[0,1,1]": 1, "take[0,2,1]": 0, "take[1,7,1]": 1}
OTHER = {"take[0,1,1]": 0, "take[0,2,1]": 1, "take[1,7,1]": 1}
NONE = dict.fromkeys(ALL, 0)

# workload 0 takes 2 nodes for 4 h or 4 for 2 h, workload 1 takes 2 + 1 for 4 h; a node-hour is 1 USD
CASES = [
    (constraints.one_pick_each, TWO, ALL, NONE),
    (constraints.one_pick_each, TWO, OTHER, {"take[0,1,1]": 1, "take[0,2,1]": 1}),
    (constraints.offer_sizes, replace(TWO, offers=(FleetOffer(1, 0, 10**6, 5),)), ALL, OTHER),
    (constraints.deadline, replace(THREE, deadline_us=4 * HOUR), {"take[0,1,1]": 1}, {"take[0,3,2]": 1}),
    (constraints.deadline, replace(THREE, deadline_us=4 * HOUR, deadline_on="duration"), {"take[0,1,1]": 1},
     {"take[0,3,2]": 1}),
    (constraints.budget, replace(THREE, budget_cents=800), {"take[0,1,1]": 1, "take[0,3,2]": 0},
     {"take[0,3,2]": 1, "take[0,1,1]": 1}),
    (constraints.budget, replace(TWO, budget_cents=1999), OTHER | {"take[1,7,1]": 0}, ALL),
    (constraints.budget, replace(TWO, budget_cents=2000), ALL, ALL | {"take[0,2,1]": 1}),
    (constraints.gpu_limit, replace(TWO, max_gpus=32), ALL, OTHER),
    (constraints.node_limit, replace(TWO, max_nodes=5), ALL, OTHER),
]


@pytest.mark.parametrize(("constraint", "problem", "holds", "breaks"), CASES,
                         ids=[f"{number}-{case[0].__name__}" for number, case in enumerate(CASES)])
def test_each_constraint_alone(constraint, problem, holds, breaks):
    for values, expected in ((holds, cp_model.OPTIMAL), (breaks, cp_model.INFEASIBLE)):
        model = cp_model.CpModel()
        variables = make(problem, model)
        constraint(problem, variables, model)
        for variable in (one for row in variables.taken for one in row):
            if variable.name in values:
                model.add(variable == values[variable.name])
        assert cp_model.CpSolver().solve(model) == expected
