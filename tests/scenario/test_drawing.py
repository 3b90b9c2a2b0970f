"""Configs of frameworks of reinforcement learning: the answers of a step, degrees, and which GPUs draw."""

from pathlib import Path

import pytest

from planner.catalog.load import Catalog
from planner.scenario.configs.read import read_config

SKYRL = (": \"${MODEL:=Qwen/Qwen3-4B}\"\nuv run -m skyrl.train.entrypoints.main_base trainer.policy.model.path=$MODEL "
         "trainer.strategy=megatron trainer.policy.megatron_config.tensor_model_parallel_size=4 "
         "trainer.algorithm.advantage_estimator=grpo trainer.algorithm.use_kl_loss=false trainer.train_batch_size=64 "
         "generator.n_samples_per_prompt=5 trainer.max_prompt_length=2048 "
         "generator.sampling_params.max_generate_length=8192 generator.inference_engine.num_engines=4 "
         "generator.inference_engine.tensor_parallel_size=2 generator.inference_engine.backend=vllm "
         "trainer.placement.policy_num_gpus_per_node=8 trainer.placement.colocate_all=")
SLIME = """CKPT_ARGS=(
   --hf-checkpoint /root/Qwen3-4B
   #--hf-checkpoint /root/Qwen3-4B-FP8
)
ROLLOUT_ARGS=(
   --rollout-batch-size 64
   --n-samples-per-prompt 5
   --rollout-max-response-len 8192
)
PERF_ARGS=(
   --tensor-model-parallel-size 4
   --recompute-granularity full
)
ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 %s ${MODEL_ARGS[@]} \\
   ${CKPT_ARGS[@]} \\
   ${ROLLOUT_ARGS[@]} ${PERF_ARGS[@]} --rollout-num-gpus-per-engine 2
"""
AREAL = """actor:
  backend: "megatron:d2t4"
  path: Qwen/Qwen3-4B
  kl_ctl: 0.0
  scheduling_spec:
    - {cmd: python3 -m areal.infra.rpc.rpc_server, gpu: 1}
gconfig: {n_samples: 5, max_new_tokens: 8192}
rollout: {backend: "vllm:d4t2", max_head_offpolicyness: 4}
train_dataset: {batch_size: 64}
"""
PRIME = """seq_len = 10240
[deployment]
num_train_gpus = 8
num_infer_gpus = 8
[model]
name = "Qwen/Qwen3-4B"
[trainer.model]
tp = 4
[orchestrator]
batch_size = 320
group_size = 5
[orchestrator.train.sampling]
max_completion_tokens = 8192
[inference.parallel]
tp = 2
"""
NEMO = """defaults: base.yaml
policy:
  model_name: Qwen/Qwen3-4B
  megatron_cfg: {enabled: true, tensor_model_parallel_size: 4}
  generation: {vllm_cfg: {tensor_parallel_size: 2}}
"""
NEMO_BASE = """grpo: {num_prompts_per_step: 64, num_generations_per_prompt: 5, max_num_steps: 500}
loss_fn: {reference_policy_kl_penalty: 0.0}
policy:
  model_name: Qwen/Qwen2.5-1.5B
  max_total_sequence_length: 10240
  dtensor_cfg: {enabled: true, tensor_parallel_size: 1}
  generation: {backend: vllm, max_new_tokens: "${policy.max_total_sequence_length}"}
cluster: {gpus_per_node: 8, num_nodes: 1}
"""


@pytest.mark.parametrize(("name", "text", "stack", "gpus", "draws"), [
    ("sky.sh", SKYRL + "true", "skyrl", 8, None), ("sky.sh", SKYRL + "false", "skyrl", 16, "8"),
    ("slime.sh", SLIME % "--colocate", "slime", 8, None),
    ("slime.sh", SLIME % "--rollout-num-gpus 4", "slime", 12, "4"),
    ("areal.yaml", AREAL, "areal", 16, "8"), ("rl.toml", PRIME, "prime-rl", 16, "8"),
    ("nemo.yaml", NEMO, "nemo-rl", 8, None)])
