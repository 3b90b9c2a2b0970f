"""Published runs of reinforcement learning: how far predictions lie from them, and what is refused."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import planner
from benchmarks.rl import is_guessed as guessed
from benchmarks.rl import left_out
from planner.answer.validation import Entry, Validation
from planner.catalog.load import Catalog
from planner.evidence.reading import read_evidence
from planner.evidence.rl_rows import RlRun
from planner.evidence.rl_runs import micro_batch, predicted
from planner.physics.posttraining.step import written

ROWS = Path(__file__).parents[1] / "evidence" / "rl.csv"


NAMED = ("verl-v1-288", "nemorl-v0.4-55", "nemorl-v0.6-59", "nemorl-v0.6-60", "nemorl-v0.5-60",
         "verl-fa-379")


@cache
def validation() -> Validation:
    """Return what is made of every row but two in three of the steps without phases, which take a second each."""
    with ROWS.open(newline="") as lines:
        rows = csv.DictReader(lines)
        kept = [row for at, row in enumerate(rows)
                if row["kind"] != "rl_step" or row["gen_s"] or row["id"] in NAMED or at % 3 == 0]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rl.csv"
        with path.open("w", newline="") as lines:
            writer = csv.DictWriter(lines, list(kept[0]))
            writer.writeheader()
            writer.writerows(kept)
        return planner.validate(path)


@pytest.mark.parametrize(("quantities", "median", "p90"), [
    (("step_s",), 0.15, 0.45), (("gen_s", "actor_update_s"), 0.25, 0.70), (("peak_mem_gib",), 0.10, 0.30)])
def test_predictions_lie_near_what_was_published(quantities: tuple[str, ...], median: float, p90: float) -> None:
    """The goals, median and p90, here in-sample: steps 0.15 and 0.45, phases 0.25 and 0.70, peaks 0.10 and 0.30."""
    held = [entry for entry in validation().rows if entry.quantity in quantities and not guessed(entry)]
    errors = [abs(entry.error) for entry in held if entry.error is not None]
    assert len(errors) > 20
    assert np.median(errors) < median
    assert np.percentile(errors, 90) < p90
    inside = [entry.interval90[0] <= float(entry.measured) <= entry.interval90[1] for entry in held if entry.interval90]
    assert np.mean(inside) > 0.85


def test_no_run_needs_more_gpus_than_it_had() -> None:
    held = [entry for entry in validation().rows if entry.quantity == "gpus"]
    assert held
    assert all(float(entry.predicted) <= float(entry.measured) for entry in held)


def test_what_has_no_gpu_or_no_lengths_is_no_evidence_of_speed() -> None:
    reasons = defaultdict[str, list[str]](list)
    for skipped in validation().skipped:
        reasons[skipped.reason].append(skipped.id)
    assert "log-Qwen2.5-0.5B-bsz256_2-prompt512-resp256-0.538.log" in reasons["the GPU is not told"]
    assert "openrlhf-Llama-2-7B-Open" in reasons["lengths of answers are not told"]
    assert reasons["groups whose answers are judged alike are drawn again, how often is not told"] == ["nemorl-v0.5-60"]
    # its memory counter is wrong: no memory of it is compared
    assert not [entry for entry in validation().rows if (entry.id, entry.quantity) == ("vd-qwen2-7b-fsdp2",
                                                                                      "peak_mem_gib")]


def entry(name: str, quantity: str) -> Entry:
    return next(each for each in validation().rows if (each.id, each.quantity) == (name, quantity))


def test_a_larger_cluster_is_faster_as_published() -> None:
    few, many = (entry(f"nemorl-v0.6-{at}", "step_s") for at in (59, 60))
    assert float(few.predicted) > float(many.predicted)
    assert float(few.measured) > float(many.measured)


@pytest.mark.parametrize(("model", "framework", "rows", "unlike"), [
    ("qwen2.5-7b", "verl", 29, ()), ("qwen3-30b-a3b", "verl", 29, ("kind",)), ("qwen3-30b-a3b", "nemo-rl", 44, ()),
    ("qwen2.5-7b", "openrlhf", 0, ())])
def test_what_no_run_of_the_framework_is_like_widens_the_interval_and_is_said(model, framework, rows, unlike):
    time = planner.estimate(model=model, method="grpo", stack=framework, node="dgx-h100", prompts=64,
                            samples_per_prompt=8, input=256, output=512, nodes=2).time
    law = Catalog().posttraining_law
    wide = law.unseen if unlike or not rows else 1.0
    assert (time.evidence.rows, time.evidence.unlike, time.evidence.validated) == (rows, unlike, rows > 0)
    assert [limit / time.step_seconds for limit in time.interval90_seconds] == pytest.approx(
        [(bound / law.step.q50)**wide * law.step.q50 for bound in (law.step.q05, law.step.q95)])


def test_runs_by_framework_are_those_of_the_rows():
    law = Catalog().posttraining_law
    with ROWS.open(newline="") as lines:
        frameworks = {row["id"]: law.framework(row["framework"]) for row in csv.DictReader(lines)}
    errors = defaultdict(list)
    for entry in validation().rows:
        if not guessed(entry):
            errors[entry.quantity, frameworks[entry.id]].append(abs(entry.error))
    for quantity, residue in (("step_s", law.step), ("peak_mem_gib", law.memory)):
        for name, runs in residue.by.items():
            if name == "nemo-rl":
                continue  # of which validation() has some alone
            assert runs.rows == len(errors[quantity, name])
            assert runs.error == pytest.approx(float(np.median(errors[quantity, name])), abs=0.01)


def test_lengths_that_are_not_told_are_assumed_and_widen_the_interval():
    told, assumed = entry("vd-qwen2-7b-fsdp2", "step_s"), entry("verl-fa-379", "step_s")
    assert "response_len_mean=1300" in assumed.assumed
    assert [guessed(told), guessed(assumed)] == [False, True]
    wide, narrow = (each.interval90[1] / each.interval90[0] for each in (assumed, told))
    assert wide == pytest.approx(narrow ** Catalog().posttraining_runs.guessed)


def run_named(start: str) -> RlRun:
    with ROWS.open(newline="") as lines:
        row = next(row for row in csv.DictReader(lines) if row["id"].startswith(start))
    return RlRun.model_validate({name: value or None for name, value in row.items() if name in RlRun.model_fields})


def test_a_row_is_predicted_as_the_log_that_it_is_from_ran() -> None:
    """Its 118,816 tokens are of 320 answers of 268.55, in micro-batches of 8 on each of 8 GPUs, drawn at TP 2."""
    way = predicted(run_named("vd-gsm8k-Qwen2.5-7B"), Catalog(), "verl").way
    batch = way.question.batch
    assert batch.sequences == 320
    assert batch.input == pytest.approx(102.75, abs=0.01)
    assert (way.policy.micro_batches, way.rollouts.tp, way.rollouts.replicas) == (5, 2, 4)


def test_replicas_over_several_machines_wait_for_the_host() -> None:
    """NeMo RL draws DeepSeek-V3 with TP 32 over four machines, 16 of GB200 over four trays of a rack: 9 ms a step; and
    its weights of 1.34 TB reach all of them at 90 GB/s in 15 s.
    """
    for name, gpus in (("nemorl-v0.6-58", 32), ("nemorl-v0.6-87", 16)):
        run, law = run_named(name), Catalog().posttraining_law
        own = {"frameworks.nemo-rl.across": 0.0}
        with_, without = (predicted(run, catalog, "nemo-rl").way for catalog in (
            Catalog(), Catalog().changed({("calibration", "posttraining"): own})))
        assert with_.rollouts.tp == gpus
        steps = (with_.rollouts.drawn.decode - without.rollouts.drawn.decode) / 0.009
        assert 1000 < steps < 1536
        seconds = {phase.name: float(phase.seconds) for phase in with_.made.phases}
        assert seconds["synchronization"] == pytest.approx(2 * 671e9 / 90e9 + law.phase, rel=0.01)
    # one machine has all of a replica
    small = run_named("nemorl-v0.6-61")
    assert small.rollout_tp == 8
    assert predicted(small, Catalog(), "nemo-rl").way.step == pytest.approx(predicted(
        small, Catalog().changed({("calibration", "posttraining"): own}), "nemo-rl").way.step)


def test_a_source_left_out_is_back_for_the_next() -> None:
    read = read_evidence(ROWS)
    assert left_out(replace(read, rows=(), unread=()), {}) == []
    assert Catalog().posttraining_law.frameworks["nemo-rl"].reshard == 0.9e9


def test_kernels_hide_launches_that_take_less() -> None:
    """A step of 28 layers takes the longer of both, 280 ms of launches of 10 ms, and the host's time between steps."""
    seconds, run = {}, run_named("vd-qwen2-7b-fsdp2").model_copy(update={"samples_per_step": 2048})
    for layer in (0.0, 1e-5, 1e-2):
        catalog = Catalog().changed({("calibration", "posttraining"): {"eager_layer": layer}})
        seconds[layer] = predicted(run, catalog, "verl").way.rollouts.drawn.decode
    assert seconds[1e-5] == seconds[0.0]
    speed = Catalog().speeds("vllm").release("0.8", "hopper")
    between = 615 * speed.step + speed.sequence * 2048 / 4 * 153.478
    assert seconds[1e-2] == pytest.approx(615 * 0.28 + between, rel=0.01)


