"""What lives at the peak of published runs, tensor by tensor, by hand."""

import pytest

from planner.evidence.compare import compare
from planner.evidence.reading import read_evidence
from planner.physics.training.schedule import usual_layers
from tests.evidence_tests.csv_file import MEMORY, catalog, rows_of, write

ARCTIC = {
    "id": "a-1", "source": "snowflakedb/ArcticTraining projects/sequence-parallelism", "source_detail": "",
    "optimizer": "cpu_adam", "sharding": "zero3", "method": "full", "recompute": "full", "seq_parallel": "",
    "offload_optimizer": "1", "offload_parameters": "", "offload_activations": "", "loss_kernel": "",
    "weights_dtype": "bf16", "gradients_dtype": "bf16", "master_dtype": "fp32", "mem_kind": "nvidia-smi"}


def memory_of(tmp_path, row):
    (outcome,) = compare(read_evidence(write(tmp_path / "rows.csv", row)), catalog()).outcomes
    return outcome.prediction.evaluation.memory


def test_a_truncated_mixture_has_the_dense_layers_of_its_row(tmp_path):
    """DeepSeek-V3 (arXiv 2412.19437): 256 experts of 3 x 7168 x 2048, three dense layers of 18432 before them."""
    row = next(r for r in rows_of("train_memory") if "deepseekv2_tp1_ep8_pp1" in r["id"])
    row |= {"model": "DeepSeek-V3 (4 layers)", "layers": "4", "hidden": "7168", "ffn": "18432", "vocab": "129280",
            "experts": "256", "experts_per_token": "8", "shared_experts": "1"}
    parts = [memory_of(tmp_path, row | {"dense_layers": dense}).components for dense in ("1", "3")]
    states = [sum(p[k] for k in ("weights", "gradients", "master_weights", "optimizer")) for p in parts]
    routed, dense, shared, router = 256 * 3 * 7168 * 2048, 3 * 7168 * 18432, 3 * 7168 * 2048, 7168 * 256
    # 32 experts a GPU, all states with it; the rest 16-bit weights, 32-bit gradients and an eighth of 12 bytes
    by_hand = 2 * (18 * routed / 8 + (6 + 12 / 8) * (shared + router - dense))
    assert states[0] - states[1] == pytest.approx(by_hand, rel=1e-3)


@pytest.mark.parametrize(("loss", "expected"), [("", 15 * 32000 * 128256), ("fused", 0)])
def test_a_plain_loss_holds_whole_logits(tmp_path, loss, expected):
    """15 bytes a logit: ArcticTraining USAGE.md counts 4 of each copy in 32 bits; fused with its projection, none."""
    row = MEMORY | ARCTIC | {"gpus": "1", "dp": "1", "seq_len": "32000", "offload_parameters": "1", "loss_kernel": loss}
    parts = memory_of(tmp_path, row).components
    assert parts["logits"] == pytest.approx(expected)
    assert parts["activations"] < 0.2 * 15 * 32000 * 128256


def test_ulysses_repeats_keys_and_values_over_ranks_that_outnumber_them(tmp_path):
    """DeepSpeed runtime/sequence_parallel/ulysses_sp.py: 64 ranks of 8 key-value heads hold one head each, whole."""
    row = MEMORY | ARCTIC | {
        "gpus": "64", "dp": "1", "cp": "64", "seq_len": "10000000", "model": "Llama 3.1 70B", "params_b": "70.6",
        "layers": "80", "hidden": "8192", "ffn": "28672", "heads": "64", "offload_activations": "1",
        "loss_kernel": "fused", "notes": "tiled MLP"}
    ring, heads = (memory_of(tmp_path, row | {"seq_parallel": word}) for word in ("", "ulysses"))
    live = catalog().stack("megatron-core").live_layers
    whole, share = 2 * 2 * 128 * 10_000_000, 2 * 2 * 8 * 128 * 10_000_000 / 64
    assert heads.allocated - ring.allocated == pytest.approx(live * (whole - share), rel=1e-3)
    # checkpoints of 80 layers in pageable memory of 8 nodes, and half more than 16 bytes a parameter pinned
    by_hand = (80 * 2 * 8192 * 10_000_000 + 1.5 * 16 * 70.55e9) / 8
    assert heads.host_per_node == pytest.approx(by_hand, rel=0.05)
    assert heads.fits != "does not fit"