def test_the_answers_of_a_step_and_who_draws_them_are_read(
        tmp_path: Path, name: str, text: str, stack: str, gpus: int, draws: str | None):
    (tmp_path / "base.yaml").write_text(NEMO_BASE)
    (tmp_path / name).write_text(text)
    reading = read_config(str(tmp_path / name)).reading
    values = {path.removeprefix("workload."): value for path, value in reading.values.items()}
    assert (values["kind"], values["method"], values["stack"]) == ("posttraining", "grpo", stack)
    assert (values["prompts"], values["samples_per_prompt"]) == (64, 5)
    assert "Qwen/Qwen3-4B" in (values.get("model"), *reading.names) or "Qwen3-4B" in reading.names
    assert (reading.layout["tp"], reading.layout["rollout_tp"]) == ("4", "2")
    assert (reading.gpus, reading.layout.get("rollout_gpus")) == (gpus, draws)
    assert values.get("placement") == ("disaggregated" if draws else "colocated" if stack != "nemo-rl" else None)
    assert reading.longest_answer in (8192, 10240)


def test_a_recipe_without_its_base_says_so(tmp_path: Path):
    (tmp_path / "nemo.yaml").write_text(NEMO)
    reading = read_config(str(tmp_path / "nemo.yaml")).reading
    assert any("base.yaml is not there" in said for said in reading.counted)


def test_nemos_preferences_are_tuning(tmp_path: Path):
    (tmp_path / "dpo.yaml").write_text(
        "dpo: {max_num_steps: 150}\npolicy: {model_name: Qwen/Qwen3-4B, train_global_batch_size: 128, "
        "train_micro_batch_size: 2, max_total_sequence_length: 1024, dtensor_cfg: {enabled: true}}\n"
        "cluster: {gpus_per_node: 8}\n")
    reading = read_config(str(tmp_path / "dpo.yaml")).reading
    assert (reading.values["workload.method"], reading.values["workload.stack"]) == ("dpo", "nemo-rl-fsdp")
    assert (reading.layout["mbs"], reading.steps) == ("2", 150)


def test_what_a_recipe_lays_over_its_base_counts_where_a_key_stands_for_another(tmp_path: Path):
    (tmp_path / "base.yaml").write_text(NEMO_BASE.replace("generation: {backend: vllm,", """train_micro_batch_size: 2
  sequence_packing: {enabled: true, train_mb_tokens: "${..max_total_sequence_length}"}
  generation: {backend: vllm, vllm_cfg: {gpu_memory_utilization: 0.6},"""))
    (tmp_path / "nemo.yaml").write_text("defaults: base.yaml\npolicy: {max_total_sequence_length: 4096}\n"
                                        "data: {max_input_seq_length: '${policy.max_total_sequence_length}'}\n")
    reading = read_config(str(tmp_path / "nemo.yaml")).reading
    assert (reading.longest_answer, reading.longest_prompt) == (4096, 4095)
    assert (reading.layout["micro_batch_tokens"], reading.layout["memory_fraction"]) == ("4096", "0.6")
    assert (reading.layout["trainer"], reading.layout["rollout_pp"]) == ("fsdp", "1")


@pytest.mark.parametrize("block", ["data_plane: {enabled: true}", "value: {make_sequence_length_divisible_by: 8}"])
def test_a_recipe_is_known_by_any_block_over_its_base(tmp_path: Path, block: str):
    (tmp_path / "base.yaml").write_text(NEMO_BASE)
    (tmp_path / "over.yaml").write_text(f"defaults: base.yaml\n{block}\n")
    assert read_config(str(tmp_path / "over.yaml")).reading.values["workload.stack"] == "nemo-rl"


def test_nemos_teacher_and_critic_are_read(tmp_path: Path):
    policy = "policy: {model_name: Qwen/Qwen3-4B, max_total_sequence_length: 1024, dtensor_cfg: {enabled: true}}\n"
    (tmp_path / "teach.yaml").write_text(
        "distillation: {num_prompts_per_step: 64}\nteacher: {model_name: Qwen/Qwen3-32B}\n" + policy)
    values = read_config(str(tmp_path / "teach.yaml")).reading.values
    assert (values["workload.method"], values["workload.reward_model"]) == ("on-policy-distillation", "Qwen/Qwen3-32B")
    assert "workload.reference" not in values
    (tmp_path / "ppo.yaml").write_text(
        "ppo: {num_prompts_per_step: 64, num_generations_per_prompt: 1}\n"
        "value: {model_name: Qwen/Qwen3-1.7B}\n" + policy)
    values = read_config(str(tmp_path / "ppo.yaml")).reading.values
    assert (values["workload.method"], values["workload.critic"]) == ("ppo", "Qwen/Qwen3-1.7B")


