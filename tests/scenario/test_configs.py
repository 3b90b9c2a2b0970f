"""Configs as their projects publish them: what is read of each, and what an estimate makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.errors import InputError
from planner.scenario.configs.read import read_config
from planner.scenario.configs.recognized import all_readers, started
from planner.scenario.configs.shell import commands
from planner.scenario.configs.source import source_of
from planner.scenario.flags import FLAGS

CONFIGS = Path(__file__).parent / "configs"
CATALOG = Catalog()
SEQUENCES = "workload.global_batch"
MODEL = {"workload.model": "llama-3.1-8b"}
FOUND: list[tuple[str, dict[str, Any], dict[str, str], int | None]] = [
    # axolotl: batch is micro_batch_size x gradient_accumulation_steps x 8 GPUs
    ("axo_lora.yml", {"model": "NousResearch/Meta-Llama-3-8B", "method": "lora", "lora_rank": 32, "stack": "axolotl",
                      "seq_len": 4096, "optimizer": "adamw-8bit"}, {"mbs": "2", "zero": "0", "recompute": "full"}, 64),
    ("axo_fsdp.yml", {"model": "meta-llama/Llama-3.1-8B-Instruct", "method": "full", "seq_len": 8192,
                      "tokens": 2 * 8 * 8192}, {"mbs": "1", "zero": "3", "recompute": "none"}, 8),
    ("axo_qlora70.yml", {"method": "qlora", "lora_rank": 8, "seq_len": 512},
     {"mbs": "1", "zero": "3", "recompute": "full", "offload_optimizer": "1", "offload_parameters": "1"}, 32),
    ("lf_ds3.yaml", {"method": "full", "stack": "deepspeed", "seq_len": 1024},
     {"mbs": "1", "zero": "3", "recompute": "full"}, 16),
    ("lf_fsdp2.yaml", {"method": "full", "stack": "llama-factory", "seq_len": 32768, "loss": "fused"}, {"zero": "0"},
     16),
    ("lf_lora.yaml", {"method": "qlora", "stack": "llama-factory", "lora_rank": 8}, {"mbs": "1", "zero": "0"}, 64),
    ("trl_qlora.yaml", {"model": "mistralai/Mistral-7B-v0.1", "method": "qlora", "seq_len": 2048, "lora_rank": 16},
     {"mbs": "4", "recompute": "full", "zero": "0"}, 64),
    ("trl_full.yaml", {"method": "full", "seq_len": 2048}, {"mbs": "16", "recompute": "full", "zero": "0"}, 128),
    ("trl_docs.yaml", {"method": "full", "seq_len": 1024}, {"mbs": "8", "recompute": "full", "zero": "0"}, 64),
    ("acc_fsdp2.yaml", {"precision": "bf16", "stack": "accelerate-fsdp", "gpus": 8}, {"zero": "3"}, None),
    ("acc_zero3.yaml", {"precision": "bf16", "stack": "deepspeed", "gpus": 8}, {"zero": "3"}, None),
    ("acc_qlora.yaml", {"stack": "accelerate-fsdp"},
     {"zero": "3", "offload_optimizer": "1", "offload_parameters": "1"}, None),
    ("ds_z3_offload.json", {"stack": "deepspeed"}, {"zero": "3", "offload_optimizer": "1", "offload_parameters": "1"},
     None),
    ("ds_zero1.json", {"stack": "deepspeed", "method": "full"}, {"zero": "1"}, None),
    # 32 sequences in 4 micro-batches of 4 are 2 GPUs
    ("ds_zero2.json", {"gpus": 2}, {"zero": "2", "mbs": "4", "offload_optimizer": "1"}, 32),
    # TP 8 on 8 GPUs leaves one copy
    ("tt70.toml", {"model": "llama-3.1-70b", "method": "pretrain", "stack": "fsdp2", "seq_len": 8192, "gpus": 8,
                   "tokens": 1000 * 8 * 8192}, {"tp": "8", "mbs": "8", "zero": "3", "recompute": "full"}, 8),
    ("tt405.toml", {"model": "llama-3.1-405b", "precision": "fp8"}, {"tp": "8", "mbs": "2", "recompute": "full"}, 2),
    ("tt_deepseek.toml", {"model": "deepseek-v3", "seq_len": 4096}, {"mbs": "4", "zero": "3",
                                                                      "recompute": "selective"}, 32),
    ("trainer.sh", {"model": "mistralai/Mistral-7B-v0.1", "method": "full", "stack": "accelerate-fsdp", "gpus": 4,
                    "seq_len": 2048}, {"mbs": "2", "zero": "3", "recompute": "full"}, 128),
    ("verl_grpo.sh", {"model": "Qwen/Qwen2.5-7B-Instruct", "method": "grpo", "prompts": 1024, "samples_per_prompt": 5,
                      "input": 130, "output": 717, "max_model_len": 3072, "reference": "initial", "stack": "verl",
                      "engine": "vllm", "gpus": 16},
     {"tp": "1", "pp": "1", "cp": "1", "rollout_tp": "2", "recompute": "full"}, None),
    ("openrlhf.sh", {"model": "OpenRLHF/Llama-3-8b-sft-mixture", "method": "grpo", "prompts": 1024, "gpus": 8,
                     "samples_per_prompt": 8, "reward_model": "OpenRLHF/Llama-3-8b-rm-700k", "output": 358,
                     "placement": "colocated", "stack": "openrlhf"}, {}, None),
    ("python3 -m openrlhf.cli.train_dpo --pretrain meta-llama/Llama-3.1-8B --max_len 4096 --train_batch_size 256 "
     "--micro_train_batch_size 1 --zero_stage 3 --gradient_checkpointing --lora_rank 0",
     {"method": "dpo", "tuning": "full", "seq_len": 4096, "stack": "deepspeed"}, {"zero": "3", "mbs": "1"}, 256),
    # 8 x 4 answers on each of 8 GPUs are to 32 prompts
    ("trl_grpo.yaml", {"model": "Qwen/Qwen2.5-3B-Instruct", "method": "grpo", "prompts": 32, "samples_per_prompt": 8,
                       "input": 130, "output": 358, "stack": "trl", "reference": "initial", "gpus": 8}, {}, None),
    # Slurm sets the number of nodes
    ("trainer_slurm.sh", {"model": "meta-llama/Llama-3.1-70B", "gpus": 32, "seq_len": 8192}, {"mbs": "1"}, 128),
    # the script's one node does not hold TP 8 x PP 16
    ("gpt3.sh", {"model": "gpt-3-175b", "precision": "fp16", "seq_len": 2048, "gpus": 128,
                 "tokens": 500_000 * 1536 * 2048}, {"tp": "8", "pp": "16", "mbs": "1", "sp": "0", "zero": "0",
                                                   "recompute": "none"}, 1536),
    ("llama3_fp8.sh", {"model": "llama-3-8b", "precision": "fp8", "gpus": 8, "seq_len": 8192},
     {"mbs": "1", "zero": "1", "recompute": "none"}, 128),
    ("nemo.yaml", {"model": "llama-3-70b", "method": "pretrain", "precision": "bf16", "gpus": 256, "seq_len": 8192,
                   "tokens": 238_418 * 1024 * 8192},
     {"tp": "4", "pp": "4", "cp": "2", "vpp": "5", "sp": "1", "mbs": "1", "zero": "1", "recompute": "none"}, 1024),
    ("mixtral.sh", {"model": "mixtral-8x7b", "gpus": 2, "seq_len": 1024}, {"pp": "2", "mbs": "1"}, 1),
    ("vllm.txt", {"model": "meta-llama/Llama-3.1-70B-Instruct", "engine": "vllm", "quantization": "fp8",
                  "kv_cache": "fp8", "max_model_len": 8192, "memory_fraction": 0.95}, {"tp": "4"}, None),
    ("vllm serve Qwen/Qwen3-8B -tp 2 --max-num-seqs 32 --max-num-batched-tokens 4096 --gpu_memory_utilization 0.8",
     {"max_sequences": 32, "max_batched_tokens": 4096, "memory_fraction": 0.8}, {"tp": "2"}, None),
    ("python -m sglang.launch_server --model-path Qwen/Qwen3-8B --mem-fraction-static 0.7 --max-running-requests 16 "
     "--chunked-prefill-size -1", {"max_sequences": 16, "memory_fraction": 0.7}, {}, None),
    ("vllm serve Qwen/Qwen3-235B-A22B -dp 8 --enable-expert-parallel", {"model": "Qwen/Qwen3-235B-A22B", "gpus": 8},
     {"dp": "8", "ep": "8"}, None),
    ("trtllm.yaml", {"engine": "tensorrt-llm", "kv_cache": "fp8", "max_model_len": 8192, "memory_fraction": 0.85,
                     "max_sequences": 256, "max_batched_tokens": 8192, "prefill_delay": 60, "gpus": 8},
     {"tp": "1", "dp": "8", "ep": "8"}, None),
    ("trtllm-serve Qwen/Qwen3-8B --backend pytorch --tp_size 2 --max_batch_size 64 "
     "--kv_cache_free_gpu_memory_fraction 0.8",
     {"model": "Qwen/Qwen3-8B", "engine": "tensorrt-llm", "memory_fraction": 0.8, "gpus": 2}, {"tp": "2"}, None),
    ("compose.yaml", {"model": "meta-llama/Llama-3.3-70B-Instruct", "engine": "vllm", "quantization": "fp8",
                      "max_model_len": 16384, "gpus": 12}, {"tp": "4"}, None),
    ("deployment.yaml", {"model": "mistralai/Mistral-7B-Instruct-v0.3", "engine": "vllm",
                         "max_batched_tokens": 1024}, {"tp": "1"}, None),
    ("python -m vllm.entrypoints.openai.api_server --model mistralai/Mistral-7B-v0.1 --pipeline-parallel-size=2",
     {"model": "mistralai/Mistral-7B-v0.1", "engine": "vllm"}, {"pp": "2"}, None),
    ('VLLM_ALL2ALL_BACKEND="x" \\\nvllm serve --max-model-len 512 --model "gpt2"',
     {"max_model_len": 512, "input": 384, "output": 128}, {}, None),
    ("sgl.sh", {"model": "deepseek-ai/DeepSeek-V3", "engine": "sglang"}, {"tp": "8"}, None),
    # manifests around a line: the variables, the image's tag and the replicas of each
    ("helm.yaml", {"model": "Qwen/Qwen3-32B", "engine_version": "0.9.1", "max_model_len": 32768, "max_sequences": 64},
     {"tp": "2"}, None),
    ("kserve.yaml", {"model": "meta-llama/meta-llama-3-8b-instruct", "max_model_len": 8192}, {"tp": "1"}, None),
    ("sky.yaml", {"model": "meta-llama/Llama-3.3-70B-Instruct", "quantization": "fp8"}, {"tp": "4"}, None),
    ("ray_serve.yaml", {"model": "Qwen/Qwen2.5-72B-Instruct", "memory_fraction": 0.9}, {"tp": "4"}, None),
    ("tgi.yml", {"model": "mistralai/Mistral-Small-24B-Instruct-2501", "engine": "vllm", "quantization": "fp8"},
     {"tp": "2"}, None),
    ("llama.sh", {"engine": "llama-cpp", "quantization": "q4_k_m", "model": "unsloth/Qwen3-30B-A3B",
                  "max_model_len": 8192, "max_sequences": 4}, {}, None),
    ("offline.py", {"model": "Qwen/Qwen2.5-72B-Instruct-AWQ", "output": 512, "memory_fraction": 0.93}, {"tp": "2"},
     None),
    # scripts: defaults of arguments, variables and dictionaries of keywords
    ("peft_train.py", {"model": "mistralai/Mistral-7B-v0.3", "method": "lora", "lora_rank": 32, "lora_targets": "q+v",
                       "optimizer": "paged-adamw-8bit"}, {"mbs": "4", "zero": "2", "recompute": "full"}, 512),
    ("unsloth.py", {"model": "unsloth/llama-3-8b-bnb-4bit", "method": "dpo", "tuning": "qlora", "lora_rank": 32,
                    "seq_len": 4096, "stack": "unsloth"}, {"mbs": "2", "recompute": "full", "zero": "0"}, 128),
    ("nemo_recipe.py", {"model": "llama-3.1-70b", "method": "pretrain", "gpus": 64, "tokens": 1000 * 256 * 8192},
     {"tp": "4", "pp": "4", "vpp": "5", "sp": "1"}, 256),
    # 16 GPUs of two nodes; 4 x 8 x (2 x 8 / 2 / 2); 300e9 / 128 / 4096
    ("megatron_sums.sh", {"model": "llama-2-7b", "gpus": 16, "tokens": 572_204 * 128 * 4096},
     {"tp": "2", "pp": "2", "mbs": "4"}, 128),
    ("nanotron.yaml", {"model": "llama-3-8b", "gpus": 32, "tokens": 100 * 64 * 4096},
     {"tp": "4", "pp": "2", "sp": "1", "zero": "1", "mbs": "2", "recompute": "full"}, 64),
    ("neox.yml", {"model": "gpt-neox-20b", "precision": "fp16"}, {"tp": "2", "pp": "2", "zero": "1"}, 256),
    ("litgpt.yaml", {"model": "meta-llama/Llama-3.1-8B", "method": "qlora", "lora_targets": "q+k+v+o+mlp"},
     {"mbs": "2"}, 16),
    # lines that start a file beside them: what they say holds over it
    ("lf_line.sh", {"gpus": 16, "stack": "deepspeed"}, {"zero": "3"}, 32),
    ("tune.sh", {"model": "qwen2.5-7b", "gpus": 4, "stack": "torchtune", "optimizer": "paged-adamw-8bit"},
     {"mbs": "4", "zero": "3", "recompute": "full"}, 128),
    ("trl_line.sh", {"model": "Qwen/Qwen2.5-14B", "gpus": 32, "stack": "deepspeed"}, {"mbs": "1", "zero": "3"}, 128),
    ("titan.sh", {"model": "llama-3.1-70b", "gpus": 16, "tokens": 500 * 32 * 8192}, {"tp": "4", "mbs": "8"}, 32),
    ("grpo.py", {"model": "Qwen/Qwen2.5-7B-Instruct", "method": "grpo", "prompts": 32, "samples_per_prompt": 8,
                 "reference": "none"}, {}, None),
    ("pipeline.py", {"model": "flux.1-dev", "resolution": "1024x1024", "guidance": 3.5, "gpus": 1},
     {"offload": "model"}, None),
    # models of images: the batch of all GPUs, and the size of the data set's file
    ("kohya.sh", {"model": "flux.1-dev", "lora_rank": 16, "resolution": "1024x1024", "steps": 2000,
                  "batch": 4, "gpus": 2, "latents": "cached", "quantization": "fp8-weights",
                  "optimizer": "adafactor"}, {"mbs": "2", "recompute": "full"}, None),
    ("flux.sh", {"model": "flux.1-dev", "optimizer": "prodigy", "batch": 32, "resolution": "512"}, {"mbs": "1"}, None),
    ("ai_toolkit.yaml", {"model": "flux.1-dev", "lora_rank": 32, "resolution": "1024", "batch": 2, "gpus": 1},
     {"mbs": "2"}, None),
    # actor 4, reference 2, critic 2 and reward 2, of which one machine's 8 are taken, and two engines of 2
    ("openrlhf_ppo.sh", {"method": "ppo", "critic": "OpenRLHF/Llama-3-8b-rm-700k", "gpus": 12, "samples": 20_000,
                         "placement": "disaggregated"}, {"rollout_tp": "2", "rollout_gpus": "4"}, None),
    ("python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8 --dp-size 8 --enable-dp-attention "
     "--enable-prefill-delayer", {"engine": "sglang", "prefill_delay": 30}, {"tp": "1", "dp": "8", "ep": "1"}, None),
    # experts are spread where that is asked for, or by what exchanges tokens
    ("sglang serve --model-path deepseek-ai/DeepSeek-V3 --tp 16 --attn-dp-size 16 --moe-a2a-backend deepep "
     "--chunked-prefill-size 65536 --max-running-requests 2048", {"engine": "sglang", "gpus": 16, "max_sequences": 128,
     "max_batched_tokens": 4096}, {"tp": "1", "dp": "16", "ep": "16"}, None),
    ("python -m sglang.launch_server --model Qwen/Qwen2.5-7B-Instruct --tp-size 2 --dp-size 4 --context-length 4096",
     {"gpus": 8, "max_model_len": 4096}, {"tp": "2"}, None)]


def given(name: str) -> str:
    return str(CONFIGS / name) if (CONFIGS / name).is_file() else name


@pytest.mark.parametrize(("name", "values", "layout", "batch"), FOUND, ids=lambda one: str(one)[:30])
def test_published_configs_are_read(name: str, values: dict[str, Any], layout: dict[str, str], batch: int | None):
    config = read_config(given(name))
    stated = MODEL if name.startswith(("acc_", "ds_", "trtllm.yaml")) else {}
    found, axes = config.asked(stated, {}, 8, CATALOG)
    assert {key: found.get(FLAGS[key]) for key in values} == values
    assert {axis: axes.get(axis) for axis in layout} == layout
    assert found.get(SEQUENCES) == batch


@pytest.mark.parametrize("name", [one[0] for one in FOUND], ids=lambda one: str(one)[:30])
def test_every_one_is_estimated(name: str):
    stated: dict[str, Any] = {"model": "llama-3.1-8b"} if name.startswith(("acc_", "ds_")) else {}
    stated |= {"model": "qwen3-235b-a22b"} if name == "trtllm.yaml" else {}
    answer = planner.estimate(node="dgx-h200", from_=given(name), **stated)
    assert answer.memory.peak_bytes > 0


AXOLOTL = "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 2048\nmicro_batch_size: 1\n"
FACTORY = "model_name_or_path: meta-llama/Meta-Llama-3-8B\nstage: sft\nfinetuning_type: full\n"


@pytest.mark.parametrize(("text", "said"), [
    (FACTORY + "use_galore: true\n", "use_galore: memory of this optimizer"),
    (FACTORY + "use_badam: true\n", "use_badam: memory of this optimizer"),
    (FACTORY + "use_kt: true\n", "experts computed on the CPU"),
    (AXOLOTL + "adapter: lora\npeft_use_dora: true\n", "DoRA is not modeled")])
def test_a_switch_whose_effect_would_be_missing_is_refused(text: str, said: str, tmp_path: Path):
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_config(str(path))


@pytest.mark.parametrize(("text", "values", "layout", "counted"), [
    (FACTORY + "use_muon: true\n", {"workload.optimizer": "muon"}, {}, False),
    (FACTORY + "pure_bf16: true\n", {}, {}, True),
    (AXOLOTL + "adapter: lora\nload_in_8bit: true\n", {"workload.method": "lora"}, {}, True),
    (AXOLOTL + "fsdp_version: 2\ntensor_parallel_size: 2\n", {"workload.stack": "fsdp2"}, {"tp": "2"}, True),
    (AXOLOTL + "expert_parallel_size: 4\n", {"workload.stack": "axolotl"}, {"ep": "4"}, False),
    # fused experts are no linear layers to axolotl; its plugin alone turns the fused loss on
    (AXOLOTL + "adapter: lora\nlora_target_linear: true\n", {"workload.lora_targets": "linear"}, {}, False),
    (AXOLOTL + "adapter: lora\nlora_target_modules: [q_proj, v_proj]\nlora_modules_to_save: [lm_head]\n",
     {"workload.lora_targets": "q+v+embeddings"}, {}, False),
    (AXOLOTL + "adapter: lora\nlora_target_modules: [o_proj]\nlora_target_parameters: [mlp.experts.down_proj]\n",
     {"workload.lora_targets": "o+down+routed"}, {}, False),
    (AXOLOTL + "adapter: lora\nlora_target_modules: 'layers.\\d+.(mlp|self_attn).(up|down|gate|q|k|v|o)_proj'\n",
     {"workload.lora_targets": "attention+mlp"}, {}, True),
    (AXOLOTL + "plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n",
     {"workload.loss": "fused"}, {}, False),
    (FACTORY.replace("full", "lora") + "lora_target: q_proj,v_proj\n", {"workload.lora_targets": "q+v"}, {}, False),
    (FACTORY + "pipeline_model_parallel_size: 4\nexpert_model_parallel_size: 2\nuse_distributed_optimizer: true\n"
     "recompute_granularity: full\n", {"workload.stack": "megatron-core"},
     {"pp": "4", "ep": "2", "zero": "1", "recompute": "full"}, False),
    ("model_name_or_path: meta-llama/Llama-3.1-8B\ninfer_backend: vllm\n", {"workload.engine": "vllm"}, {}, False)])
def test_what_decides_memory_is_read_or_said(text: str, values: dict[str, Any], layout: dict[str, str], counted: bool,
                                             tmp_path: Path):
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    reading = read_config(str(path)).reading
    assert values.items() <= reading.values.items()
    assert layout.items() <= reading.layout.items()
    assert bool(reading.counted) is counted


AIR = (AXOLOTL.replace("meta-llama/Llama-3.1-8B", "zai-org/GLM-4.5-Air").replace("size: 1", "size: 2")
       + "plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\nadapter: qlora\nload_in_4bit: true\n"
       "optimizer: adamw_bnb_8bit\ngradient_accumulation_steps: 2\ngradient_checkpointing: true\n"
       "lora_target_modules: [q_proj, k_proj, v_proj, o_proj]\n")


def test_a_config_is_answered_as_its_author_measured_it(tmp_path: Path):
    """axolotl's examples/glm45/README.md: QLoRA on one GPU of 80 GB takes about 63.4 GiB."""
    path = tmp_path / "air.yaml"
    path.write_text(AIR, encoding="utf-8")
    memory = planner.estimate(node="h100-sxm-1x", from_=path).memory
    assert memory.fits == "fits"
    assert (memory.peak_bytes - memory.components.reserve) / 2**30 == pytest.approx(63.4, rel=0.1)


