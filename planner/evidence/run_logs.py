"""Logs of training runs as rows of evidence, with the plan that started them beside the log.

Megatron-LM, torchtitan and DeepSpeed print a line a step, litgpt one a micro-batch; `trainer_logs` reads what
Hugging Face's Trainer says. None says what ran, which `plan.json` in the same folder does. Formats:
megatron/training/training.py (training_log), torchtitan components/metrics.py, deepspeed/utils/timer.py
(ThroughputTimer), litgpt/finetune/lora.py (its lines, and the metrics.csv of its logger).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

from pydantic import ValidationError

from planner.answer.assignment import Assignment, TrainingAssignment
from planner.answer.layout import Layout
from planner.answer.schema import Plan
from planner.errors import InputError
from planner.evidence.trainer_logs import figure, trainer, with_steps
from planner.scenario.targets import MODULES, places_of
from planner.scenario.tuned import ADAPTERS, RANK
from planner.text_io import read_text
from planner.units import GIB

Cells = dict[str, str]
Ran = tuple[TrainingAssignment, Mapping[str, object]]
"""What started a run: a training job as placed, and what was asked of it."""
PLAN = "plan.json"
WARMING = 0.1
"""Share of the steps, at least one where there are several, that is left out: kernels are chosen, caches filled."""
_MB = 2**20
_GB = 1e9
_TASKS = {"reward-model": "rm"}
"""Methods that take preferences -> their words in evidence, where those differ."""
_MEMORY = {"peak_gib", "reserved"}
_RESERVED = re.compile(r"\| max reserved: {0,3}(\d{1,9}(?:\.\d{1,20})?)")
_BATCH = re.compile(r"global batch size:? {1,20}(\d{1,9})\b")
_LENGTH = re.compile(r"gradient accumulation steps \d{1,9}, sequence length (\d{1,9})\b")


def run_rows(text: str, path: Path, started: Ran | None = None) -> list[Cells] | None:
    """Return the one run of a log as cells; none where the text is no log of a run. Raises InputError.

    What started it is read from `plan.json` beside the log, where it is not given.
    """
    for reader in (_megatron, _torchtitan, _deepspeed, _litgpt, trainer):
        steps = list(reader(text))
        if any(step.keys() - _MEMORY for step in steps):
            placed, asked = started or _plan_beside(path)
            said = {"global_batch": _last(_BATCH, text), "sequence_length": _last(_LENGTH, text)}
            placed = placed.model_copy(update={name: value for name, value in said.items() if value})
            return [_row(steps, placed, asked, path)]
    return None


def ran(placed: Assignment, config: str) -> Ran:
    """Return what a config starts, as an estimate has it. Raises InputError where that is no training."""
    if not isinstance(placed, TrainingAssignment):
        raise InputError("expected the config of a trainer, whose log it is", file=config)
    return placed, placed.asked or {}


def _row(steps: list[Mapping[str, float]], placed: TrainingAssignment, asked: Mapping[str, object], path: Path
         ) -> Cells:
    tokens = (placed.global_batch or 0) * (placed.sequence_length or 0)
    steps_alone = [step for step in steps if step.keys() - _MEMORY]
    timed = with_steps(steps_alone, tokens, placed.global_batch or 0, path)
    kept = timed[max(1, round(len(timed) * WARMING)):] if len(timed) > 1 else timed
    found = {name: [step[name] for step in kept if name in step]
             for name in ("step_time_s", "tokens_per_s_per_gpu", "samples_per_s")}
    seconds = median(found["step_time_s"]) if found["step_time_s"] else None
    if found["samples_per_s"] and placed.global_batch:
        seconds = placed.global_batch / median(found["samples_per_s"])
    if found["tokens_per_s_per_gpu"]:
        seconds = tokens / median(found["tokens_per_s_per_gpu"]) / placed.gpus
    if not seconds:
        raise InputError("no step time in it", file=str(path))
    memory = max((step["peak_gib"] for step in steps if "peak_gib" in step), default=None)
    measured = {"step_time_s": f"{seconds:.6g}", "tokens_per_s_per_gpu": f"{tokens / seconds / placed.gpus:.6g}"}
    if memory is not None:
        kind = "reserved" if any("reserved" in step for step in steps) else "allocated"
        measured |= {"peak_mem_gib": f"{memory:.5g}", "mem_kind": kind}
    return {"id": path.stem, **_ran(placed, asked), **measured}


def _last(said: re.Pattern[str], text: str) -> int | None:
    """Return what a log says last, of the sequences of a step or their length: Megatron-LM at each, torchtitan once."""
    found = said.findall(text)
    return int(found[-1]) if found else None


def _plan_beside(path: Path) -> tuple[TrainingAssignment, Mapping[str, object]]:
    """Return the training job of `plan.json` in the folder of a log, and what was asked of it. Raises InputError."""
    beside = path.with_name(PLAN)
    if not beside.exists():
        raise InputError(f"a log does not say what ran: expected {PLAN}, as planner launch writes it, in the same "
                         "folder, or the config that started it (--from sft.yaml --node dgx-h100)", file=str(path))
    text = read_text(beside)
    for read in (_estimate, _first):
        try:
            return read(text)
        except (ValidationError, IndexError):
            continue
    raise InputError("expected the plan of a training job, as planner launch writes it", file=str(beside))


def _estimate(text: str) -> tuple[TrainingAssignment, Mapping[str, object]]:
    placed = TrainingAssignment.model_validate_json(text)
    return placed, placed.asked or {}


def _first(text: str) -> tuple[TrainingAssignment, Mapping[str, object]]:
    plan = Plan.model_validate_json(text)
    work = (plan.provenance.scenario or {}).get("workload")
    placed = TrainingAssignment.model_validate(plan.assignments[0].model_dump())
    return placed, work if isinstance(work, Mapping) else {}


def _ran(placed: TrainingAssignment, asked: Mapping[str, object]) -> Cells:
    """Return what a plan says of a run, by the columns of evidence."""
    trains = placed.tuning or placed.method
    adapters = {"lora_rank": asked.get("lora_rank") or RANK,
                "lora_targets": _adapted(asked)} if trains in ADAPTERS else {}
    layout, out = placed.layout, placed.layout.offload
    sharding = {0: "none", 1: "zero1", 2: "zero2", 3: "zero3/fsdp"}[layout.zero]
    cells: dict[str, object] = {
        "source": "own run", "source_detail": _launched(placed, asked), "framework": placed.stack,
        "model": placed.model,
        "method": None if trains == "pretrain" else trains, **adapters,
        "task": _TASKS.get(placed.method or "", placed.method) if placed.tuning else None,
        "optimizer": asked.get("optimizer"), "loss_kernel": asked.get("loss"),
        "gpu": placed.gpu, "gpus": placed.gpus,
        "gpus_per_node": placed.gpus // placed.nodes,
        "seq_len": placed.sequence_length, "global_batch_seqs": placed.global_batch, "micro_batch": layout.micro_batch,
        "tp": layout.tp, "pp": layout.pp, "vpp": layout.vpp, "cp": layout.cp, "ep": layout.ep, "dp": layout.dp,
        "sharding": sharding, "seq_parallel": "yes" if layout.sequence_parallel else "no",
        "recompute": layout.recompute, "recompute_layers": _by_stage(layout), "precision": layout.precision,
        "stated": "yes", "packed": None if placed.tuning else "yes",  # a batch of preferences is of pairs
        "offload_optimizer": out.optimizer, "offload_parameters": out.parameters,
        "offload_activations": out.activations}
    return {name: str(value) for name, value in cells.items() if value is not None and value != 0.0}


def _launched(placed: TrainingAssignment, asked: Mapping[str, object]) -> str:
    """Return what no column says of a plan: its node, GPUs of a shard group that has copies, when the step is."""
    copies = placed.layout.shard < placed.layout.dp * placed.layout.cp
    parts = ["planner launch", f"node={placed.node}", f"shard={placed.layout.shard}" if copies else "",
             "optimizer in backward" if asked.get("optimizer_in_backward") else ""]
    return ", ".join(part for part in parts if part)


def _adapted(asked: Mapping[str, object]) -> str | None:
    """Return the modules that have adapters, where they are not all; a plan says them in short: attention+mlp."""
    said = [name for name in str(asked.get("lora_targets") or "").split("+") if name in MODULES]
    return ",".join(places_of(said)) or None


def _by_stage(layout: Layout) -> str | None:
    """Return the layers of every stage that keep all, recompute selectively, and in full, where layers differ."""
    return layout.by_stage if layout.recompute == "mixed" else None


def _megatron(text: str) -> Iterator[Mapping[str, float]]:
    """Yield a line of every logged iteration: `elapsed time per iteration (ms)`, and the peaks of memory of all ranks.

    Primus has the mean beside the iteration's own time, and ranks that write at once share a line. Steps of a batch
    that still grows are left out.
    """
    last = _last(_BATCH, text)
    for line in text.splitlines():
        parts = {name.strip(): value for name, _, value in (part.partition(":") for part in line.split("|"))}
        took = figure(parts.get("elapsed time per iteration (ms)", "").partition("/")[0])
        if took is not None and figure(parts.get("global batch size", "")) in (None, last):
            yield {"step_time_s": took / 1e3}
        yield from ({"peak_gib": float(peak) * _MB / GIB, "reserved": 1} for peak in _RESERVED.findall(line))


def _after(line: str, name: str) -> float | None:
    return figure(line.partition(name)[2])


def _torchtitan(text: str) -> Iterator[Mapping[str, float]]:
    """Yield `step: 10 loss: .. memory: 43.2GiB(54%) tps: 5,678` of one rank; tokens/s, in 2024 `wps`, of a GPU."""
    for line in text.splitlines():
        plain = "".join(part.partition("m")[2] if at else part for at, part in enumerate(line.split("\x1b[")))
        speed = _after(plain, "tps:") if "tps:" in plain else _after(plain, "wps:")
        if "step:" in plain and "validate step:" not in plain and speed is not None:
            held = figure(plain.partition("memory:")[2].partition("GiB")[0])
            yield {"tokens_per_s_per_gpu": speed, **({} if held is None else {"peak_gib": held, "reserved": 1})}


def _deepspeed(text: str) -> Iterator[Mapping[str, float]]:
    """Yield `global_step=10, .. CurrSamplesPerSec=12.1, .. MaxMemAllocated=40.2GB`."""
    for line in text.splitlines():
        if (speed := _after(line, "CurrSamplesPerSec=")) is not None:
            held = figure(line.partition("MaxMemAllocated=")[2].partition("GB")[0])
            yield {"samples_per_s": speed, **({} if held is None else {"peak_gib": held})}


def _litgpt(text: str) -> Iterator[Mapping[str, float]]:
    """Yield the micro-batches of every optimizer step together: `| iter 8 step 1 | .. | iter time: 12.5 ms (step)`.

    Of its CSV, whose `step` grows with the last micro-batch of each.
    """
    taken, last = 0.0, "0"
    head, *rows = [line.split(",") for line in text.splitlines()] or [[""]]
    if "iter_time" in head and "step" in head:
        for row in rows:
            if len(row) != len(head) or (took := figure(row[head.index("iter_time")])) is None:
                continue  # the CSV has rows of validation too
            taken += took
            if (step := row[head.index("step")]) != last:
                yield {"step_time_s": taken}
                taken, last = 0.0, step
        return
    for line in text.splitlines():
        if (took := _after(line, "| iter time:")) is not None:
            taken += took / 1e3
            if line.rstrip().endswith("(step)"):
                yield {"step_time_s": taken}
                taken = 0.0
        elif (held := figure(line.partition("Memory used:")[2].partition("GB")[0])) is not None:
            yield {"peak_gib": held * _GB / GIB}
