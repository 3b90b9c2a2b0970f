"""Plans that every target of training is tried with: layouts that vary each axis, dense and mixture, by each method."""

from __future__ import annotations

from collections.abc import Iterator

from planner.answer.schema import to_json
from planner.ask.estimate import estimating
from planner.catalog.load import Catalog
from planner.errors import PlannerError
from planner.launch.given import Given

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


def cases(stack: str, catalog: Catalog) -> Iterator[tuple[str, Given]]:
    """Yield what is asked and its estimate, for every layout that a stack has."""
    for layout, asked in _asked():
        values = {_KEYS[name]: value for name, value in {**asked, "stack": stack}.items()}
        try:
            ask = estimating(None, values, catalog, node="dgx-h100", labels={},
                             layout=dict(part.split("=") for part in layout.split(",")))
            found = ask.answer().assignment
        except PlannerError:
            continue
        yield f"{asked['model']} {asked.get('method', 'pretrain')} {layout}", Given(found, ask.scenario, to_json(found))