@pytest.mark.parametrize(("node", "more", "gpus"), [("4xdgx-h100", {}, 32), ("dgx-h100", {"nodes": 2}, 16)])
def test_nodes_that_are_counted_are_those_of_the_config(node: str, more: dict[str, Any], gpus: int):
    answer = planner.estimate(node=node, from_=CONFIGS / "tt_deepseek.toml", model="qwen3-32b", **more)
    assert (answer.gpus, answer.layout.tp, answer.layout.ep) == (gpus, 1, 1)


def test_degrees_that_a_script_leaves_no_room_for_take_as_many_nodes_as_they_need():
    line = "torchrun --nproc-per-node 8 x.py --tensor-model-parallel-size 1 --pipeline-model-parallel-size 4 " \
           "--expert-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 256 --bf16"
    assert planner.estimate(from_=line, model="mixtral-8x7b").gpus == 32


def test_sizes_of_several_models_are_those_of_the_usual_vocabulary():
    line = ("torchrun --nproc-per-node 8 x.py --num-layers 40 --hidden-size 5120 --num-attention-heads 40 "
            "--ffn-hidden-size 13824 --tensor-model-parallel-size 8 --global-batch-size 64 --bf16 --seq-length 2048")
    config = read_config(line)
    assert config.values({}, CATALOG)["workload.model"] == "llama-2-13b"
    assert "olmo-2-13b" in config.reading.defaults[-1]