def test_the_longest_answer_of_a_log_is_that_of_its_step():
    """One log prints 655 tokens where 1,024 were allowed: a step ends there."""
    run, catalog = run_named("vd-gsm8k-Qwen2.5-1.5B"), Catalog()
    steps = {longest: predicted(run.model_copy(update={"response_len_max": longest}), catalog, "verl").way
             for longest in (655, 1024, None)}
    assert run.response_len_max == 655
    assert steps[655].step < steps[1024].step == steps[None].step


def test_answers_are_drawn_in_micro_batches_where_a_framework_does():
    """1,024 answers on 8 GPUs, 16 of each GPU at a time: 8 times the decode steps of one answer."""
    catalog, run = Catalog(), run_named("dschat-A100-80GB-8-OPT-1.3B")
    way = predicted(run, catalog, "deepspeed-chat").way
    assert way.peak <= way.usable
    assert way.rollouts.drawn.slots == way.policy.micro_batch * way.rollouts.tp
    held = catalog.changed({("calibration", "posttraining"): {"frameworks.deepspeed-chat.together": False}})
    assert predicted(run, held, "deepspeed-chat").way.rollouts.drawn.slots > way.rollouts.drawn.slots


def test_weights_in_files_are_copied_twice_by_each_process_now_and_by_the_first_before():
    """4B in 16 bits are 8.2 GB, twice at 3.5 GB/s: 4.6 s for the first process, an eighth of that for each of eight."""
    law, made = Catalog().posttraining_law, micro_batch(run_named("prime-71"), Catalog(), "prime-rl")
    now = law.frameworks["prime-rl"]
    first = written(law, now.model_copy(update={"written": "first"}), made.trained, 8)
    assert first == pytest.approx(2 * 8.2e9 / 3.5e9, rel=0.1)
    assert written(law, now, made.trained, 8) == first / 8
    # a row of early 2026 states half of a step of two micro-batches
    assert 2 * made.seconds == pytest.approx(made.trained.update_seconds + first)


