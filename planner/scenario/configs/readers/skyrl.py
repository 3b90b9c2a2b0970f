"""SkyRL's lines (skyrl_train, examples/train): Hydra's `trainer.policy.model.path=...`."""

from __future__ import annotations

from planner.scenario.configs import reinforced
from planner.scenario.configs.launchers import NODE
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

MODEL = "trainer.policy.model.path"
KEYS = reinforced.KeyNames(
    model=(MODEL,), estimator=("trainer.algorithm.advantage_estimator",), usual="grpo", counts=(1024, 5),
    prompts=("trainer.train_batch_size",), each=("generator.n_samples_per_prompt",),
    prompt=("trainer.max_prompt_length", "generator.max_input_length"),
    answer=("generator.sampling_params.max_generate_length",), rank=("trainer.policy.model.lora.rank",),
    critic=("trainer.critic.model.path",), checkpointing=("trainer.gradient_checkpointing",), epochs="trainer.epochs")
ENGINE = ("generator.inference_engine.", "generator.inference_engine_", "generator.")
"""Before what is said of an engine, by release."""


def tells(source: Source) -> bool:
    """Say whether it is one: the policy under SkyRL's name."""
    return source.has(MODEL)


def read(reading: Reading) -> None:
    """Read the policy, the method, the answers of a step, what trains, and the GPUs."""
    reinforced.policy(reading, KEYS)
    with_kl = reading.on("trainer.algorithm.use_kl_loss", "trainer.algorithm.use_kl_in_reward") or not (
        reading.source.has("trainer.algorithm.use_kl_loss"))
    reading.put("workload.reference", "initial" if with_kl else "none", "trainer.algorithm.use_kl_loss")
    if reading.word("trainer.strategy") == "megatron":
        reinforced.by_megatron(reading, "trainer.policy.megatron_config.")
    else:
        for axis in ("tp", "pp", "ep"):
            reading.axis(axis, 1, "trainer.strategy")
        reading.axis("cp", reading.number("trainer.policy.sequence_parallel_size") or 1,
                     "trainer.policy.sequence_parallel_size")
    _placed(reading)
    reading.put("workload.stack", "skyrl", "the program")
    reading.get("m")


def _placed(reading: Reading) -> None:
    """Count the GPUs that train, and those of the engines beside them where they do not share."""
    placed = "trainer.placement."
    trains = (reading.number(f"{placed}policy_num_nodes") or 1) * (
        reading.number(f"{placed}policy_num_gpus_per_node") or NODE)
    wide = reading.number(*(f"{before}tensor_parallel_size" for before in ENGINE)) or 1
    many = reading.number(*(f"{before}num_engines" for before in ENGINE), "generator.num_inference_engines") or 1
    reading.axis("rollout_tp", wide, f"{ENGINE[0]}tensor_parallel_size")
    engine = reading.word(*(f"{before}backend" for before in ENGINE))
    reading.put("workload.engine", engine if engine in ("vllm", "sglang") else None, f"{ENGINE[0]}backend")
    if reading.word(f"{placed}colocate_all") == "false":
        reinforced.apart(reading, trains, many * wide, f"{placed}colocate_all")
    else:
        reading.put("workload.placement", "colocated", f"{placed}colocate_all")
        reading.gpus = trains


READER = Reader("a line of SkyRL", tells, read)
