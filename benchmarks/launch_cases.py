"""Plans that every target is tried with: layouts that vary each axis, by each method; all shipped scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from benchmarks.launch_media import media
from planner.answer.assignment import Assignment
from planner.api.functions import plan
from planner.ask.estimate import estimating
from planner.catalog.load import Catalog
from planner.errors import PlannerError
from planner.launch.folder import work_kind
from planner.launch.given import Given, estimated, given_of
from planner.scenario.load import shipped

DENSE = ("dp=8", "dp=16,zero=0", "dp=16,zero=1", "dp=16,zero=2", "dp=16,zero=3", "tp=2,dp=8", "tp=4,dp=4,sp=0",
         "cp=2,dp=8", "cp=4,tp=2,dp=2", "pp=2,dp=8", "pp=3,dp=4", "pp=4,vpp=2,dp=4", "pp=2,vpp=4,tp=2,dp=4",
         "tp=4,pp=2,vpp=17,dp=2", "dp=16,zero=3,shard=8", "dp=16,zero=1,recompute=full", "dp=16,recompute=selective",
         "dp=8,recompute=full,mbs=2", "tp=2,pp=2,dp=4,recompute=4", "dp=16,offload_optimizer=0.5",
         "dp=16,zero=3,offload_optimizer=0.5", "dp=16,offload_optimizer=1",
         "dp=16,zero=3,offload_optimizer=1,offload_parameters=1",
         "dp=16,zero=3,offload_optimizer=1,offload_parameters=1,offload_to=nvme",
         "dp=16,recompute=full,offload_activations=1", "pp=4,dp=4,schedule=gpipe", "pp=4,dp=4,schedule=zero-bubble",
         "dp=1", "dp=16,zero=3,no_sync=1", "dp=16,zero=3,no_sync=0")
MIXED = ("dp=16,ep=8", "tp=2,ep=4,dp=8", "tp=2,ep=8,expert_tp=1,dp=8", "tp=4,pp=2,ep=2,dp=2,recompute=full",
         "dp=16,ep=8,zero=3", "dp=8,ep=1")
TUNED = ("dp=8", "dp=1", "dp=8,zero=3", "dp=8,zero=3,recompute=full", "dp=8,zero=2,mbs=2", "dp=8,zero=0,recompute=full",
         "dp=1,recompute=full,offload_activations=1", "dp=1,recompute=full,mbs=2")
PREFERRED = ("dp=8,zero=3,recompute=full", "dp=8,zero=0", "dp=8,zero=2,mbs=2")
SERVED = ("llama-3.1-8b", "llama-3.3-70b", "qwen2.5-32b")
SERVED_MIXED = ("mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-120b")
NODES = ("dgx-h100", "dgx-a100", "dgx-b200")
SERVED_LAYOUTS = (("tp=1", 4), ("tp=2", 8), ("tp=8", 8), ("tp=4,pp=2", 16), ("tp=8,pp=2", 16), ("tp=16", 16))
MIXED_LAYOUTS = (("tp=2", 8), ("tp=8", 8), ("tp=1,dp=8,ep=8", 8), ("tp=1,dp=16,ep=16", 16), ("tp=2,dp=4,ep=1", 8),
                 ("tp=8,pp=2", 16))
SERVED_ASKED: tuple[dict[str, str], ...] = (
    {}, {"quantization": "fp8"}, {"quantization": "int4"}, {"kv_cache": "fp8"}, {"speculative": "3:0.7"},
    {"adapters": "4", "lora_rank": "16"}, {"max_model_len": "6000"})
LEARNED: tuple[dict[str, object], ...] = (
    {"model": "qwen2.5-7b", "method": "grpo", "on": "dgx-h100", "gpus": 8, "output": 2000},
    {"model": "qwen2.5-7b", "method": "grpo", "on": "dgx-h100", "gpus": 16, "output": 2000,
     "placement": "disaggregated", "policy_lag": 1},
    {"model": "llama-3.1-8b", "method": "ppo", "on": "dgx-a100", "gpus": 16, "output": 1000},
    {"model": "llama-3.1-8b", "method": "reinforce", "on": "dgx-h100", "gpus": 8, "output": 1000, "tuning": "lora"},
    {"model": "llama-3.1-8b", "method": "rloo", "on": "dgx-h200", "gpus": 8, "output": 1000, "reward": "model"},
    {"model": "qwen2.5-32b", "method": "grpo", "on": "dgx-h100", "gpus": 32, "output": 4000, "prompts": 64},
    {"model": "qwen3-30b-a3b", "method": "grpo", "on": "dgx-h100", "gpus": 32, "output": 4000},
    {"model": "qwen2.5-1.5b", "method": "grpo", "on": "h100-sxm-4x", "gpus": 4, "output": 500, "reference": "none",
     "samples_per_prompt": 16})
PROVIDERS = ("aws", "gcp", "azure", "lambda", "runpod", "nebius")
LIMIT = 3600
"""Seconds for a scenario: no search takes as long, so that how busy the machine is changes no plan."""
_KEYS = {"model": "workload.model", "length": "workload.sequence_length", "batch": "workload.global_batch",
         "method": "workload.method", "precision": "workload.precision", "stack": "workload.stack",
         "optimizer": "workload.optimizer", "tuning": "workload.tuning"}


def _asked() -> Iterator[tuple[str, dict[str, str]]]:
    dense = {"model": "llama-3.1-8b", "length": "8192", "batch": "64"}
    yield from ((layout, dense) for layout in DENSE)
    yield from ((layout, {**dense, "precision": "fp8"}) for layout in DENSE[:5])
    for model in ("llama-3.1-70b", "qwen3-8b", "qwen2.5-7b"):
        yield from ((layout, {**dense, "model": model}) for layout in ("tp=4,pp=2,dp=2,zero=1", "dp=16,recompute=full"))
    for model in ("mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"):
        yield from ((layout, {**dense, "length": "4096", "model": model}) for layout in MIXED)
    for method in ("full", "lora", "qlora"):
        for optimizer in ("adamw", "adamw-8bit"):
            yield from ((layout, {**dense, "batch": "32", "method": method, "optimizer": optimizer})
                        for layout in TUNED)
    for method in ("dpo", "kto", "orpo", "simpo", "reward-model"):
        for tuning in ("full", "lora", "qlora"):
            yield from ((layout, {**dense, "length": "4096", "batch": "32", "method": method, "tuning": tuning})
                        for layout in PREFERRED)


def cases(target: str, catalog: Catalog) -> Iterator[tuple[str, Given]]:
    """Yield what is asked and what answers it, for every layout and scenario of a target's first two stacks."""
    release = catalog.releases.target(target)
    of_media = release.work in ("diffusion", "generation")
    if of_media:
        yield from media(target, catalog)
    for stack in () if of_media else release.stacks[:2]:
        of = {"training": _trained, "serving": _served, "posttraining": _learned}[release.work]
        yield from of(stack, catalog)
    yield from ((name, given) for name, given in _scenarios() if work_kind(given.placed) == release.work and
                getattr(given.placed, "framework", given.placed.stack) in release.stacks)


