"""Logs that are known and say nothing that a prediction can be held against, and what says it in their place."""

from __future__ import annotations

_SERVED = "no request's latencies are in it: run a load test (bench.sh of planner launch, vllm bench serve, " \
          "bench_serving) and give its result, or fetch /metrics under load"
_CSV = "give its step_time_s in a CSV"
_KNOWN = (
    ("Avg generation throughput:", f"the log of a vLLM server: {_SERVED}"),
    ("gen throughput (token/s):", f"the log of an SGLang server: {_SERVED}"),
    ("train_step_timing in s:", f"a log of NeMo, which is not read: {_CSV}"),
    ("elapsed_time_per_iteration_ms:", f"a log of nanotron, which is not read: {_CSV}"),
    (", SamplesPerSec=", f"a log of DeepSpeed before 0.8, whose speed counts micro-batches: {_CSV}"),
    ('"log_history"', "its entries do not say when they were, and no train_steps_per_second is in it: give the "
                      "trainer_state.json of the end of the run, or what was printed, with its progress bar"),
)
"""What such a log has in it -> what it is, and what to give."""
PLAIN = ("no step of a training run that is known (Megatron-LM, torchtitan, DeepSpeed, litgpt, Hugging Face's Trainer, "
         "frameworks of reinforcement learning), no load test, no metrics of an engine, and no header of an evidence "
         "file, which is CSV")
"""Of a text that is none of what is read."""


def unmeasured(text: str) -> str | None:
    """Return what a log is and what to give in its place; none where it is not known."""
    return next((said for mark, said in _KNOWN if mark in text), None)