def test_hardware_that_a_config_names_is_its_users(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "mine.yaml"
    path.write_text(AXOLOTL.replace("3.1-8B", "3.2-1B") + "adapter: lora\ngpus: 4xL40S\n", encoding="utf-8")
    assert main(["estimate", "--from", str(path)]) == 0
    assert "gpus: the hardware, 4xL40S" in " ".join(capsys.readouterr().out.split())
    assert planner.estimate(from_=path).gpus == 4
    asked = planner.plan(from_=path, tokens="10M").assignments[0]
    assert (asked.gpu, planner.plan(from_=path, tokens="10M", on="h100-sxm-1x").assignments[0].gpu) == (
        "l40s", "h100-sxm")


def test_what_is_stated_stands_over_the_config():
    answer = planner.estimate(node="dgx-h100", from_=CONFIGS / "axo_lora.yml", layout="mbs=1,zero=3", seq_len=2048,
                              model="llama-3.2-1b", gpus=4)
    assert answer.layout.micro_batch == 1
    assert (answer.layout.zero, answer.gpus, answer.layout.micro_batches) == (3, 4, 4)


def test_what_was_read_and_ignored_is_printed(capsys: pytest.CaptureFixture[str]):
    assert main(["estimate", "--from", given("axo_lora.yml"), "--node", "8xh100"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "read from an axolotl config" in shown
    assert "method lora, lora_rank 32, lora_targets linear+embeddings, sequence_length 4096" in shown
    assert "ignored: model_type, datasets" in shown
    assert main(["estimate", "--from", given("vllm.txt"), "--node", "8xh100", "--json", "--output", "200"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("{")
    assert "memory_fraction 0.95" in " ".join(err.split())
    assert "enable-prefix-caching: prompts are read whole" in " ".join(err.split())


@pytest.mark.parametrize(("line", "said"), [
    ("vllm serve gpt2 --gpu-memory-utilization 90", "gpu-memory-utilization: expected a share"),
    ("vllm serve gpt2 --cpu-offload-gb 10", "cpu-offload-gb: expected 0: weights that are read")])
def test_what_an_engine_is_told_is_heeded_or_refused(line: str, said: str):
    with pytest.raises(InputError, match=said):
        read_config(line)


@pytest.mark.parametrize(("written", "tokens"), [("16k", 16_000), ("16K", 16_384), ("25.6k", 25_600), ("4096", 4096)])
def test_numbers_of_tokens_are_read_as_vllm_reads_them(written: str, tokens: int):
    assert read_config(f"vllm serve gpt2 --max-model-len {written}").reading.values["workload.max_model_len"] == tokens


def test_engine_settings_of_a_command_change_the_answer(capsys: pytest.CaptureFixture[str]):
    line = "vllm serve meta-llama/Llama-3.1-8B --max-model-len 2048"
    held: list[dict[str, Any]] = []
    for more in ("", " --gpu-memory-utilization 0.5", " --max-num-seqs 4"):
        assert main(["estimate", "--from", line + more, "--node", "1xh100", "--json"]) == 0
        held.append(json.loads(capsys.readouterr().out)["serving"])
    usual, half, few = held
    assert half["kv_tokens"] < 0.6 * usual["kv_tokens"]
    assert (half["memory_fraction"], few["max_sequences"], few["max_batch"]) == (0.5, 4, 4)


def test_a_plan_takes_the_work_of_a_config(capsys: pytest.CaptureFixture[str]):
    assert main(["plan", "-q", "--from", given("axo_lora.yml"), "--tokens", "10M", "--on", "rtx-4090-1x"]) == 0
    assert "sequences of 4,096 tokens" in capsys.readouterr().out


def test_without_a_number_of_gpus_the_batch_grows_with_them(capsys: pytest.CaptureFixture[str]):
    for more, batch in (((), 128), (("--gpus", "4"), 4 * 2 * 4)):
        asked = ["plan", "--from", given("axo_lora.yml"), "--tokens", "10M", "--on", "a100-sxm-80gb-4x", *more]
        assert main([*asked, "--show-scenario"]) == 0
        assert f"  global_batch: {batch} sequences\n" in capsys.readouterr().out


def test_passes_and_packing_of_a_config_go_with_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "tune.yml"
    file.write_text("base_model: NousResearch/Meta-Llama-3-8B\nadapter: lora\nsequence_len: 8192\n"
                    "sample_packing: true\nnum_epochs: 2\nmicro_batch_size: 1\n")
    ask = ["plan", "--from", str(file), "--samples", "52k", "--mean-length", "300", "--on", "l4", "--show-scenario"]
    assert main(ask) == 0
    assert "  tokens: 31200000\n" in capsys.readouterr().out
    assert main([*ask, "--epochs", "1"]) == 0
    assert "  tokens: 15600000\n" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "suffix", "problem"), [
    ('{"model_type": "llama", "hidden_size": 512}', ".json", "the config.json of a model, .*: --model takes it"),
    ("hello: world", ".yaml", "none of an accelerate config, .*; it has hello: say by flags"),
    ("{", ".json", "not JSON"), ("[model", ".toml", "not TOML"), ("echo done", ".sh", "nor a command with flags"),
    ("base_model: gpt2\nmicro_batch_size: many", ".yml", "micro_batch_size: expected a whole number above zero"),
    ("base_model: gpt2\noptimizer: schedule_free", ".yml", "optimizer: expected an optimizer that is modeled"),
    ("base_model: gpt2\nrl: ppo", ".yml", "rl: expected dpo, ipo, kto, orpo, simpo"),
    ("base_model: gpt2\nadapter: lora\ndeepspeed: mine.json", ".yml", "the file mine.json is not there"),
    ("model_name_or_path: gpt2\nstage: ppo", ".yaml", "stage: expected a stage that is estimated"),
    ('{"zero_optimization": {"stage": 2}}', ".json", "names no model: give --model"),
    ('{"zero_optimization": {"stage": 7}}', ".json", "expected 0, 1, 2 or 3"),
    ("base_model: gtp2", ".yml", "gtp2"), ("base_model: gpt2\nsequence_len: 1e99", ".yml", "sequence"),
    ("torchrun x.py --num-layers 3 --hidden-size 64 --num-attention-heads 4 --bf16", ".sh", "no model of the catalog")])
def test_a_wrong_config_is_one_clear_error(text: str, suffix: str, problem: str, tmp_path: Path):
    path = tmp_path / f"mine{suffix}"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        planner.estimate(node="dgx-h100", from_=path)


def test_a_scenario_beside_a_config_is_refused():
    with pytest.raises(InputError, match="leave the scenario out"):
        planner.plan("llama-3.1-70b-pretrain", from_=CONFIGS / "axo_lora.yml")


def test_a_deepspeed_file_beside_the_config_is_read(tmp_path: Path):
    (tmp_path / "ds.json").write_text((CONFIGS / "ds_zero2.json").read_text())
    (tmp_path / "axolotl.yml").write_text("base_model: gpt2\ndeepspeed: ds.json\nmicro_batch_size: 1\n")
    found, axes = read_config(str(tmp_path / "axolotl.yml")).asked({}, {}, 8, CATALOG)
    assert (axes["zero"], axes["offload_optimizer"], axes["mbs"]) == ("2", "1", "1")
    assert found["workload.stack"] == "deepspeed"


def test_each_kind_is_told_from_the_others():
    readers = all_readers()
    assert len(readers) == len(list(Path(planner.__file__).parent.glob("scenario/configs/readers/[a-z]*.py")))
    for name, *_ in FOUND:
        assert sum(reader.tells(started(source_of(given(name)))[1]) for reader in readers) == 1, name


@pytest.mark.parametrize(("script", "flags"), [
    ("A=4\nB=$((A * 2))\nrun --x $B --y=${C:-7}", {"x": "8", "y": "7"}),
    ("ARGS=(\n  --a 1 # one\n  # --b 2\n  '--c d'\n)\nARGS+=(--e)\nrun ${ARGS[@]} --f \\\n  g",
     {"a": "1", "c": "d", "e": True, "f": "g"}),
    ("run --n -1 --lr 1e-4 --path $HOME/x", {"n": "-1", "lr": "1e-4", "path": "$HOME/x"}),
    ("run --x $((9**9**9)) --y $((1/0))", {"x": "$((9**9**9))", "y": "$((1/0))"})])
def test_scripts_are_read_as_far_as_flags_need(script: str, flags: dict[str, object]):
    assert max((command.flags for command in commands(script)), key=len) == flags


def test_micro_batches_that_follow_from_the_batch_are_not_said():
    assert "micro-batches a step" not in " ".join(read_config(given("gpt3.sh")).notes())
    assert "micro-batches a step" in " ".join(read_config(given("axo_qlora70.yml")).notes())
