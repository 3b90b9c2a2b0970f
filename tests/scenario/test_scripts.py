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
