"""The log of a run comes back: `planner validate RUN.log` holds it against the plan.json beside it."""

import json

import pytest

from planner.answer.schema import to_json
from tests.cli.conftest import planner  # noqa: F401 - a fixture
from tests.launch.logs import CLOCKS, LOGS, STACKS, megatron, torchtitan, trainer_piped, trainer_printed
from tests.launch.services import serving
from tests.launch.works import given


@pytest.mark.parametrize("name", LOGS)
def test_a_log_is_held_against_its_plan(planner, tmp_path, name):  # noqa: F811
    plan = given("dp=16,zero=3,recompute=full,mbs=1", stack=STACKS[name])
    placed = plan.placed
    (tmp_path / "plan.json").write_text(plan.plan)
    step = 1.1 * placed.time.step_seconds
    tokens = placed.global_batch * placed.sequence_length / step / placed.gpus
    (tmp_path / name).write_text(LOGS[name](step, tokens, 40.0, placed.global_batch))
    ran = planner("validate", tmp_path / name, "--json")
    assert ran.code == 0, ran.err
    rows = {row["quantity"]: row for row in json.loads(ran.out)["rows"]}
    assert rows["step_time_s"]["measured"] == pytest.approx(step, rel=0.01 if LOGS[name] in CLOCKS else 1e-3)
    assert rows["step_time_s"]["predicted"] == pytest.approx(placed.time.step_seconds, rel=0.02), "the plan's own"
    if STACKS[name] != "deepspeed" or name in ("ds.log", "logging.jsonl", "inverse.jsonl", "swift.log"):
        assert rows["peak_mem_gib"]["measured"] == pytest.approx(40, rel=1e-3)


@pytest.mark.parametrize("name", ["train.log", "titan.log"])
def test_a_log_that_says_its_batch_ran_with_it(planner, tmp_path, name):  # noqa: F811
    layout = "dp=16,zero=3,recompute=full,mbs=1"
    plan, half = given(layout, stack=STACKS[name]), given(layout, stack=STACKS[name], global_batch="32")
    step = half.placed.time.step_seconds
    tokens = 32 * half.placed.sequence_length / step / half.placed.gpus
    assert plan.placed.global_batch != half.placed.global_batch
    log = LOGS[name](step, tokens, 40.0, 32)
    said = (f"local batch size 1, global batch size 32, gradient accumulation steps 4\n{log}" if name == "titan.log"
            else log.replace("| lm loss", "| global batch size: 32 | lm loss").replace("size: 32 |", "size: 16 |", 1))
    (tmp_path / "plan.json").write_text(plan.plan)
    (tmp_path / name).write_text(said)
    ran = planner("validate", tmp_path / name, "--json")
    assert ran.code == 0, ran.err
    rows = {row["quantity"]: row for row in json.loads(ran.out)["rows"]}
    assert rows["step_time_s"]["measured"] == pytest.approx(step, rel=2e-3)
    assert rows["step_time_s"]["predicted"] == pytest.approx(step, rel=0.02)


def test_a_log_that_says_its_length_ran_with_it(planner, tmp_path):  # noqa: F811
    layout = "dp=16,zero=3,recompute=full,mbs=1"
    plan, half = given(layout, stack="fsdp2"), given(layout, stack="fsdp2", seq_len="4096")
    step = half.placed.time.step_seconds
    tokens = half.placed.global_batch * 4096 / step / half.placed.gpus
    head = f"local batch size 1, global batch size {half.placed.global_batch}, gradient accumulation steps 4, "
    log = f"{head}sequence length 4096, total steps 20 (warmup 2)\n" + torchtitan(step, tokens, 40.0, 64)
    rows = read_back(planner, tmp_path, plan, "titan.log", log)
    assert rows["step_time_s"]["measured"] == pytest.approx(step, rel=2e-3)
    assert rows["step_time_s"]["predicted"] == pytest.approx(step, rel=0.02)


