"""The log of a run of reinforcement learning comes back: `planner validate` holds it against the plan beside it."""

import json
from functools import cache, partial

import pytest

import planner as package
from planner.answer.schema import to_json
from tests.cli.conftest import planner  # noqa: F401 - a fixture


def verl(step):
    return "".join(
        f"(TaskRunner pid=1) step:{n} - actor/pg_loss:0.01 - perf/max_memory_reserved_gb:np.float64(50.0) - "
        f"prompt_length/mean:500.0 - response_length/mean:1000.0 - timing_s/gen:{step / 2} - "
        f"timing_s/update_actor:{step / 4} - timing_s/step:{step * (3 if n == 1 else 1)}\n" for n in range(1, 11))


def openrlhf(step):
    return "".join(f"Global step {n}: " + str({
        "reward": 0.1, "rollout/response_length_mean": 1000.0, "timing/generation": step / 2,
        "timing/ppo_train": step / 4, "timing/step_total": step}) + "\n" for n in range(1, 11))


def trl(step):
    return "".join(str({"loss": "0.1", "step_time": f"{step:.6g}", "completions/mean_length": "1000"}) + "\n"
                   for _ in range(10))


def trl_state(step):
    return json.dumps({"log_history": [{"loss": 0.1, "step_time": step, "completions/mean_length": 1000.0}] * 10})


def swift(step):
    return "".join(str({"loss": 0.01, "completions/mean_length": 1000.0, "step_time": round(step, 8), "epoch": 0.1,
                        "global_step/max_steps": f"{n}/10", "elapsed_time": "1m 2s", "remaining_time": "4m 8s",
                        "memory(GiB)": 50.0, "train_speed(s/it)": round(2 * step, 6)}) + "\n" for n in range(1, 11))


def swift_lines(step):
    return swift(step).replace("'", '"')


def nemo(step, *, ahead=False, tokens=1500):
    """As NeMo RL prints a step: of rollouts that run ahead neither their seconds nor their lengths, but all tokens."""
    placed = answer("nemo-rl").assignments[0]
    tokens *= placed.prompts * placed.samples_per_prompt
    lengths, drawn = ("  • Avg Trajectory Age: 1.00 steps", "exposed_generation") if ahead else (
        "  • Mean Generation Length: 1000.0000", "generation")
    return "".join(f"""========================= Step {n}/10 =========================
▶ Training policy...

📊 Training Results:
  • Loss: 0.1032
  • Generation KL Error: 0.0007
  • Avg Reward: 0.3486
{lengths}

⏱️  Timing:
  • Total step time: {step * (3 if n == 1 else 1):.2f}s
  • {drawn}: {step / 2:.2f}s (50.0%)
  • policy_training: {step / 4:.2f}s (25.0%)
  • weight_sync: 0.13s (0.2%)

🔍 Performance Metrics:
  • Mean Total Tokens per Sample: 1000.00
  • Throughputs (per GPU):
    - E2E (Samples/sec/gpu): 0.86
    - E2E (Tokens/sec/gpu): {tokens / step / 8:.2f}
  • Throughputs (per Group):
    - E2E (Tokens/sec): {tokens / step / (3 if n == 1 else 1):.2f}
""" for n in range(1, 11))


LOGS = {"nemo": (nemo, "nemo-rl", "train.log"), "nemo-ahead": (partial(nemo, ahead=True), "nemo-rl", "train.log"),
        "verl": (verl, "verl", "train.log"), "openrlhf": (openrlhf, "openrlhf", "train.log"),
        "trl": (trl, "trl", "train.log"), "trl-state": (trl_state, "trl", "trainer_state.json"),
        "swift": (swift, "trl", "train.log"), "swift-lines": (swift_lines, "trl", "logging.jsonl")}


@cache
def answer(framework):
    return package.plan(model="qwen2.5-7b", method="grpo", on="dgx-h100", gpus=8, input=500, output=1000, steps=100,
                        stack=framework, placement="colocated")


