"""Logs of runs of reinforcement learning as a row of evidence, with the plan that started them beside the log.

verl prints its metrics a step on a line (verl/utils/logger/aggregate_logger.py), OpenRLHF its status
(openrlhf/trainer/ppo_trainer.py), TRL a mapping, which stands in its `trainer_state.json` too
(trl/trainer/grpo_trainer.py); ms-swift adds its memory to that, and has each as a line of `logging.jsonl`
(swift/trainers/patcher.py). NeMo RL prints several lines a step (nemo_rl/algorithms/grpo.py and utils.py,
print_performance_metrics). None says what ran, which `plan.json` in the same folder does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from pydantic import ValidationError

from planner.answer.posttraining import PostTrainingAssignment
from planner.answer.schema import Plan
from planner.errors import InputError
from planner.evidence.run_logs import PLAN, WARMING, Cells
from planner.evidence.trainer_logs import figure
from planner.text_io import read_text

KIND = "rl"
_NAMES = {
    "timing_s/step": "step_s", "timing_s/gen": "gen_s", "timing_s/update_actor": "actor_update_s",
    "prompt_length/mean": "prompt_len_mean", "response_length/mean": "response_len_mean",
    "response_length/max": "response_len_max", "completions/max_length": "response_len_max",
    "perf/max_memory_reserved_gb": "peak_gib", "timing/step_total": "step_s", "timing/generation": "gen_s",
    "timing/ppo_train": "actor_update_s", "rollout/response_length_mean": "response_len_mean",
    "step_time": "step_s", "completions/mean_length": "response_len_mean", "memory(GiB)": "peak_gib"}
"""Of a framework's metrics -> of evidence. verl counts GiB, and calls them GB."""
_PRINTED = {"Total step time": "step_s", "generation": "gen_s", "policy_training": "actor_update_s",
            "Mean Generation Length": "response_len_mean", "E2E (Tokens/sec)": "tokens_per_s"}
"""Of the lines of NeMo RL. Tokens are those of prompts and answers; rollouts that run ahead have no `generation`."""
_STEP = "Training Results:"
"""What begins the lines of a step there."""
_WAITS = ("verl",)
"""Frameworks that count as generation what the trainer waits, where rollouts run ahead (v1/trainer_base.py)."""
_MARKS = ("timing_s/step:", "timing/step_total", "'step_time'", '"step_time"')
"""What a line with the metrics of a step has."""
_METRIC = re.compile(r"""['"]?([a-z_][a-z_/]{1,60}(?:\(GiB\))?)['"]?\s{0,3}:\s{0,3}['"]?(?:np\.float\d{2}\()?"""
                     r"""(-?\d[\d.]{0,20}(?:e[-+]?\d{1,3})?)""")


def learned_rows(text: str, path: Path) -> list[Cells] | None:
    """Return the one run of a log as cells; none where the text is no log of reinforcement learning.

    Raises InputError where the plan beside it is none of such a run.
    """
    steps = [step for step in _steps(text) if "step_s" in step]
    return [_row(steps, path)] if steps else None


def _steps(text: str) -> Iterator[Mapping[str, float]]:
    if text.lstrip()[:1] == "{" and '"log_history"' in text:
        try:
            history = json.loads(text).get("log_history")
        except ValueError:
            return
        for entry in history if isinstance(history, list) else ():
            yield {_NAMES[name]: float(value) for name, value in entry.items() if name in _NAMES}
        return
    for block in text.split(_STEP)[1:]:
        parts = (line.strip(" •-").partition(": ") for line in block.splitlines())
        yield {_PRINTED[name]: found for name, _, value in parts if name in _PRINTED and (
            found := figure(value.replace("s", " "))) is not None}
    for line in text.splitlines():
        if any(mark in line for mark in _MARKS):
            yield {_NAMES[name]: float(value) for name, value in _METRIC.findall(line) if name in _NAMES}