def test_a_log_of_a_plan_that_recomputes_some_layers(planner, tmp_path):  # noqa: F811
    plan = given("dp=16,zero=3,recompute=8,mbs=1", stack="fsdp2")
    whole = given("dp=16,zero=3,recompute=full,mbs=1", stack="fsdp2")
    assert plan.placed.layout.recompute == "mixed"
    step = plan.placed.time.step_seconds
    assert step < 0.95 * whole.placed.time.step_seconds
    (tmp_path / "plan.json").write_text(plan.plan)
    tokens = plan.placed.global_batch * plan.placed.sequence_length / step / plan.placed.gpus
    (tmp_path / "titan.log").write_text(torchtitan(step, tokens, 40.0, plan.placed.global_batch))
    ran = planner("validate", tmp_path / "titan.log", "--json")
    assert ran.code == 0, ran.err
    rows = {row["quantity"]: row for row in json.loads(ran.out)["rows"]}
    assert rows["step_time_s"]["predicted"] == pytest.approx(step, rel=1e-3)


def test_a_log_that_was_cut_off_and_tells_no_steps_is_refused(planner, tmp_path):  # noqa: F811
    (tmp_path / "plan.json").write_text(given("dp=16,zero=3,recompute=full,mbs=1", stack="deepspeed").plan)
    (tmp_path / "cut.log").write_text(trainer_piped(1.0, 1.0, 1.0, 41))
    ran = planner("validate", tmp_path / "cut.log")
    assert ran.code == 2
    assert "does not say how many steps lie between two entries: take the trainer_state.json" in " ".join(
        ran.err.split())


@pytest.mark.parametrize(("text", "said"), [
    ("(APIServer pid=1) INFO 05-12 08:01:39 [loggers.py:271] Engine 000: Avg prompt throughput: 6335.3 tokens/s, Avg "
     "generation throughput: 4.8 tokens/s, Running: 9 reqs, Waiting: 0 reqs\n", "the log of a vLLM server"),
    ("[2026-04-05 20:02:51] Decode batch, #running-req: 32, #token: 11179, gen throughput (token/s): 1635.11\n",
     "the log of an SGLang server"),
    ("[2022-03-11 02:06:58] [INFO] [timer.py:189:stop] 0/40, SamplesPerSec=83.4, MemAllocated=0.26GB\n",
     "DeepSpeed before 0.8"),
    ("Training epoch 0, iteration 9/99 | global_step: 9 | train_step_timing in s: 5.02\n", "a log of NeMo"),
    ('{"global_step": 20, "log_history": [{"loss": 2.0, "step": 10}, {"loss": 1.9, "step": 20}]}',
     "do not say when they were"),
    ("Epoch 1 took a while\n", "no step of a training run that is known")])
def test_a_log_that_measures_nothing_says_what_does(planner, tmp_path, text, said):  # noqa: F811
    (tmp_path / "plan.json").write_text(to_json(given("dp=8,zero=3,recompute=full").placed))
    (tmp_path / "run.log").write_text(text)
    refused = planner("validate", tmp_path / "run.log")
    assert refused.code == 2
    assert said in " ".join(refused.err.split())


def test_a_log_without_its_plan_is_refused(planner, tmp_path):  # noqa: F811
    (tmp_path / "train.log").write_text(megatron(1.0, 1.0, 1.0, 64))
    ran = planner("validate", tmp_path / "train.log")
    assert ran.code == 2
    assert "plan.json" in ran.err


VLLM_PRINTS = """INFO 11-23 [__init__.py:43] Available plugins
============ Serving Benchmark Result ============
Successful requests:                     100
Failed requests:                         0
Maximum request concurrency:             {at_once}
Benchmark duration (s):                  63.20
Total input tokens:                      100000
Total generated tokens:                  20000
Request throughput (req/s):              1.58
Output token throughput (tok/s):         {output}
Peak output token throughput (tok/s):    900.00
---------------Time to First Token----------------
Mean TTFT (ms):                          50.00
P99 TTFT (ms):                           90.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          9.00
==================================================
"""