def test_hours_of_an_epoch_are_those_of_its_steps():
    """264,292 samples in steps of 1,024 are 258; the row's own 129 contradict the tokens of its notes."""
    few, many = (entry(f"dschat-A100-80GB-{gpus}-OPT-6.7B", "step_s") for gpus in (8, 64))
    assert float(few.measured) == pytest.approx(4.1 * 3600 / 258)
    assert float(few.predicted) > 4 * float(many.predicted)


def test_a_policy_is_trained_on_one_gpu_with_its_states_on_the_host():
    made = planner.estimate(model="qwen2.5-7b", method="grpo", node="a100-sxm-80gb", gpus=1, prompts=8,
                            samples_per_prompt=4, input=256, output=256, stack="deepspeed-chat")
    assert (made.layout.offload.to, made.layout.zero) == ("host", 3)


@pytest.mark.parametrize(("model", "gpu", "ran", "method", "trainer"), [
    ("qwen2-7b", "h800-sxm", 2, "full", "FSDP"), ("qwen2.5-32b", "h20", 8, "full", "Megatron"),
    ("qwen2-72b", "h800-sxm", 32, "full", "FSDP"), ("qwen2.5-32b", "h100-sxm", 4, "lora", "FSDP"),
    ("qwen2.5-72b", "h100-sxm", 8, "lora", "FSDP"), ("qwen3-235b-a22b", "h20", 32, "full", "Megatron")])
def test_what_is_said_to_be_the_fewest_holds_what_ran(tmp_path, model, gpu, ran, method, trainer):
    """verl's documentation (perf/device_tuning, perf/dpsk): the fewest GPUs that were tried."""
    rows = tmp_path / "fewest.csv"
    rows.write_text("id,kind,framework,algorithm,model,gpu,gpus,max_len,train_engine,method,rollout_engine,gen_s,"
                    f"actor_update_s\nmin,min_gpus,verl,GRPO,{model},{gpu},{ran},512+1024,{trainer},{method},vLLM,,\n")
    (found,) = planner.validate(rows).rows
    assert ran / 2 <= float(found.predicted) <= ran
