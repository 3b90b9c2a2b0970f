"""Configs of several parts: lines within lines, files beside files, and one trainer under two names."""

from pathlib import Path

import pytest

from planner.scenario.configs.read import read_config

INSIDE = ('GPT_ARGS="--num-layers 32 --hidden-size 4096 --num-attention-heads 32"\n'
          'CMD="pretrain_gpt.py --tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 256 --bf16 '
          '$GPT_ARGS"\n')


@pytest.mark.parametrize("runs", [
    'srun --wait=60 bash -c "torchrun --nproc_per_node 8 $CMD" 2>&1 | tee log',
    'eval "torchrun --nproc_per_node 8 $CMD"',
    "srun sh -lc 'torchrun --nproc_per_node 8 '\"$CMD\"", "torchrun --nproc_per_node 8 $CMD"])
def test_a_line_that_a_shell_is_handed_is_read(runs: str):
    """What a script's variable of sizes held was answered alone: without its degrees, its batch and its precision."""
    reading = read_config(INSIDE + runs).reading
    assert reading.layout["tp"] == "2"
    assert (reading.values["workload.global_batch"], reading.gpus) == (256, 8)
    assert "workload.precision" not in reading.values


def test_answers_are_drawn_in_ms_swift_as_in_trl():
    model = "Qwen/Qwen2.5-7B-Instruct"
    lines = {"swift": f"NPROC_PER_NODE=4 swift rlhf --rlhf_type grpo --train_type full --model {model}",
             "trl": f"accelerate launch --num_processes 4 -m trl.scripts.grpo --model_name_or_path {model}"}
    lines = {name: f"{line} --per_device_train_batch_size 4 --gradient_accumulation_steps 4 --num_generations 8 "
             "--beta 0.04 --max_completion_length 1024" for name, line in lines.items()}
    swift, trl = (read_config(line).reading for line in lines.values())
    same = ("method", "kind", "prompts", "samples_per_prompt", "reference", "stack")
    assert [swift.values[f"workload.{key}"] for key in same] == [trl.values[f"workload.{key}"] for key in same]
    assert (swift.values["workload.prompts"], swift.gpus, swift.longest_answer) == (8, 4, 1024)


def test_diffusion_pipe_has_sizes_and_repeats_in_a_file_beside(tmp_path: Path):
    (tmp_path / "dataset.toml").write_text("resolutions = [512]\nframe_buckets = [1, 33]\n[[directory]]\npath = 'x'\n"
                                           "num_repeats = 10\n")
    config = tmp_path / "train.toml"
    config.write_text("dataset = 'data/dataset.toml'\nepochs = 100\nmicro_batch_size_per_gpu = 1\n"
                      "[model]\ntype = 'wan'\n[adapter]\ntype = 'lora'\nrank = 32\n")
    reading = read_config(str(config)).reading
    assert (reading.values["workload.resolution"], reading.values["workload.frames"]) == ("512", 33)
    assert reading.of_samples == {"workload.epochs": 1000}
    (tmp_path / "dataset.toml").unlink()
    assert any("is not there" in said for said in read_config(str(config)).reading.counted)


def read(text: str, name: str, folder: Path):
    """Return what is read of a file, without what it is called."""
    (folder / name).write_text(text)
    reading = read_config(str(folder / name)).reading
    return {path.removeprefix("workload."): value for path, value in reading.values.items()}, reading