def test_norms_of_queries_and_keys_keep_their_inputs(tmp_path):
    """Qwen3 32B: 64 query and 8 key heads of 128, each with a norm (transformers models/qwen3/modeling_qwen3.py)."""
    row = MEMORY | {"model": "Qwen3-32B", "params_b": "", "layers": "64", "hidden": "5120", "ffn": "25600",
                    "heads": "64", "vocab": "151936", "recompute": "none", "seq_len": "4096", "gpus": "8"}
    held = memory_of(tmp_path, row).components["activations"] / (64 * 4096)
    # bf16: norms in and out, queries, keys, values, context, three of the feed-forward, and the inputs of head norms
    by_hand = 2 * (4 * 5120 + 2 * 8192 + 2 * 1024 + 3 * 25600 + 8192 + 1024) + 4 * 64
    assert held == pytest.approx(by_hand, rel=0.001)


def test_products_in_nvfp4_are_no_operators_that_selective_recompute_saves(tmp_path):
    """torchtitan nvfp4.md: 27 of 32 layers keep their input and the output of attention, 32 x 2048 tokens a GPU."""
    row = next(r for r in rows_of("train_memory") if r["id"] == "titan-080")
    saved = memory_of(tmp_path, row).components["activations"] / (32 * 32 * 2048)
    every_second = 2 * (2 * 4096 + 2 * 4096 + 1024 + 14336)
    assert saved == pytest.approx(0.85 * 2 * (4096 + 4096) + 0.15 * every_second)


def test_recompute_of_norms_leaves_those_inside_of_products(tmp_path):
    """Megatron-Bridge on Nemotron 3 Nano: 64.653 GB become 63.639; attention and Mamba hold their norms."""
    rows = {r["id"]: r for r in rows_of("train_memory")}
    moe, both = (memory_of(tmp_path, rows[name]).allocated for name in ("mbridge-011", "mbridge-012"))
    assert moe - both == pytest.approx(1.014e9, rel=0.02)


@pytest.mark.parametrize(("layers", "lead", "stages", "expected"), [
    (58, 3, 8, [3, 8, 8, 8, 8, 8, 8, 7]), (60, 0, 4, [15] * 4), (13, 3, 4, [1, 4, 4, 4]), (9, 5, 4, [0, 3, 3, 3])])
def test_a_pipeline_splits_leading_layers_with_the_others(layers, lead, stages, expected):
    """DeepSeek-V3 on eight stages: three dense layers take the place of as many mixtures on the first."""
    found = usual_layers(layers, lead, stages).tolist()
    assert sum(found) == layers
    assert found == expected


def test_a_pipeline_under_fsdp_holds_each_gradient_once(tmp_path):
    """torchtitan, DeepSeek-V3 on PP 8 x EP 32: 16-bit weights and 32-bit gradients whole, of one table at most."""
    row = next(r for r in rows_of("train_memory") if r["id"] == "titan-077")
    row |= {"gpu": "b200", "pp": "8", "ep": "32", "dp": "32", "micro_batch": "16", "recompute_modules": "", "notes": ""}
    parts = memory_of(tmp_path, row).components
    mla = 7168 * (1536 + 576) + 1536 * 128 * 192 + 512 * 128 * 256 + 128 * 128 * 7168
    layer = mla + 8 * 3 * 7168 * 2048 + 3 * 7168 * 2048 + 256 * 7168
    by_hand = (2 + 4) * (8 * layer + 129280 * 7168)
    assert parts["communication_buffers"] == pytest.approx(by_hand, rel=0.08)
    assert parts["gradients"] == 0



def test_adapters_under_fsdp_are_stored_as_the_base_is(tmp_path):
    """Answer.AI's fsdp_qlora: one 16-bit type for all that FSDP flattens, 2 + 2 + 4 bytes of an adapter, not 16."""
    row = MEMORY | {"source": "AnswerDotAI/fsdp_qlora", "model": "Llama-2-70B", "params_b": "69", "layers": "80",
                    "hidden": "8192", "ffn": "28672", "heads": "64", "vocab": "32000", "gpus": "4", "dp": "4",
                    "gpu": "rtx-a5000", "seq_len": "2048", "method": "qlora", "lora_rank": "64", "weights_dtype": "",
                    "gradients_dtype": "", "master_dtype": "", "moments_dtype": "", "base_quantization": "nf4",
                    "lora_targets": "q,k,v,o,mlp"}
    # rank 64 on queries, keys and values, output, gate, up and down
    rank = 64 * ((3 * 8192 + 10240) + 2 * 8192 + 3 * (8192 + 28672))
    parts = memory_of(tmp_path, row).components
    assert parts["gradients"] == 0  # freed with the step, before activations are kept again
    assert parts["optimizer"] == pytest.approx(4 * 80 * rank / 4)
    # which ran: the weights in nf4, half a byte and 4 bytes for each 64, tables in 16 bits
    linears = 80 * (8192 * 10240 + 8192**2 + 3 * 8192 * 28672)
    assert parts["weights"] == pytest.approx((0.5625 * linears + 2 * 2 * 32000 * 8192 + 2 * 80 * rank) / 4, rel=0.01)
    assert memory_of(tmp_path, row).fits == "tight"