@pytest.mark.parametrize("replicas", [1, 4])
@pytest.mark.parametrize("name", ["bench.json", "bench.log"])
def test_a_load_test_is_held_against_its_plan(planner, tmp_path, replicas, name):  # noqa: F811
    placed = serving("tp=2", gpus=str(2 * replicas), input="1000", output="200")
    (tmp_path / "plan.json").write_text(to_json(placed))
    (tmp_path / "launch.json").write_text('{"release": "0.33.0"}')
    printed = VLLM_PRINTS.format(at_once=16 * replicas, output=1600.0 * replicas)
    (tmp_path / name).write_text(printed if name == "bench.log" else json.dumps({
        "backend": "vllm", "model_id": "/models/mine", "completed": 100, "total_input_tokens": 100_000,
        "total_output_tokens": 20_000, "mean_ttft_ms": 50.0, "mean_tpot_ms": 9.0, "max_concurrency": 16 * replicas,
        "request_rate": "inf", "output_throughput": 1600.0 * replicas}))
    ran = planner("validate", tmp_path / name, "--json")
    assert ran.code == 0, ran.err
    rows = {row["quantity"]: row for row in json.loads(ran.out)["rows"]}
    assert rows["output_tok_s_per_gpu"]["measured"] == pytest.approx(800)
    assert rows["output_tok_s_per_gpu"]["assumed"] == ["kv_precision=bf16"]
    assert {"ttft_ms", "tpot_ms"} < set(rows)


def read_back(planner, tmp_path, plan, name, log):  # noqa: F811 - the fixture, passed on
    (tmp_path / "plan.json").write_text(plan.plan)
    (tmp_path / name).write_text(log)
    ran = planner("validate", tmp_path / name, "--json")
    assert ran.code == 0, ran.err
    return {row["quantity"]: row for row in json.loads(ran.out)["rows"]}


@pytest.mark.parametrize("asked", [
    {"method": "lora", "lora_targets": "attention"}, {"method": "lora", "lora_targets": "mlp", "lora_rank": "64"},
    {"method": "dpo", "tuning": "lora"}, {"method": "dpo", "tuning": "full"},
    {"method": "reward-model", "tuning": "full"},
    {"method": "full", "optimizer": "adafactor"}])
def test_what_trains_comes_back_with_its_plan(planner, tmp_path, asked):  # noqa: F811
    """What a log is held against is what the plan said: its adapters, preferences and optimizer."""
    plan = given("dp=8,zero=3,recompute=full", stack="axolotl", **asked)
    step = plan.placed.time.step_seconds
    rows = read_back(planner, tmp_path, plan, "train.log", megatron(step, 0, 40.0, plan.placed.global_batch))
    assert rows["step_time_s"]["predicted"] == pytest.approx(step, rel=0.001)


def test_litgpt_runs_are_read_from_their_lines_and_their_csv(planner, tmp_path):  # noqa: F811
    plan = given("dp=8,zero=3,recompute=full", stack="litgpt", method="full")
    batches, step = plan.placed.layout.micro_batches, plan.placed.time.step_seconds
    assert batches > 1
    took = step / batches
    lines = "".join(f"Epoch 1 | iter {n} step {n // batches} | loss train: 1.204, val: n/a | iter time: "
                    f"{1e3 * took:.3f} ms{' (step)' if n % batches == 0 else ''}\n" for n in range(1, 8 * batches))
    rows = read_back(planner, tmp_path, plan, "train.log", lines + "Memory used: 42.95 GB\n")
    assert rows["step_time_s"]["measured"] == pytest.approx(step, rel=1e-3)
    assert rows["peak_mem_gib"]["measured"] == pytest.approx(40, rel=1e-3)
    table = "loss,iter,step,epoch,iter_time,val_loss\n" + "".join(
        f"1.2,{n},{n // batches},0,{took:.6f},\n" for n in range(1, 8 * batches)) + ",,,,,1.1\n"
    rows = read_back(planner, tmp_path, plan, "metrics.csv", table)
    assert rows["step_time_s"]["measured"] == pytest.approx(step, rel=1e-3)


@pytest.mark.parametrize(("said", "held"), [("'memory(GiB)': '61.5'", 61.5), (
    "'memory/max_allocated (GiB)': 60.25, 'memory/device_reserved (GiB)': 68.4", 60.25)])
