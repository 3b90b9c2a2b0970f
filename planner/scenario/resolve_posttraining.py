"""The open ends of a question of reinforcement learning, filled in from the framework and from what is usual."""

from __future__ import annotations

from typing import Literal

from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.catalog.posttraining import PostTrainingLaw
from planner.catalog.releases import Target
from planner.scenario.called import with_a_count
from planner.scenario.default import Default, Defaults
from planner.scenario.hardware_names import candidate_nodes
from planner.scenario.lengths import Length
from planner.scenario.model_notes import generates, text_part
from planner.scenario.pool import named, pool, text
from planner.scenario.posttraining import UNCOMPARED, PostTraining, PostTrainingScenario
from planner.scenario.usual import counted_for_time, counts_its_gpus
from planner.scenario.workload import AUTO
from planner.yaml_io import Document


def resolve_posttraining(scenario: PostTrainingScenario, catalog: Catalog, document: Document
                         ) -> tuple[PostTrainingScenario, Defaults]:
    """Return `scenario` with the catalog's names and no open ends, and the defaults that closed them.

    Raises InputError.
    """
    work, defaults = resolved_posttraining(scenario.workload, catalog, document)
    objective = scenario.objective
    if work.steps is None:
        bound = next((name for name in ("deadline", "budget") if getattr(scenario.limits, name) is not None), None)
        if bound is not None:
            raise document.error(("limits", bound), f"{bound} is of a whole job: how long is it? give steps, or "
                                 "samples and epochs")
        work = work.model_copy(update={"steps": 1})
        # whoever names a machine asks what it does with a step, not how little of it would do
        unless: Literal["cost", "gpus"] = "cost" if _names_a_machine(scenario) else "gpus"
        objective = objective if "objective" in scenario.model_fields_set else unless
        looked = {"cost": "the cheapest step on what is named is", "gpus": "the fewest GPUs are"}[unless]
        defaults.append(Default(name="steps", value="1", why="no amount of work is given: times and money are of one "
                                f"step, and unless told otherwise {looked} looked for"))
    supply = pool(scenario.hardware, scenario.sourcing, scenario.limits, catalog, document, defaults)
    timed = scenario.workload.steps is not None or scenario.workload.samples is not None
    if timed and "objective" not in scenario.model_fields_set and counts_its_gpus(scenario, supply):
        objective = "time"
        defaults.append(counted_for_time())
    return scenario.model_copy(update={"workload": work, "objective": objective, **supply}), defaults


def _names_a_machine(scenario: PostTrainingScenario) -> bool:
    """Say whether a question counts its GPUs or nodes, or owns them."""
    limits = scenario.limits
    return any((limits.gpus, limits.max_gpus, limits.max_nodes, scenario.sourcing.own,
                with_a_count(scenario.hardware.candidates)))


def resolved_posttraining(work: PostTraining, catalog: Catalog, document: Document,
                          at: tuple[str | int, ...] = ("workload",)) -> tuple[PostTraining, Defaults]:
    """Return a workload with the catalog's names and what is usual, and what decided it. Raises InputError."""
    law, changed, defaults = catalog.posttraining_law, dict[str, object](), Defaults()
    for key in ("model", "critic", "reward_model"):
        name = getattr(work, key)
        if name is not None:
            with named(document, *at, key):
                model = catalog.model(name) if key != "model" else generates(
                    catalog.model(name), f"it draws no answers to learn from by {work.method}")
                changed[key] = model.name
                defaults += text_part([model])
    if work.engine is not None:
        with named(document, *at, "engine"):
            changed["engine"] = catalog.engine(work.engine).name
    if work.launchable is not None:
        work = work.model_copy(update={"launchable": catalog.releases.named(work.launchable, "posttraining")})
        changed["launchable"] = work.launchable
    stacks = _told(work, catalog, document, at)
    changed["stack"] = tuple(dict.fromkeys(stacks))
    _check(work, stacks, catalog, document, at)
    if work.rollouts_on:
        with named(document, *at, "rollouts_on"):
            changed["rollouts_on"] = tuple(candidate_nodes(work.rollouts_on, catalog))
    output = work.output
    if output.by == "mean" and not output.spread:
        output = Length("mean", output.value, law.spread)
        changed["output"] = output
        defaults.append(Default(name="output", value=f"{output.value:g} tokens with a cv of {law.spread:g}",
                                why="answers are never alike; {mean: 1500, cv: 0.8} says how much they differ"))
    if work.max_model_len is None:
        longest, why = _longest(work.input.mean, output, catalog.model(work.model), law.longest)
        changed["max_model_len"] = longest
        defaults.append(Default(name="max_model_len", value=str(longest), why=why))
    if work.samples is not None:
        changed |= {"steps": work.total_steps, "samples": None, "epochs": None}
        defaults.append(Default(name="steps", value=str(work.total_steps), why=f"{work.epochs or 1:g} x "
                                f"{work.samples:,} prompts in steps of {work.prompts:,}"))
    if work.reference is None:
        uses = work.method not in UNCOMPARED and any(law.frameworks[name].reference for name in stacks)
        changed["reference"] = "initial" if uses else "none"
        defaults.append(Default(name="reference", value=str(changed["reference"]), why=f"as {', '.join(stacks)} does"))
    return (said := work.model_copy(update=changed)), [*defaults, *_unsaid(said, work.model_fields_set)]