def test_a_loss_of_16_bit_logits_holds_three_copies_of_them(tmp_path):
    """universal-llm-trainer: slice and log-softmax, two gradients in their place."""
    row = next(r for r in rows_of("train_memory") if r["id"] == "ullm-002")
    parts = memory_of(tmp_path, row).components
    assert parts["logits"] == 3 * 2 * 2 * 8192 * 128256


def test_gptq_leaves_tables_in_16_bits_and_deepspeed_its_buffers(tmp_path):
    """Qwen-1.8B, Q-LoRA of the README's profile: PEFT casts nothing that GPTQ left out; ds_config_zero2.json."""
    row = next(r for r in rows_of("train_memory") if r["id"] == "qwen-037")
    row |= {"model": "Qwen-1.8B", "params_b": "1.84", "layers": "24", "hidden": "2048", "heads": "16"}
    (outcome,) = compare(read_evidence(write(tmp_path / "rows.csv", row)), catalog()).outcomes
    assert outcome.prediction.usual_kind == "nvidia-smi"
    memory = outcome.prediction.evaluation.memory
    linears, tables = 24 * (4 * 2048**2 + 3 * 2048 * 5504), 2 * 151936 * 2048
    adapters = 24 * 64 * (2048 + 3 * 2048 + 2 * 2048 + 2048 + 2 * 5504 + 5504 + 2048)
    assert memory.components["weights"] == pytest.approx(0.55 * linears + 2 * tables + 2 * adapters, rel=0.02)
    # 1.3 GB of context, and twice 2e8 elements of 16 bits
    assert memory.device - memory.reserved == pytest.approx(1.3e9 + 0.8e9)


def shipped(name, **changes):
    return next(r for r in rows_of("train_memory") if r["id"] == name) | changes


@pytest.mark.parametrize(("name", "share"), [("axolotl-009", 0.5159), ("axolotl-012", 1)])
def test_experts_of_a_quantized_base_are_whole_on_every_rank_of_axolotl(tmp_path, name, share):
    """GLM-4.7-Flash: 46 layers of 64 experts of 3 x 2048 x 1536, quantized; a layer of them expanded (axolotl docs)."""
    row = shipped(name)
    parts = memory_of(tmp_path, row).components
    experts, whole = 64 * 3 * 2048 * 1536, catalog().model("glm-4.7-flash").parameters
    rest = whole - 46 * experts
    assert parts["weights"] > share * 46 * experts + share * rest / 2
    assert parts["weights"] < share * 46 * experts + 2 * rest / 2 + 0.5e9
    assert parts["communication_buffers"] > 2 * experts
    alone = memory_of(tmp_path, row | {"gpus": "1", "dp": "1", "sharding": "none"}).components
    assert 0 < alone["weights"] - parts["weights"] < 2 * rest / 2 + 0.5e9


def test_an_optimizer_over_many_tensors_has_the_root_of_a_moment_while_it_steps(tmp_path):
    """ms-swift's examples/train/full/train.sh, Qwen2.5-7B in 16 bits on one GPU: 2 + 2 + 4 bytes, and 2 of the root."""
    memory = memory_of(tmp_path, shipped("swift-037"))
    assert memory.allocated == pytest.approx(10 * 7.616e9, rel=0.01)


def test_only_fsdp_holds_the_gradients_of_checkpoints(tmp_path):
    """Llama-2-70B, LoRA, 8 x 2,048 tokens a GPU: 80 checkpoints of 8,192 once more."""
    fsdp, deepspeed = (memory_of(tmp_path, shipped("peft-010", sharding=word)).components["activations"]
                       for word in ("fsdp", "zero3"))
    assert fsdp - deepspeed == pytest.approx(2 * 80 * 8 * 2048 * 8192)
