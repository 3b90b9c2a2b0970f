"""Why a row gets no prediction: what the physics does not cover, and what the row leaves out."""

from __future__ import annotations

import re

from planner.evidence.rows import TrainRun

_OTHER = re.compile(r"deepseek-v4|glm-4\.7|bert|\bt5|t0_|rlhf|gemma-?4|hunyuan", re.IGNORECASE)
_OPTIMIZERS = re.compile(r"(decoupled_|cpu_|deepspeedcpu|paged_?)?adamw?(4bit|8bit|_8bit)?( |$)|adafactor|sgd|muon",
                         re.IGNORECASE)


class SkippedError(Exception):
    """The row is outside the model or not stated well enough; the message is the reason."""


def refuse(run: TrainRun) -> None:
    """Raise SkippedError for what the physics does not cover."""
    reason = _model(run) or _method(run) or _numbers(run) or _layout(run) or _offload(run)
    if reason is not None:
        raise SkippedError(reason)


def _model(run: TrainRun) -> str | None:
    if run.model and _OTHER.search(run.model):
        return f"architecture of {run.model} is not modeled"
    return None


def _method(run: TrainRun) -> str | None:
    known = (None, "pretrain", "full", "lora", "qlora")
    return None if run.method in known else f"method {run.method} is not modeled"


def _numbers(run: TrainRun) -> str | None:
    if run.optimizer and not _OPTIMIZERS.match(run.optimizer):
        return f"optimizer {run.optimizer} is not modeled"
    return None


def _layout(run: TrainRun) -> str | None:
    if run.sharding == "device_map":
        return f"sharding {run.sharding} is not modeled"
    return None


def _offload(run: TrainRun) -> str | None:
    for name, share in (("optimizer", run.offload_optimizer), ("parameters", run.offload_parameters),
                        ("activations", run.offload_activations)):
        if share is not None and share > 1:
            return f"offload_{name} {share:g} is not a share"
    return None
