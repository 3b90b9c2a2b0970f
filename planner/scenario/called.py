"""What a question calls its model and its method, where the answer calls them something else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from planner.catalog.spelling import canonical, joined
from planner.scenario.default import Default
from planner.scenario.hardware_names import is_counted
from planner.scenario.model_notes import DRAWN
from planner.scenario.portfolio import AnyQuestion, Portfolio
from planner.scenario.words import named

_OTHERS = {
    "dpo": "ipo cdpo rdpo robustdpo tdpo sppo apo nca", "kto": "bco", "simpo": "cpo",
    "grpo": "dapo gspo drgrpo", "reinforce": "reinforceplusplus reinforcepp", "rejection-sampling": "raft rft",
    "on-policy-distillation": "gkd", "lora": "rslora loraplus pissa"}
"""Methods that differ from another in their loss or start alone, by the name under which their step is planned."""
_DROPS = "dapo"
"""The one that draws answers anew where all to a prompt are as good, and learns from the others alone."""


def as_called(reference: object, overrides: Mapping[str, object], answered: object) -> list[Default]:
    """Return what is planned under another name than the question's, and why.

    reference: what a file holds, and overrides of it; `answered` is the workload that was resolved.
    """
    data = reference if isinstance(reference, Mapping) else getattr(reference, "data", None)
    inner = data.get("workload") if isinstance(data, Mapping) else None
    work = {**(inner if isinstance(inner, Mapping) else {}), **{
        path.removeprefix("workload."): value for path, value in overrides.items() if path.startswith("workload.")}}
    said = []
    method = work.get("method")
    known = named("workload.method", method)
    plain = joined(method.lower()) if isinstance(method, str) else ""
    if isinstance(known, str) and plain in _OTHERS.get(known, "").split():
        said.append(Default(name="method", value=f"{known} for {method}", why=f"{method} differs from {known} in its "
                            "loss or its start, and not in what a step takes" if plain != _DROPS else
                            f"{method} differs from {known} in its loss, and in the answers that it draws and drops"))
        if plain == _DROPS:
            said.append(Default(name=DRAWN, value="as many as are learned from", why=f"answers that {method} draws and "
                                "drops (dynamic sampling) are not counted: where it draws several batches a step, "
                                "generation takes as many times as long; that it has no reference is said by "
                                "reference: none"))
    model, shape = work.get("model"), getattr(answered, "model", None)
    if isinstance(model, str) and isinstance(shape, str) and "," not in model and (
            not _alike(joined(canonical(model)), joined(canonical(shape)))):
        said.append(Default(name="model", value=f"{shape} for {model}", why="models of one shape have one name, "
                            "and so have those tuned from it; a family with a size alone means its newest"))
    return said


def as_many(data: object, resolved: AnyQuestion) -> list[Default]:
    """Return that hardware such as 8xh100 names nodes of so many GPUs, of which a plan may take several.

    data: the question as it was asked.
    """
    hardware = data.get("hardware") if isinstance(data, Mapping) else None
    said = hardware.get("candidates") if isinstance(hardware, Mapping) else None
    if isinstance(resolved, Portfolio) or getattr(resolved.workload, "tokens", 0) is None or (
            (resolved.limits.gpus, resolved.limits.max_gpus, resolved.limits.max_nodes) != (None,) * 3):
        return []
    names = said.split(",") if isinstance(said, str) else said if isinstance(said, list) else []
    counted = with_a_count(name for name in names if isinstance(name, str))
    if not counted:
        return []
    return [Default(name="hardware", value=f"{', '.join(counted)}, as many such nodes as needed",
                    why="a count of GPUs that one machine has names the machine: --max-nodes 1 for one alone")]


def with_a_count(names: Iterable[str]) -> list[str]:
    """Return the names of hardware that begin with a number of GPUs: 8xh100."""
    return [name.strip() for name in names if is_counted(name)]


def _alike(one: str, other: str) -> bool:
    """Say whether two names differ in no more than what one leaves out at its end."""
    return one.startswith(other) or other.startswith(one)

