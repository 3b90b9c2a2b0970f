"""Fleet: one column and one offer for every workload, within pools, budget and deadlines."""

from __future__ import annotations

from planner.solver.fleet.problem import Choice, FleetOffer, FleetProblem, Pick, Proof, Solution

__all__ = ["Choice", "FleetOffer", "FleetProblem", "Pick", "Proof", "Solution"]