@cache
def _scenarios() -> list[tuple[str, Given]]:
    found = []
    for name in shipped():
        answer = plan(name, time_limit=LIMIT)
        found += [(name, given) for given in (given_of(answer) if answer.assignments else ())]
    return found


def _estimate(asked: dict[str, str], layout: str, node: str, catalog: Catalog) -> tuple[Assignment, Given] | None:
    try:
        ask = estimating(None, asked, catalog, node=node, labels={},
                         layout=dict(part.split("=") for part in layout.split(",")))
        found = ask.answer().assignment
    except PlannerError:
        return None
    found = _rented(found, catalog)
    return found, estimated(found)


def _rented(found: Assignment, catalog: Catalog) -> Assignment:
    """Return an assignment on the first offer of its node, for places that rent; as it is where there is none."""
    for prices in catalog.price_lists:
        for offer in prices.offers if prices.name in PROVIDERS else ():
            if offer.node == found.node:
                label = f"{prices.name} {offer.instance} ({offer.region}, {offer.term})"
                return found.model_copy(update={"offer": label, "sourcing": "rent"})
    return found


def _trained(stack: str, catalog: Catalog) -> Iterator[tuple[str, Given]]:
    for layout, asked in _asked():
        values = {_KEYS[name]: value for name, value in {**asked, "stack": stack}.items()}
        if (found := _estimate(values, layout, "dgx-h100", catalog)) is not None:
            yield f"{asked['model']} {asked.get('method', 'pretrain')} {layout}", found[1]


def _served(engine: str, catalog: Catalog) -> Iterator[tuple[str, Given]]:
    """Yield what is legal, runs and fits; prefill and decode apart for every fifth."""
    count = 0
    for models, layouts in ((SERVED, SERVED_LAYOUTS), (SERVED_MIXED, MIXED_LAYOUTS)):
        for at, model in enumerate(models):
            for number, (layout, gpus) in enumerate(layouts):
                more = SERVED_ASKED[(at + number * len(models)) % len(SERVED_ASKED)]
                words = {"kind": "serving", "model": model, "engine": engine, "input": "1500", "output": "200", **more}
                values = {**{f"workload.{key}": value for key, value in words.items()}, "limits.gpus": str(gpus)}
                found = _estimate(values, layout, NODES[number % len(NODES)], catalog)
                if found is None:
                    continue
                placed, given = found
                if count % 5 == 4 and placed.serving is not None and not placed.serving.drafts:
                    prefill, decode = (placed.model_copy(update={"serving": placed.serving.model_copy(
                        update={"role": role})}) for role in ("prefill", "decode"))
                    given = estimated(prefill, decode)
                count += 1
                yield f"{model} {layout} {more}", given


def _learned(framework: str, catalog: Catalog) -> Iterator[tuple[str, Given]]:
    for asked in LEARNED:
        try:
            answer = plan(stack=framework, input=500, steps=100, **asked)
        except PlannerError:
            continue
        for number in (None, *range(1, len(answer.alternatives) + 1)) if answer.assignments else ():
            for given in given_of(answer, number):
                yield f"{asked} alternative {number}", given