def test_memory_that_trainers_print_is_read(planner, tmp_path, said, held):  # noqa: F811
    plan = given("dp=8,zero=3,recompute=full", stack="axolotl", method="lora")
    step = plan.placed.time.step_seconds
    log = f"{{'loss': '1.8', {said}, 'epoch': '0.1'}}\n" * 9 + trainer_printed(step, 0, 0, 0)
    rows = read_back(planner, tmp_path, plan, "train.log", log)
    assert rows["peak_mem_gib"]["measured"] == pytest.approx(held)
    assert rows["step_time_s"]["measured"] == pytest.approx(step, rel=1e-4)
    rows = read_back(planner, tmp_path, plan, "all_results.json", json.dumps({"train_steps_per_second": 1 / step}))
    assert rows["step_time_s"]["measured"] == pytest.approx(step, rel=1e-4)


def metrics(engine, running):
    token, done = {"vllm": ("request_time_per_output_token_seconds", "request_success_total"),
                   "sglang": ("inter_token_latency_seconds", "num_requests_total")}[engine]
    gauge = {"vllm": "num_requests_running", "sglang": "num_running_reqs"}[engine]
    values = {"prompt_tokens_total": 2e6, "generation_tokens_total": 3e5, done: 1000, gauge: running,
              "time_to_first_token_seconds_sum": 200, "time_to_first_token_seconds_count": 1000,
              f"{token}_sum": 15, f"{token}_count": 1000, 'time_to_first_token_seconds_bucket': 9e9}
    return "# HELP x y\n" + "".join(f'{engine}:{name}{{model_name="m",engine="0"}} {value}\n'
                                    for name, value in values.items()) + "process_start_time_seconds 1.7e9\n"


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_an_engines_metrics_are_held_against_its_plan(planner, tmp_path, engine):  # noqa: F811
    """Of one replica, which counts of itself, however many the plan has."""
    one = serving("tp=1", gpus="4", engine=engine)
    (tmp_path / "plan.json").write_text(to_json(one))
    (tmp_path / "metrics.txt").write_text(metrics(engine, 40))
    ran = planner("validate", tmp_path / "metrics.txt", "--json")
    assert ran.code == 0, ran.err
    rows = {row["quantity"]: row for row in json.loads(ran.out)["rows"]}
    assert rows["ttft_ms"]["measured"] == pytest.approx(200)
    assert rows["tpot_ms"]["measured"] == pytest.approx(15)
    (tmp_path / "metrics.txt").write_text(metrics(engine, 0))
    ran = planner("validate", tmp_path / "metrics.txt")
    assert ran.code == 2
    assert "while the load lasts" in ran.err


@pytest.mark.parametrize(("layout", "stack", "asked"), [
    ("dp=16,zero=3,shard=8,recompute=full", "fsdp2", {}), ("tp=4,dp=4,recompute=full", "megatron-core", {}),
    ("dp=8,zero=3,recompute=full", "axolotl", {"method": "full", "optimizer": "lion"}),
    ("dp=8,zero=3,recompute=full", "llama-factory", {"method": "full"}),
    ("dp=16,zero=3,recompute=full", "fsdp2", {"loss": "fused", "optimizer": "adamw-4bit"}),
    ("dp=3,zero=3,recompute=full", "litgpt", {"method": "full", "global_batch": "48"})])
def test_a_run_as_planned_is_predicted_as_planned(planner, tmp_path, layout, stack, asked):  # noqa: F811
    """No habit of published runs bears on a launched plan: its stack, node, optimizer and loss are the plan's."""
    plan = given(layout, stack=stack, **asked)
    step = plan.placed.time.step_seconds
    rows = read_back(planner, tmp_path, plan, "train.log", megatron(step, 0, 40.0, plan.placed.global_batch))
    assert rows["step_time_s"]["predicted"] == pytest.approx(step, rel=0.001)
    assert rows["peak_mem_gib"]["predicted"] * 2**30 < plan.placed.memory.peak_bytes, "the median is below the bound"
