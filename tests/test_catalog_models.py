"""Every shipped model's blocks add up to its published parameter count, to the last parameter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from planner.catalog.architecture import Model, MoeMlp
from planner.catalog.hardware import Node
from planner.catalog.load import KINDS, Catalog, data_root
from planner.catalog.spelling import canonical
from planner.physics.shapes import active_parameters, parameters

CATALOG = Catalog()
PUBLISHED = [  # Hugging Face id, parameters of the published checkpoint, parameters one token uses where experts choose
    ("openai-community/gpt2", 124_439_808, None),
    ("openai-community/gpt2-medium", 354_823_168, None),
    ("openai-community/gpt2-large", 774_030_080, None),
    ("openai-community/gpt2-xl", 1_557_611_200, None),
    ("facebook/opt-125m", 125_239_296, None),
    ("facebook/opt-1.3b", 1_315_758_080, None),
    ("facebook/opt-6.7b", 6_658_473_984, None),
    ("facebook/opt-13b", 12_853_473_280, None),
    ("facebook/opt-30b", 29_974_540_288, None),
    ("bigscience/bloom", 176_247_271_424, None),
    ("bigscience/bloom-7b1", 7_069_016_064, None),
    ("huggyllama/llama-7b", 6_738_415_616, None),
    ("huggyllama/llama-13b", 13_015_864_320, None),
    ("huggyllama/llama-30b", 32_528_943_616, None),
    ("huggyllama/llama-65b", 65_285_660_672, None),
    ("meta-llama/Llama-2-7b-hf", 6_738_415_616, None),
    ("meta-llama/Llama-2-13b-hf", 13_015_864_320, None),
    ("meta-llama/Llama-2-70b-hf", 68_976_648_192, None),
    ("meta-llama/Meta-Llama-3-8B", 8_030_261_248, None),
    ("meta-llama/Meta-Llama-3-70B", 70_553_706_496, None),
    ("meta-llama/Llama-3.1-8B", 8_030_261_248, None),
    ("meta-llama/Llama-3.1-70B", 70_553_706_496, None),
    ("meta-llama/Llama-3.1-405B", 405_853_388_800, None),
    ("meta-llama/Llama-3.2-1B", 1_235_814_400, None),
    ("meta-llama/Llama-3.2-3B", 3_212_749_824, None),
    ("meta-llama/Llama-3.3-70B-Instruct", 70_553_706_496, None),
    ("mistralai/Mistral-7B-v0.1", 7_241_732_096, None),
    ("mistralai/Mistral-7B-v0.3", 7_248_023_552, None),
    ("mistralai/Mistral-Large-Instruct-2407", 122_610_069_504, None),
    ("01-ai/Yi-6B", 6_061_035_520, None),
    ("01-ai/Yi-34B", 34_388_917_248, None),
    ("microsoft/phi-4", 14_659_507_200, None),
    ("microsoft/Phi-3-mini-4k-instruct", 3_821_079_552, None),
    ("microsoft/Phi-3-medium-4k-instruct", 13_960_238_080, None),
    ("microsoft/Phi-4-mini-instruct", 3_836_021_760, None),
    ("codellama/CodeLlama-34b-hf", 33_743_970_304, None),
    ("mistralai/Mixtral-8x7B-v0.1", 46_702_792_704, 12_879_925_248),
    ("mistralai/Mixtral-8x22B-v0.1", 140_620_634_112, 39_152_031_744),
    ("Qwen/Qwen2.5-0.5B", 494_032_768, None),
    ("Qwen/Qwen2.5-1.5B", 1_543_714_304, None),
    ("Qwen/Qwen2.5-3B", 3_085_938_688, None),
    ("Qwen/Qwen2.5-7B", 7_615_616_512, None),
    ("Qwen/Qwen2.5-14B", 14_770_033_664, None),
    ("Qwen/Qwen2.5-32B", 32_763_876_352, None),
    ("Qwen/Qwen2.5-72B", 72_706_203_648, None),
    ("Qwen/Qwen3-0.6B", 596_049_920, None),
    ("Qwen/Qwen3-1.7B", 1_720_574_976, None),
    ("Qwen/Qwen3-4B", 4_022_468_096, None),
    ("Qwen/Qwen3-8B", 8_190_735_360, None),
    ("Qwen/Qwen3-14B", 14_768_307_200, None),
    ("Qwen/Qwen3-32B", 32_762_123_264, None),
    ("Qwen/Qwen3-30B-A3B", 30_532_122_624, 3_353_032_704),
    ("Qwen/Qwen3-235B-A22B", 235_093_634_560, 22_190_763_520),
    ("google/gemma-2b", 2_506_172_416, None),
    ("google/gemma-7b", 8_537_680_896, None),
    ("google/gemma-2-2b", 2_614_341_888, None),
    ("google/gemma-2-9b", 9_241_705_984, None),
    ("google/gemma-2-27b", 27_227_128_320, None),
    ("google/gemma-3-1b-pt", 999_885_952, None),
    ("deepseek-ai/DeepSeek-V3", 671_026_419_200, 37_552_282_624),
    ("deepseek-ai/DeepSeek-V2", 235_741_434_880, 21_375_800_320),
    ("deepseek-ai/DeepSeek-V2-Lite", 15_706_484_224, 2_661_150_208),
    ("moonshotai/Kimi-K2-Instruct", 1_026_408_232_448, 32_861_477_888),
    ("openai/gpt-oss-20b", 20_914_757_184, 4_187_440_704),
    ("openai/gpt-oss-120b", 116_829_156_672, 5_711_982_912),
    ("tiiuae/falcon-7b", 6_921_720_704, None),
    ("tiiuae/falcon-40b", 41_303_293_952, None),
    ("mosaicml/mpt-7b", 6_649_286_656, None),
    ("allenai/OLMo-2-1124-7B", 7_298_617_344, None),
    ("allenai/OLMo-2-1124-13B", 13_716_198_400, None),
    ("allenai/OLMo-2-0325-32B", 32_234_279_936, None),
    ("state-spaces/mamba2-2.7b", 2_702_599_680, None),
    ("ai21labs/Jamba-v0.1", 51_570_323_328, None),
]
DERIVED = [  # the same, from the shape alone: no exact total was published, or the recalled one disagrees
    ("facebook/opt-66b", 65_719_701_504, None),
    ("deepseek-ai/deepseek-llm-67b-base", 67_425_001_472, None),
    ("Qwen/Qwen3-Coder-480B-A35B", 480_154_875_392, 35_474_765_312),
    ("google/gemma-3-4b-pt", 3_880_263_168, None),
    ("google/gemma-3-12b-pt", 11_766_034_176, None),
    ("google/gemma-3-27b-pt", 27_009_346_304, None),
    ("zai-org/GLM-4.5", 352_797_829_024, 33_632_251_904),
    ("zai-org/GLM-4.5-Air", 106_852_251_264, 13_424_123_904),
    ("meta-llama/Llama-4-Scout-17B-16E", 107_769_861_120, 17_172_894_720),
    ("meta-llama/Llama-4-Maverick-17B-128E", 400_711_848_960, 17_184_691_200),
    ("tiiuae/falcon-180B", 178_557_088_768, None),
    ("mosaicml/mpt-30b", 29_957_200_896, None),
    ("nvidia/Nemotron-4-340B-Base", 341_029_195_776, None),
    ("state-spaces/mamba2-370m", 368_346_624, None),
    ("state-spaces/mamba2-1.3b", 1_343_757_312, None),
    ("nvidia/Nemotron-H-56B-Base-8K", 56_324_350_464, None),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31_577_940_288, None),
]


@pytest.mark.parametrize("name", CATALOG.names("models"))
def test_blocks_add_up_to_the_published_count(name: str) -> None:
    model = CATALOG.model(name)
    assert model.parameters is not None
    assert parameters(model) == model.parameters


@pytest.mark.parametrize(("hf_id", "count", "active"), PUBLISHED + DERIVED, ids=str)
def test_counts_equal_the_published_ones_to_the_last_parameter(hf_id: str, count: int, active: int | None) -> None:
    model = CATALOG.model(hf_id)
    assert parameters(model) == count
    assert active is None or active_parameters(model) == active
    assert CATALOG.model(hf_id.split("/")[1].upper()) is model


def test_counts_of_both_lists() -> None:
    assert len(PUBLISHED) == 73
    assert len({hf_id for hf_id, _, _ in PUBLISHED + DERIVED}) == len(PUBLISHED + DERIVED)


@pytest.mark.parametrize("name", CATALOG.names("models"))
def test_a_token_uses_every_parameter_unless_experts_choose(name: str) -> None:
    model = CATALOG.model(name)
    experts = any(isinstance(block.mlp, MoeMlp) for block in model.blocks)
    assert (active_parameters(model) < parameters(model)) is experts
    assert len(model.layer_kinds()) == model.layers


@pytest.mark.parametrize(("spelling", "name"), [
    ("meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b"),
    ("Llama2-70B", "llama-2-70b"),
    ("GPT3-175B", "gpt-3-175b"),
    ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
    ("openai-community/gpt2-xl", "gpt2-xl"),
    ("Meta-Llama-3-8B", "llama-3-8b"),
    ("deepseek-ai/DeepSeek-R1", "deepseek-v3"),
    ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
    ("google/gemma-3-27b-it", "gemma-3-27b"),
    ("moonshotai/kimi-k2-instruct-0905", "kimi-k2"),
    ("qwen3-235b", "qwen3-235b-a22b"),
])
def test_models_are_found_by_the_names_people_use(spelling: str, name: str) -> None:
    assert CATALOG.model(spelling).name == name


def test_a_sequence_fits_its_position_table() -> None:
    for model in CATALOG.all("models", Model):
        assert model.position_rows == 0 or model.sequence_length <= model.position_rows, model.name


@pytest.mark.parametrize("kind", ["gpus", "nodes", "fabrics", "models", "prices"])
def test_files_of_a_kind_share_no_spelling(kind: str) -> None:
    owner: dict[str, str] = {}
    for entry in CATALOG.all(kind, KINDS[kind]):
        for spelling in (entry.name, *entry.aliases, getattr(entry, "hf_id", None) or entry.name):
            assert owner.setdefault(canonical(spelling), entry.name) == entry.name, spelling


def test_nodes_and_offers_name_entries_that_exist() -> None:
    for node in CATALOG.all("nodes", Node):
        assert CATALOG.gpu(node.gpu)
        assert CATALOG.fabric(node.fabric).level == "scale-out"
        assert node.scaleup is None or CATALOG.fabric(node.scaleup).level == "scale-up"
    for prices in CATALOG.price_lists:
        for offer in prices.offers:
            assert CATALOG.node(offer.node)
            assert offer.fabric is None or CATALOG.fabric(offer.fabric).level == "scale-out"


def test_a_file_that_changes_is_read_anew(tmp_path: Path) -> None:
    """What was read of the same text is kept; another text of the same file is another entry."""
    (tmp_path / "gpus").mkdir()
    file, shipped = tmp_path / "gpus" / "h100-sxm.yaml", data_root("catalogs") / "gpus" / "h100-sxm.yaml"
    text = shipped.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    first = Catalog([tmp_path]).gpu("h100-sxm")
    assert Catalog([tmp_path]).gpu("h100-sxm") is first
    file.write_text(re.sub(r"(?m)^memory_bandwidth: .*", "memory_bandwidth: 1 TB/s", text), encoding="utf-8")
    assert Catalog([tmp_path]).gpu("h100-sxm").memory_bandwidth == 1e12
    assert Catalog().gpu("h100-sxm") == first
