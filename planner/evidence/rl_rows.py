"""What a row of reinforcement learning says was run."""

from __future__ import annotations

from planner.evidence.rows import Count, Degree, Positive, StatedRun, Text


class RlRun(StatedRun):
    """What a row says was run.

    Words: kind (rl_step, rl_epoch, trainer_microbatch, weight_sync, ...), framework, algorithm, placement, policy_lag,
    train_recompute (none or full), swapped and offload (of optimizer states; 0 or 1), max_len in tokens (of prompt +
    answer, or of both together), train_engine, method (full, or lora with its rank).
    Counts: trainer_gpus, rollout_gpus, prompts_per_step, samples_per_step, train_batch (answers), steps, and degrees of
    trainer and rollouts.
    Tokens: prompt_len_mean, response_len_mean, response_len_max (of the longest answer drawn, below what max_len
    allows), seq_len_mean, tokens_per_step.
    """

    kind: Text = None
    framework: Text = None
    algorithm: Text = None
    placement: Text = None
    trainer_gpus: Degree = None
    rollout_gpus: Degree = None
    policy_lag: Text = None
    prompts_per_step: Count = None
    samples_per_step: Count = None
    prompt_len_mean: Positive = None
    response_len_mean: Positive = None
    response_len_max: Positive = None
    seq_len_mean: Positive = None
    tokens_per_step: Positive = None
    train_batch: Count = None
    max_len: Text = None
    rollout_tp: Degree = None
    rollout_pp: Degree = None
    train_engine: Text = None
    train_tp: Degree = None
    train_cp: Degree = None
    train_ep: Degree = None
    train_pp: Degree = None
    method: Text = None
    train_recompute: Text = None
    swapped: Text = None
    offload: Text = None
    steps: Count = None
