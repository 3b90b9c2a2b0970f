"""What configs of frameworks of reinforcement learning share: answers of a step, their lengths, the reference, GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from planner.scenario.configs.reading import Reading
from planner.scenario.tuned import RANK

METHODS = {"grpo": "grpo", "gae": "ppo", "ppo": "ppo", "rloo": "rloo", "remax": "reinforce", "gspo": "grpo",
           "group_norm": "grpo", "dr_grpo": "grpo", "grpo_passk": "grpo", "dapo": "grpo", "opo": "grpo", "gpg": "grpo",
           "grpo_vectorized": "grpo", "rloo_vectorized": "rloo", "optimal_token_baseline": "grpo",
           "tir_optimal_token_baseline": "grpo",
           "reinforce": "reinforce", "reinforce_baseline": "reinforce", "reinforce_plus_plus": "reinforce",
           "reinforce_plus_plus_baseline": "reinforce", "reinforce++": "reinforce"}
"""Estimators of the advantage -> the method whose step they have."""


@dataclass(frozen=True)
class KeyNames:
    """Under which keys a framework says what all of them say: of several, the first that stands in a config."""

    model: tuple[str, ...]
    estimator: tuple[str, ...]
    usual: str  # estimator where none is named
    prompts: tuple[str, ...]
    each: tuple[str, ...]
    counts: tuple[int, int]  # prompts and answers to each where neither is said
    prompt: tuple[str, ...]
    answer: tuple[str, ...]
    rank: tuple[str, ...] = ()
    adapts: str = ""  # switch without which the rank is not taken
    four_bits: tuple[str, ...] = ()
    critic: tuple[str, ...] = ()
    checkpointing: tuple[str, ...] = ()
    epochs: str = ""
    steps: str = ""


def policy(reading: Reading, keys: KeyNames, estimator: str | None = None) -> None:
    """Put down the policy, the method, answers, what trains and how long; estimator: where no key names it."""
    reading.put("workload.model", reading.named(*keys.model), keys.model[-1])
    method(reading, estimator or reading.word(*keys.estimator), keys.estimator[-1], keys.usual)
    answers(reading, keys.prompts, keys.each, keys.counts)
    lengths(reading, keys.prompt, keys.answer)
    if not keys.adapts or reading.on(keys.adapts):
        adapters(reading, rank_of(reading, *keys.rank), keys.rank[-1], four_bits=reading.on(*keys.four_bits))
    if keys.critic and reading.values["workload.method"] == "ppo":
        reading.put("workload.critic", reading.named(*keys.critic), keys.critic[0])
    if any(map(reading.source.has, keys.checkpointing)):
        reading.axis("recompute", "full" if reading.on(*keys.checkpointing) else "none", keys.checkpointing[-1])
    if keys.steps:
        steps = reading.text(keys.steps)
        reading.put("workload.steps", int(steps) if steps and steps.isdecimal() else None, keys.steps)
    if keys.epochs and (epochs := reading.number(keys.epochs)):
        reading.of_samples = {"workload.epochs": epochs}


def method(reading: Reading, named: str | None, key: str, default: str) -> None:
    """Put down the method. Raises InputError for an estimator that is not known."""
    if named is None:
        reading.defaults.append(f"{key} {default}")
    elif named not in METHODS:
        raise reading.wrong((key,), named, ", ".join(METHODS))
    reading.put("workload.kind", "posttraining", key)
    reading.put("workload.method", METHODS[named or default], key)


def answers(reading: Reading, prompts: tuple[str, ...], each: tuple[str, ...], default: tuple[int, int]) -> None:
    """Put down the prompts of a step, and the answers to each."""
    for path, keys, usual in (("workload.prompts", prompts, default[0]),
                              ("workload.samples_per_prompt", each, default[1])):
        count = reading.number(*keys)
        if count is None:
            reading.defaults.append(f"{keys[0]} {usual}")
        reading.put(path, count or usual, keys[0])


def lengths(reading: Reading, prompt: tuple[str, ...], answer: tuple[str, ...]) -> None:
    """Put down the longest prompt and answer that are taken; how long they are follows from what is usual."""
    longest = reading.number(*answer)
    reading.longest_prompt, reading.longest_answer = reading.number(*prompt), longest
    if longest and reading.longest_prompt:
        reading.put("workload.max_model_len", longest + reading.longest_prompt, answer[0])


def sized(reading: Reading, tokens: int | None, key: str, *, fraction: str) -> None:
    """Put down the tokens of a micro-batch, and the share of a GPU that the engine takes beside the trainer."""
    reading.axis("micro_batch_tokens", tokens, key)
    share = reading.text(fraction)
    reading.axis("memory_fraction", reading.share(fraction) if share and "$" not in share else None, fraction)


def adapters(reading: Reading, rank: int | None, key: str, *, four_bits: bool = False) -> None:
    """Put down what trains: all weights, or adapters of a rank above zero."""
    if rank or four_bits:
        reading.put("workload.tuning", "qlora" if four_bits else "lora", key)
        reading.put("workload.lora_rank", rank or RANK, key)


def together(reading: Reading, nodes: tuple[str, ...], each: tuple[str, ...], default: int | None = None) -> None:
    """Count the GPUs of all nodes."""
    per_node = reading.number(*each) or default
    reading.gpus = per_node * (reading.number(*nodes) or 1) if per_node else None


def apart(reading: Reading, trains: int, draws: int, key: str) -> None:
    """Put down GPUs that train, and others that draw answers."""
    reading.put("workload.placement", "disaggregated", key)
    reading.axis("rollout_gpus", draws, key)
    reading.gpus = trains + draws


def by_megatron(reading: Reading, prefix: str) -> None:
    """Put down Megatron's degrees under a prefix, 1 where they are not stated."""
    for axis, key in (("tp", "tensor_model_parallel_size"), ("pp", "pipeline_model_parallel_size"),
                      ("cp", "context_parallel_size"), ("ep", "expert_model_parallel_size")):
        reading.axis(axis, reading.number(f"{prefix}{key}") or 1, f"{prefix}{key}")


def rank_of(reading: Reading, *keys: str) -> int | None:
    """Return the rank of adapters; none where it is 0, by which these frameworks have none."""
    said = reading.text(*keys)
    return int(said) if said is not None and said.isdecimal() and said != "0" else None
