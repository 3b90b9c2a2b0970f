"""SkyRL's lines (skyrl_train, examples/train): Hydra's `trainer.policy.model.path=...`."""

from __future__ import annotations

from planner.scenario.configs import reinforced
from planner.scenario.configs.launchers import NODE
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

MODEL = "trainer.policy.model.path"
ENGINE = ("generator.inference_engine.", "generator.inference_engine_", "generator.")
"""Before what is said of an engine, by release."""


def tells(source: Source) -> bool:
    """Say whether it is one: the policy under SkyRL's name."""
    return source.has(MODEL)


def read(reading: Reading) -> None:
    """Read the policy, the method, the answers of a step, what trains, and the GPUs."""
    reading.put("workload.model", reading.text(MODEL), MODEL)
    estimator = "trainer.algorithm.advantage_estimator"
    reinforced.method(reading, reading.word(estimator), estimator, "grpo")
    reinforced.answers(reading, ("trainer.train_batch_size",), ("generator.n_samples_per_prompt",), (1024, 5))
    reinforced.lengths(reading, ("trainer.max_prompt_length", "generator.max_input_length"),
                       ("generator.sampling_params.max_generate_length",))
    rank = "trainer.policy.model.lora.rank"
    reinforced.adapters(reading, reinforced.rank_of(reading, rank), rank)
    with_kl = reading.on("trainer.algorithm.use_kl_loss", "trainer.algorithm.use_kl_in_reward") or not (
        reading.source.has("trainer.algorithm.use_kl_loss"))
    reading.put("workload.reference", "initial" if with_kl else "none", "trainer.algorithm.use_kl_loss")
    if reading.values["workload.method"] == "ppo":
        reading.put("workload.critic", reading.text("trainer.critic.model.path"), "trainer.critic.model.path")
    if reading.word("trainer.strategy") == "megatron":
        reinforced.by_megatron(reading, "trainer.policy.megatron_config.")
    else:
        for axis in ("tp", "pp", "ep"):
            reading.axis(axis, 1, "trainer.strategy")
        reading.axis("cp", reading.number("trainer.policy.sequence_parallel_size") or 1,
                     "trainer.policy.sequence_parallel_size")
    _placed(reading)
    if reading.source.has("trainer.gradient_checkpointing"):
        reading.axis("recompute", "full" if reading.on("trainer.gradient_checkpointing") else "none",
                     "trainer.gradient_checkpointing")
    reading.of_samples = {"workload.epochs": epochs} if (epochs := reading.number("trainer.epochs")) else {}
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