def _longest(prompt: float, output: Length, model: Model, share: float) -> tuple[int, str]:
    """Return the tokens of a prompt and the longest answer that is allowed, and why they are so many."""
    longest = round(prompt + max(output.quantile(share), output.mean))
    has = max(model.sequence_length, round(prompt + output.mean) + 1)
    if model.positions == "learned" and longest > has:
        cut = 1 - output.below(has - prompt)
        return has, f"{model.name} has no more positions; the {cut:.1%} of answers that would be longer end there"
    return longest, f"a prompt and the answer that {share:.1%} do not exceed"


def _unsaid(work: PostTraining, stated: set[str]) -> Defaults:
    """Return the keys that a question leaves as they are unless told."""
    why = {"input": "the most that verl's example on GSM8K has, as are answers of 1024"}
    return [Default(name=key, value=f"{work.input.mean:g} tokens" if key == "input" else text(getattr(work, key)),
                    why=why.get(key, "the default"))
            for key in ("input", "method", "tuning", "prompts", "samples_per_prompt", "reward", "policy_lag",
                        "placement", "stack") if key not in stated]


def _told(work: PostTraining, catalog: Catalog, document: Document, at: tuple[str | int, ...]) -> list[str]:
    """Return the frameworks that are searched: where files are to be written, those that can be told of it."""
    law, releases = catalog.posttraining_law, catalog.releases
    if work.launchable in (None, AUTO):
        stacks = _frameworks(work, law, document, at, None)
        with named(document, *at, "stack"):
            told = [name for name in stacks if work.launchable is None or releases.of_stack(name, work="posttraining")]
            return told or releases.some(stacks[0], work="posttraining")
    with named(document, *at, "launchable"):
        target = releases.of_kind(work.launchable, "posttraining")
    _check_told(work, target, document, at)
    return _frameworks(work, law, document, at, target)


def _frameworks(work: PostTraining, law: PostTrainingLaw, document: Document, at: tuple[str | int, ...],
                target: Target | None) -> list[str]:
    """Return the frameworks by their catalog names. Raises InputError for one that is none, or that is not a target."""
    if work.stack == (AUTO,) and target is not None:
        return list(target.stacks[:1])
    if work.stack == (AUTO,):
        able = [name for name, each in law.frameworks.items() if each.quantized] if work.tuning == "qlora" else []
        return able or [law.usual]
    stacks = []
    for said in work.stack:
        known = law.framework(said)
        if known is None:
            raise document.error((*at, "stack"), f"{said!r} is no framework of reinforcement learning: "
                                 f"{', '.join(law.frameworks)}")
        if target is not None and known not in target.stacks:
            raise document.error((*at, "stack"), f"{known} is not what {work.launchable} starts: "
                                 f"{', '.join(target.stacks)}")
        stacks.append(known)
    return stacks


def _check_told(work: PostTraining, target: Target, document: Document, at: tuple[str | int, ...]) -> None:
    """Raise InputError for a key of the question that a target has no words for."""
    for key, value in (("method", work.method), ("tuning", work.tuning), ("reward", work.reward.by)):
        if value not in (has := target.only.get(key, (value,))):
            raise document.error((*at, key), f"{work.launchable} cannot be told {key} {value} (it has "
                                 f"{', '.join(map(str, has))})")


def _check(work: PostTraining, stacks: list[str], catalog: Catalog, document: Document, at: tuple[str | int, ...]
           ) -> None:
    """Raise InputError for what no framework named can do."""
    frameworks = [catalog.posttraining_law.frameworks[name] for name in stacks]
    if work.tuning == "qlora" and not any(each.quantized for each in frameworks):
        able = " or ".join(name for name, each in catalog.posttraining_law.frameworks.items() if each.quantized)
        raise document.error((*at, "tuning"), f"{', '.join(stacks)} trains no adapters on weights of four bits in "
                             f"reinforcement learning; stack {able} would")
    if work.policy_lag > (most := max(each.most_lag for each in frameworks)):
        raise document.error((*at, "policy_lag"), f"{', '.join(stacks)} draws answers at most {most} steps "
                             f"behind the policy, got {work.policy_lag}")
    if work.placement != "any" and not any(work.placement in each.placements for each in frameworks):
        raise document.error((*at, "placement"), f"{', '.join(stacks)} has no {work.placement} rollouts")
    if work.engine is not None and not any(catalog.engine(work.engine).name in each.engines for each in frameworks):
        known = ", ".join(dict.fromkeys(engine for each in frameworks for engine in each.engines))
        raise document.error((*at, "engine"), f"{', '.join(stacks)} draws answers with {known}")