def test_lines_of_megatron_swift_are_not_megatrons():
    reading = read_config("NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-14B --tuner_type full --max_length 8192 "
                          "--tensor_model_parallel_size 4 --global_batch_size 16 --micro_batch_size 1 "
                          "--optimizer_cpu_offload true --optimizer_offload_fraction 0.65").reading
    assert (reading.values["workload.stack"], reading.values["workload.method"]) == ("megatron-swift", "full")
    # its distributed optimizer is on unless it is turned off
    assert {"tp": "4", "zero": "1", "offload_optimizer": "0.65"}.items() <= reading.layout.items()
    assert reading.gpus == 8
    drawn = read_config("NPROC_PER_NODE=4 megatron rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B-Instruct "
                        "--num_generations 8 --global_batch_size 32 --steps_per_generation 4 "
                        "--tensor_model_parallel_size 2").reading
    assert (drawn.values["workload.method"], drawn.values["workload.prompts"]) == ("grpo", 32 * 4 // 8)


def test_the_file_of_a_program_names_its_verb(tmp_path: Path):
    line = ("CUDA_VISIBLE_DEVICES=0,1 accelerate launch --config_file fsdp2.json swift/cli/sft.py --model "
            "Qwen/Qwen2.5-7B --tuner_type lora --target_modules q_proj k_proj "
            "--lora_rank 16 --modules_to_save word_embeddings novel")
    reading = read_config(line).reading
    assert (reading.values["workload.lora_targets"], reading.gpus) == ("q+k+embeddings", 2)
    assert any("novel: not counted" in said for said in reading.counted)
    values, _ = read("model: Qwen/Qwen2.5-7B-Instruct\ntuner_type: lora\ntarget_modules: [q_proj, v_proj]\n"
                     "deepspeed: zero3\nmax_length: 2048\n", "sft.yaml", tmp_path)
    assert (values["lora_targets"], values["sequence_length"], values["stack"]) == ("q+v", 2048, "deepspeed")


def test_a_teacher_is_distilled_from():
    reading = read_config("NPROC_PER_NODE=8 swift rlhf --rlhf_type gkd --model Qwen/Qwen3-8B-Base --teacher_model "
                          "Qwen/Qwen3-32B --per_device_train_batch_size 2 --max_completion_length 1024").reading
    values = {path.removeprefix("workload."): value for path, value in reading.values.items()}
    assert (values["method"], values["reward_model"]) == ("on-policy-distillation", "Qwen/Qwen3-32B")
    assert (values["prompts"], values["samples_per_prompt"]) == (16, 1)


def test_arrays_in_quotes_are_as_many_words_as_elements(tmp_path: Path):
    text = ('DATA=(\n  data.train_files=a.parquet\n  data.train_batch_size=128\n  data.max_response_length=2048\n)\n'
            'ALGORITHM=(\n  algorithm.adv_estimator=grpo\n  algorithm.use_kl_in_reward=False\n)\n'
            'python -m verl.trainer.main_ppo "${DATA[@]}" "${ALGORITHM[@]}" actor_rollout_ref.model.path=Qwen/Qwen3-8B '
            'actor_rollout_ref.rollout.n=16 actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 $@\n')
    values, reading = read(text, "run.sh", tmp_path)
    assert (values["method"], values["prompts"], values["samples_per_prompt"]) == ("grpo", 128, 16)
    assert reading.layout["tp"] == "4"


@pytest.mark.parametrize(("engine", "stack", "layout"), [
    ("engine=fsdp engine.ulysses_sequence_parallel_size=2", "verl-fsdp", {"cp": "2", "zero": "3", "mbs": "8"}),
    ("engine=megatron engine.tensor_model_parallel_size=2 engine.pipeline_model_parallel_size=4", "megatron-core",
     {"tp": "2", "pp": "4", "mbs": "8"})])
def test_verls_supervised_trainer_is_read(tmp_path: Path, engine: str, stack: str, layout: dict[str, str]):
    values, reading = read(f"torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.sft_trainer "
                           f"data.train_files=a.parquet data.train_batch_size=256 "
                           f"data.micro_batch_size_per_gpu=8 data.max_length=2048 {engine} "
                           "model.path=Qwen/Qwen3-8B model.lora_rank=32", "run.sh", tmp_path)
    assert (values["method"], values["sequence_length"], values["global_batch"]) == ("lora", 2048, 256)
    assert values["stack"] == stack
    assert layout.items() <= reading.layout.items()
    assert reading.gpus == 8


@pytest.mark.parametrize(("more", "method", "stack", "zero"), [
    ("peft_config:\n  name: lora\n  r: 16\ndist_config:\n  name: fsdp2\n", "lora", "llama-factory", "3"),
    ("peft_config:\n  name: lora\nquant_config:\n  quantization_bit: 4\ndist_config:\n  name: fsdp2\n", "qlora",
     "llama-factory", "3"),
    ("dist_config:\n  name: deepspeed\n  config_file: deepspeed/ds_z2_config.json\n", "full", "deepspeed", "2")])
def test_llama_factorys_first_version_is_read(tmp_path: Path, more: str, method: str, stack: str, zero: str):
    values, reading = read(f"model: Qwen/Qwen3-4B\nmodel_class: llm\ncutoff_len: 2048\nmicro_batch_size: 2\n{more}",
                           "v1.yaml", tmp_path)
    assert (values["method"], values["stack"], values["sequence_length"]) == (method, stack, 2048)
    assert (reading.layout["zero"], reading.layout["mbs"]) == (zero, "2")