def _row(steps: list[Mapping[str, float]], path: Path) -> Cells:
    plan = _plan_beside(path)
    placed = plan.assignments[0]
    assert isinstance(placed, PostTrainingAssignment)
    kept = steps[max(1, round(len(steps) * WARMING)):] if len(steps) > 1 else steps
    found = {name: median(step[name] for step in kept if name in step)
             for name in ("step_s", "gen_s", "actor_update_s", "prompt_len_mean", "response_len_mean",
                          "response_len_max")
             if any(step.get(name, 0) > 0 for step in kept)}
    if placed.policy_lag and placed.framework in _WAITS:
        found.pop("gen_s", None)
    peak = max((step["peak_gib"] for step in steps if "peak_gib" in step), default=None)
    found |= _by_tokens(kept, found, _ran(plan, placed), placed.prompts * placed.samples_per_prompt)
    measured = {name: f"{value:.6g}" for name, value in found.items()}
    if peak:
        measured["peak_mem_gib"] = f"{peak:.5g}"
    return {"id": path.stem, **_ran(plan, placed), **measured}


def _by_tokens(steps: Sequence[Mapping[str, float]], found: Mapping[str, float], asked: Cells, answers: int
               ) -> dict[str, float]:
    """Return the mean prompt that is left of a step's tokens, or where answers are not told the mean answer."""
    tokens = [step["tokens_per_s"] * step["step_s"] for step in steps if "tokens_per_s" in step]
    told, left = ("response_len_mean", "prompt_len_mean") if "response_len_mean" in found else (
        "prompt_len_mean", "response_len_mean")
    known = found.get(told) or _number(asked.get(told))
    if not tokens or known is None or (rest := median(tokens) / answers - known) <= 0:
        return {}
    return {left: rest}


def _plan_beside(path: Path) -> Plan:
    beside = path.with_name(PLAN)
    if not beside.exists():
        raise InputError(f"a log does not say what ran: expected {PLAN}, as planner launch writes it, in the same "
                         "folder", file=str(path))
    try:
        plan = Plan.model_validate_json(read_text(beside))
    except ValidationError:
        plan = None
    if plan is None or not plan.assignments or not isinstance(plan.assignments[0], PostTrainingAssignment):
        raise InputError("expected the plan of a job of reinforcement learning, as planner launch writes it",
                         file=str(beside))
    return plan


def _ran(plan: Plan, placed: PostTrainingAssignment) -> Cells:
    """Return what a plan says of a run, by the columns of evidence."""
    layout, there = placed.layout, placed.rollouts
    asked = (plan.provenance.scenario or {}).get("workload")
    work = asked if isinstance(asked, Mapping) else {}
    apart = placed.placement == "disaggregated"
    engine = next((kind for kind in ("deepspeed", "megatron") if kind in placed.stack), "fsdp")
    method = f"lora {work.get('lora_rank') or ''}".strip() if placed.tuning == "lora" else "full"
    cells: dict[str, object] = {
        "kind": "rl_step", "source": "own run", "framework": placed.framework, "algorithm": placed.method,
        "model": placed.model, "gpu": placed.gpu, "gpus": placed.gpus, "placement": placed.placement,
        "trainer_gpus": placed.trainer_gpus if apart else None, "rollout_gpus": there.gpus if apart else None,
        "policy_lag": placed.policy_lag, "prompts_per_step": placed.prompts,
        "samples_per_step": placed.prompts * placed.samples_per_prompt, "prompt_len_mean": _number(work.get("input")),
        "response_len_mean": _number(work.get("output")),
        "max_len": work.get("max_model_len") or f"+{there.longest_tokens}", "train_recompute": layout.recompute,
        "swapped": int(placed.swapped), "offload": int(layout.offload.optimizer), "rollout_engine": there.engine,
        "rollout_tp": there.tp, "rollout_pp": there.pp, "train_engine": engine,
        "train_tp": layout.tp, "train_cp": layout.cp, "train_ep": layout.ep, "train_pp": layout.pp, "method": method}
    return {name: str(value) for name, value in cells.items() if value is not None}


def _number(value: object) -> float | None:
    """Return the mean length that a question says, alone or in words such as `1,500 tokens`."""
    if isinstance(value, Mapping):
        value = value.get("mean")
    digits = re.match(r"[\d.,]+", str(value or "").strip())
    return float(digits.group().replace(",", "")) if digits else None
