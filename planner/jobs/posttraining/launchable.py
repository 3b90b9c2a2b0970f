"""What ways of reinforcement learning a target of `planner launch` can be told, where a question is held to that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planner.catalog.load import Catalog
from planner.catalog.releases import Target
from planner.catalog.stack import AxisValue, Conflict
from planner.layouts.axes import RECOMPUTE
from planner.scenario.posttraining import PostTraining
from planner.scenario.workload import AUTO


@dataclass(frozen=True, slots=True)
class Tellable:
    """The targets that a way has to be tellable to: one of them, and any way where there are none."""

    targets: Sequence[Target] = ()
    asked: Mapping[str, AxisValue] = field(default_factory=dict)
    """What the question says of every way."""

    def admits(self, facts: Mapping[str, AxisValue]) -> bool:
        """Say whether some target can be told what is known of a way so far."""
        return not self.targets or any(_tells(target, {**self.asked, **facts}) for target in self.targets)


def tellable(asked: PostTraining, framework: str, catalog: Catalog) -> Tellable:
    """Return what a way of a framework is held to."""
    if asked.launchable is None:
        return Tellable()
    auto = asked.launchable == AUTO
    names = catalog.releases.of_stack(framework, work="posttraining") if auto else [asked.launchable]
    facts: dict[str, AxisValue] = {"method": asked.method, "tuning": asked.tuning, "reward": asked.reward.by,
                                   "ahead": int(asked.policy_lag > 0)}
    return Tellable([catalog.releases.target(name) for name in names], facts)


def row_facts(row: Mapping[str, float], trainer: str, answers: int) -> dict[str, AxisValue]:
    """Return what a target is told of a trainer's layout, which learns from so many answers of a step."""
    named: dict[str, AxisValue] = {axis: row.get(axis, 1) for axis in ("tp", "pp", "cp", "ep", "dp")}
    return {**named, "trainer": trainer, "zero": row.get("zero", 0), "offload": row.get("offload", 0.0),
            "recompute": RECOMPUTE[int(row.get("recompute", 0))], "even_answers": int(answers % row["dp"] == 0)}


def split_facts(trainer: int, rollouts: int, node_gpus: int, *, same: bool) -> dict[str, AxisValue]:
    """Return what a target is told of who has which GPUs; `same` where all are of one node type."""
    whole = all(gpus <= node_gpus or gpus % node_gpus == 0 for gpus in (trainer, rollouts))
    together = trainer + rollouts <= node_gpus or trainer % node_gpus == rollouts % node_gpus == 0
    return {"placement": "disaggregated" if rollouts else "colocated", "whole_nodes": int(whole),
            "rollouts_node": int(same), "shared_nodes": int(together)}


def replica_facts(tp: int, pp: int, ep: int, dp: int) -> dict[str, AxisValue]:
    """Return what a target is told of replicas; of experts whether they are split, over all of one or a part."""
    return {"rollout_tp": tp, "rollout_pp": pp, "rollout_dp": dp, "rollout_copies": int(dp > 1),
            "rollout_stages": int(pp > 1),
            "rollout_ep": "one" if ep == 1 else "whole" if ep == tp * dp else "part"}


def _tells(target: Target, facts: Mapping[str, AxisValue]) -> bool:
    return all(facts[axis] in values for axis, values in target.only.items() if axis in facts) and not any(
        _applies(refusal, facts) for refusal in target.refuses)


def _applies(refusal: Conflict, facts: Mapping[str, AxisValue]) -> bool:
    """Say whether all that a refusal speaks of is known, and so."""
    return all(facts.get(axis) in values for axis, values in refusal.at.items()) and all(
        float(facts.get(axis, 0)) >= least for axis, least in refusal.together.items())