VERL = ("M=${M:-\"$DATA/models/Qwen3-4B\"}\npython3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=$M "
        "algorithm.adv_estimator=gpg data.train_batch_size=64 actor_rollout_ref.rollout.n=5 "
        "data.max_prompt_length=512 data.max_response_length=1000 trainer.nnodes=1 trainer.n_gpus_per_node=8 "
        "actor_rollout_ref.actor.ppo_mini_batch_size=16 actor_rollout_ref.rollout.gpu_memory_utilization=0.6 ")


@pytest.mark.parametrize(("more", "tokens"), [
    # three answers of 130 and 350 tokens; no more than the ten that a GPU has of an update; as packed, and no more
    ("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=3", 3 * 480),
    ("actor_rollout_ref.actor.ppo_micro_batch_size=160", 10 * 480),
    ("actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=4000", 4000),
    ("actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=24000", 4800)])
def test_a_micro_batch_holds_no_more_than_a_copy_has_of_an_update(tmp_path: Path, more: str, tokens: int):
    (tmp_path / "run.sh").write_text(VERL + more)
    config = read_config(str(tmp_path / "run.sh"))
    values = config.values({}, Catalog())
    assert (values["workload.method"], values["workload.model"]) == ("grpo", "Qwen3-4B")
    assert (config.reading.layout["micro_batch_tokens"], config.reading.layout["memory_fraction"]) == (
        f"{tokens}", "0.6")


def test_a_path_below_a_variable_names_a_model_and_its_format(tmp_path: Path):
    text = (SLIME % "--colocate").replace("/root/Qwen3-4B\n   #", "$BASE/Qwen3-4B-FP8/\n   #")
    (tmp_path / "slime.sh").write_text(text)
    reading = read_config(str(tmp_path / "slime.sh")).reading
    assert "Qwen3-4B-FP8" in reading.names
    assert reading.layout["rollout_format"] == "fp8"


def test_a_command_that_a_script_reads_into_a_variable_is_read(tmp_path: Path):
    (tmp_path / "dpo.sh").write_text(
        "read -r -d '' training_commands <<EOF\nopenrlhf.cli.train_dpo \\\n   --model.model_name_or_path Qwen/Qwen3-4B "
        "\\\n   --train.batch_size 256 --train.micro_batch_size 1 --data.max_len 8192 --ds.zero_stage 3\nEOF\n"
        "deepspeed --module $training_commands\n")
    values = read_config(str(tmp_path / "dpo.sh")).reading.values
    assert (values["workload.method"], values["workload.model"]) == ("dpo", "Qwen/Qwen3-4B")


def test_degrees_of_attention_and_experts_are_told_apart_and_a_trainers_gpus_from_the_rollouts(tmp_path: Path):
    (tmp_path / "areal.yaml").write_text(AREAL.replace("megatron:d2t4", "megatron:(attn:d4p4t2|ffn:d2p4e4)").replace(
        "  path: Qwen", "  mb_spec: {max_tokens_per_mb: 32768}\n  path: Qwen").replace("Qwen3-4B", "Qwen3-30B-A3B"))
    config = read_config(str(tmp_path / "areal.yaml"))
    layout = config.reading.layout
    assert [layout[axis] for axis in ("tp", "pp", "ep", "trainer")] == ["2", "4", "4", "megatron"]
    assert (layout["micro_batch_tokens"], config.reading.gpus) == ("32768", 40)
    # 32 that train are a multiple of what the degrees take, and the 8 that draw are none of them
    assert config.asked({}, {}, 8, Catalog())[0]["limits.gpus"] == 40


def test_prime_rl_has_nodes_for_each_replica_and_packs_to_its_length(tmp_path: Path):
    (tmp_path / "rl.toml").write_text(PRIME.replace(
        "num_train_gpus = 8\nnum_infer_gpus = 8",
        "num_train_nodes = 1\nnum_infer_nodes = 2\nnum_infer_replicas = 3").replace(
        "tp = 4", "tp = 4\ncp = 2\noptim_cpu_offload = true\nac_offloading = {max_inflight_activations = 5}"))
    reading = read_config(str(tmp_path / "rl.toml")).reading
    assert (reading.gpus, reading.layout["rollout_gpus"]) == (8 + 48, "48")
    assert (reading.layout["micro_batch_tokens"], reading.layout["offload_optimizer"]) == ("5120", "1")
    assert (reading.layout["recompute"], reading.layout["offload_activations"]) == ("full", "1")