@pytest.mark.parametrize("name", LOGS)
def test_a_log_is_held_against_its_plan(planner, tmp_path, name):  # noqa: F811
    write, framework, file = LOGS[name]
    plan = answer(framework)
    (tmp_path / "plan.json").write_text(to_json(plan))
    planned = plan.assignments[0].time.step_seconds
    (tmp_path / file).write_text(write(1.1 * planned))
    ran = planner("validate", tmp_path / file, "--json")
    assert ran.code == 0, ran.err
    rows = {row["quantity"]: row for row in json.loads(ran.out)["rows"]}
    assert rows["step_s"]["measured"] == pytest.approx(1.1 * planned, rel=1e-3)
    assert rows["step_s"]["predicted"] == pytest.approx(planned, rel=0.1), "lengths of the log, not of the question"
    assert ("gen_s" in rows) == (name not in ("nemo-ahead", "trl", "trl-state", "swift", "swift-lines"))
    if name in ("verl", "swift", "swift-lines"):
        assert rows["peak_mem_gib"]["measured"] == pytest.approx(50)


@pytest.mark.parametrize("ahead", [False, True])
def test_what_a_log_does_not_tell_of_lengths_is_left_of_its_tokens(planner, tmp_path, ahead):  # noqa: F811
    """Of 3,000 tokens where prompts have 500 and answers 1,000, either is longer than what was asked."""
    plan = answer("nemo-rl")
    (tmp_path / "plan.json").write_text(to_json(plan))
    (tmp_path / "train.log").write_text(nemo(100.0, ahead=ahead, tokens=3000))
    ran = planner("validate", tmp_path / "train.log", "--json")
    assert ran.code == 0, ran.err
    predicted = {row["quantity"]: row["predicted"] for row in json.loads(ran.out)["rows"]}
    planned = plan.assignments[0].time.step_seconds
    assert predicted["step_s"] > (1.7 if ahead else 1.2) * planned


@pytest.mark.parametrize(("lag", "told"), [(0, True), (1, False)])
def test_what_a_trainer_waits_for_rollouts_that_run_ahead_is_no_generation(planner, tmp_path, lag, told):  # noqa: F811
    plan = answer("verl")
    ahead = plan.assignments[0].model_copy(update={"policy_lag": lag})
    (tmp_path / "plan.json").write_text(to_json(plan.model_copy(update={"assignments": (ahead,)})))
    (tmp_path / "train.log").write_text(verl(100.0))
    ran = planner("validate", tmp_path / "train.log", "--json")
    assert ran.code == 0, ran.err
    assert ("gen_s" in {row["quantity"] for row in json.loads(ran.out)["rows"]}) == told


def test_a_log_beside_another_plan_is_refused(planner, tmp_path):  # noqa: F811
    (tmp_path / "train.log").write_text(verl(10.0))
    ran = planner("validate", tmp_path / "train.log")
    assert ran.code == 2
    assert "plan.json" in ran.err
    (tmp_path / "plan.json").write_text(to_json(package.plan(
        model="gpt2", tokens="10M", on="h100-sxm-1x", stack="megatron-core")))
    ran = planner("validate", tmp_path / "train.log")
    assert ran.code == 2
    assert "reinforcement learning" in ran.err


def test_calibrate_takes_the_phases_of_a_log(planner, tmp_path):  # noqa: F811
    plan = answer("verl")
    (tmp_path / "plan.json").write_text(to_json(plan))
    log = tmp_path / "train.log"
    log.write_text(verl(1.5 * plan.assignments[0].time.step_seconds))
    fitted = planner("calibrate", log, "-o", tmp_path / "own")
    assert "phases of reinforcement learning to 1 run" in fitted.out, fitted.err
    before, after = ({row["quantity"]: abs(row["error"]) for row in json.loads(
        planner("validate", log, "--json", *more).out)["rows"]} for more in ((), ("--catalogs", tmp_path / "own")))
    assert after["gen_s"] < before["gen_s"]
    assert after["actor_update_s"] < before["actor_update_s"]
