"""People's own words for methods, formats, hardware and lengths: one name for each, in flags, files and Python."""

import pytest

import planner
from planner.catalog.hardware import Node
from planner.catalog.load import Catalog
from planner.errors import InputError, UnknownName
from planner.scenario.hardware_names import candidate_nodes, is_counted, node_named, owned_nodes
from planner.scenario.load import load_any
from planner.scenario.words import SYNONYMS, named

CATALOG = Catalog()
WORK = {"workload.model": "llama-3.1-8b", "workload.tokens": "1 G"}


@pytest.mark.parametrize(("path", "said", "meant"), [
    ("workload.method", "SFT", "full"), ("workload.method", "full fine-tuning", "full"),
    ("workload.method", "Pre-Training", "pretrain"), ("workload.method", "q-lora", "qlora"),
    ("workload.method", "finetune", "full"), ("workload.quantization", ["8-bit", "FP4"], ["int8", "nvfp4"]),
    ("workload.quantization", "awq", "int4"), ("workload.optimizer", "adamw_bnb_8bit", "adamw-8bit"),
    ("workload.precision", ["bfloat16"], ["bf16"]), ("objective", "cheapest", "cost"), ("objective", "Fastest", "time"),
    ("sourcing.rent.terms", ["On Demand", "preemptible"], ["on-demand", "spot"]),
    ("sourcing.rent.terms", ["rent"], ["on-demand"]),
    ("workload.disaggregated", "yes", "allowed"),
    ("workload.kv_cache", "fp8_e4m3", "fp8"), ("workload.method", "nonsense", "nonsense"),
    ("workload.model", "SFT", "SFT"),
])
def test_synonyms_have_one_name(path, said, meant):
    assert named(path, said) == meant


def test_no_synonym_means_two_things():
    for names, words in SYNONYMS.values():
        assert words.keys() <= set(names)
        every = [word for said in words.values() for word in said.split()]
        assert len(every) == len(set(every))


@pytest.mark.parametrize("scenario", [
    {"workload": {"model": "Llama3.1:8b", "tokens": "1 billion", "method": "sft", "stack": "trl"},
     "hardware": {"candidates": ["8 x H100"]}, "limits": {"budget": "$500", "deadline": "2 weeks"},
     "objective": "cheapest"}])
def test_a_file_and_flags_say_the_same(scenario):
    flags = {f"{block}.{key}": value for block, values in scenario.items() if isinstance(values, dict)
             for key, value in values.items()} | {"objective": "cheapest"}
    flat = flags | {"hardware.candidates": "8 x H100"}
    asked, _ = load_any(scenario, {}, CATALOG)
    assert load_any(None, flat, CATALOG)[0] == asked
    assert (asked.workload.method, asked.workload.stack, asked.objective) == ("full", ("trl",), "cost")
    assert (asked.limits.budget, asked.limits.deadline.seconds) == (500.0, 14 * 86400)


@pytest.mark.parametrize(("name", "nodes"), [
    ("8 x H100", ["dgx-h100"]), ("8xH100-80GB", ["dgx-h100"]), ("8 h100s", ["dgx-h100"]), ("8 H100 GPUs", ["dgx-h100"]),
    ("H100:8", ["dgx-h100"]), ("H100x8", ["dgx-h100"]), ("h100-8x", ["dgx-h100"]), ("mi300x-8x", ["mi300x-platform"]),
    ("2x4090", ["rtx-4090-2x"]), ("p5.48xlarge", ["dgx-h100"]),
    ("NVIDIA GeForce RTX 4090", [f"rtx-4090-{count}x" for count in (1, 2, 4, 8)]),
    ("NVIDIA H100 80GB HBM3", ["dgx-h100", "h100-sxm-1x", "h100-sxm-2x", "h100-sxm-4x"]),
    ("a100 80gb", ["a100-sxm-80gb-1x", "a100-sxm-80gb-4x", "dgx-a100"]), ("1x L4", ["l4-1x"]),
    ("a 3060 12gb", ["rtx-3060-1x"]), ("2x 4090 24gb", ["rtx-4090-2x"]),
    ("MI300X node", ["mi300x-platform"]), ("an H100 server", ["dgx-h100"]), ("V100 box", ["dgx-1-v100"]),
])
def test_hardware_is_found_as_people_write_it(name, nodes):
    assert sorted(candidate_nodes([name], CATALOG)) == nodes


@pytest.mark.parametrize(("name", "nodes", "gpus"), [
    ("1 h100", ("h100-sxm-1x",), None), ("a single h100", ("h100-sxm-1x",), None), ("an H100 box", ("dgx-h100",), None),
    ("16 H200", ("dgx-h200", "h200-sxm-2x", "h200-sxm-4x"), 16), ("3x4090", ("rtx-4090-3x",), None),
    ("2x8xH100", ("dgx-h100",), 16),
    ("4 x dgx-h100", ("dgx-h100",), 32), ("2 nodes of 8xH100", ("dgx-h100",), 16),
    ("2 nodes of h100", ("dgx-h100",), 16), ("8xh100", ("dgx-h100",), None),
    ("two H100 servers", ("dgx-h100",), 16),
])
def test_a_cluster_limits_the_gpus_and_says_so(name, nodes, gpus):
    asked, defaults = load_any(None, WORK | {"hardware.candidates": name}, CATALOG)
    assert (asked.hardware.candidates, asked.limits.max_gpus) == (nodes, gpus)
    assert ("max_gpus" in [one.name for one in defaults]) == (gpus is not None)
    given, _ = load_any(None, WORK | {"hardware.candidates": name, "limits.gpus": "8 GPUs"}, CATALOG)
    assert (given.limits.gpus, given.limits.max_gpus) == (8, None)


@pytest.mark.parametrize(("name", "counts"), [
    ("8xh100", True), ("8 h100", True), ("8 x H100", True), ("eight H100", True), ("H100:8", True), ("dgx-h100", False),
    ("24 GB", False), ("80 GB H100", False), ("3060 12gb", False), ("4090", False), ("16384 h100", False)])
def test_gpus_are_counted_however_they_are_written(name, counts):
    assert is_counted(name) == counts


def test_a_family_of_nodes_is_all_of_them_and_one_where_one_is_needed():
    nodes = candidate_nodes(["a DGX"], CATALOG)
    assert {"dgx-h100", "dgx-a100", "dgx-b200"} <= set(nodes)
    assert "h100-sxm-1x" not in nodes
    with pytest.raises(InputError, match=r"'a DGX' is .* node types: dgx-1-v100, .*; name one"):
        node_named("a DGX", CATALOG)


def test_the_name_of_an_instance_asks_for_its_providers_offers():
    def rented(**more):
        asked, defaults = load_any(None, WORK | {"hardware.candidates": "p5.48xlarge"} | more, CATALOG)
        return asked.sourcing.rent.providers, [one.why for one in defaults if one.name == "providers"]
    assert rented() == (("aws",), ["whose instances p5.48xlarge are"])
    assert rented(**{"hardware.candidates": "p5.48xlarge,a3-highgpu-8g"})[0] == ("aws", "gcp")
    # another size with the same GPU is taken, and Azure's names go without their first word
    asked, defaults = load_any(None, WORK | {"hardware.candidates": "g5.2xlarge"}, CATALOG)
    assert asked.sourcing.rent.instances == ("g5.xlarge",)
    assert [one.value for one in defaults if one.name == "instance"] == ["g5.xlarge for g5.2xlarge"]
    assert rented(**{"hardware.candidates": "ND96isr_H100_v5"})[0] == ("azure",)
    assert rented(**{"sourcing.rent.providers": "lambda"}) == (("lambda",), [])
    assert rented(**{"hardware.candidates": "p5.48xlarge,l4"}) == ((), [])


def test_owned_gpus_fill_the_box_that_holds_them_however_their_memory_is_written():
    assert owned_nodes("a100-40g", 8, CATALOG) == owned_nodes("a100-40gb", 8, CATALOG) == ("hgx-a100-40gb", 1)


def test_owned_gpus_without_bf16_train_in_fp16():
    asked, defaults = load_any(None, {"workload.model": "llama-2-7b", "workload.method": "qlora",
                                      "sourcing.own": "4xv100"}, CATALOG)
    assert asked.workload.precision == ("fp16",)
    assert next(one.value for one in defaults if one.name == "candidates").startswith("v100-")


def test_a_rate_of_tokens_is_told_what_to_divide_by():
    with pytest.raises(InputError, match="counts tokens, and a rate is of requests: divide by the tokens of a request"):
        load_any(None, {"workload.model": "qwen3-8b", "workload.rate": "5 million tokens/hour"}, CATALOG)


def test_what_no_hardware_is_stays_refused():
    for name in ("9x3070", "8xfoo", "h1000", "rtx", "a node"):
        with pytest.raises(UnknownName):
            candidate_nodes([name], CATALOG)
    with pytest.raises(InputError, match="clusters of different size"):
        load_any(None, WORK | {"hardware.candidates": "16 H200,32 H200"}, CATALOG)
    with pytest.raises(InputError, match="'mi300x-macbook' is Apple silicon, which is not modeled"):
        candidate_nodes(["mi300x-macbook"], CATALOG)


@pytest.mark.parametrize(("name", "gpus", "node"), [
    ("h100", None, ("h100-sxm-1x", None)), ("h100", 8, ("dgx-h100", None)), ("h100", 64, ("dgx-h100", None)),
    ("128xh100", None, ("dgx-h100", 128)), ("2 x dgx-h100", None, ("dgx-h100", 16)),
])
def test_an_estimate_takes_the_node_that_has_as_many(name, gpus, node):
    assert node_named(name, CATALOG, gpus) == node


@pytest.mark.parametrize(("name", "model"), [
    ("Llama3.1:8b", "llama-3.1-8b"), ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
    ("Qwen 2.5 7B", "qwen2.5-7b"),
    ("gpt-oss:20b", "gpt-oss-20b"), ("Qwen3-32B-AWQ", "qwen3-32b")])
def test_models_are_found_as_people_write_them(name, model):
    assert CATALOG.model(name).name == model


@pytest.mark.parametrize(("written", "noted"), [("8k", "write 8192"), ("32 K", "write 32768"), ("8192", None),
                                                ("8Ki", None), ("10k", None)])
def test_a_length_in_thousands_says_so_where_a_power_of_two_may_be_meant(written, noted):
    asked, defaults = load_any(None, WORK | {"workload.sequence_length": written}, CATALOG)
    why = [one.why for one in defaults if one.name == "sequence_length"]
    assert [noted in one for one in why] == ([True] if noted else [])
    assert asked.workload.sequence_length in (8000, 32000, 8192, 10000)


@pytest.mark.parametrize(("on", "precision"), [
    ("t4", ("fp16",)), ("l4", ("bf16",)), ("t4,l4", ("bf16", "fp16")), ("p40", ("fp32",)), ("any", ("bf16",))])
def test_precision_is_what_the_gpus_named_have(on, precision):
    asked, defaults = load_any(None, WORK | {"hardware.candidates": on}, CATALOG)
    assert asked.workload.precision == precision
    assert [one.value for one in defaults if one.name == "precision"] == [", ".join(precision)]
    stated, _ = load_any(None, WORK | {"hardware.candidates": on, "workload.precision": "bf16"}, CATALOG)
    assert stated.workload.precision == ("bf16",)


def test_one_value_is_a_list_of_one_in_a_file_too():
    blocks = {"workload": {"model": "llama-3.1-8b", "tokens": "1 G", "precision": "bfloat16"},
              "hardware": {"candidates": "h100, l4-1x"}, "sourcing": {"rent": {"terms": "preemptible"}}}
    asked, _ = load_any(blocks, {}, CATALOG)
    assert asked.workload.precision == ("bf16",)
    assert {"dgx-h100", "l4-1x"} <= set(asked.hardware.candidates)
    assert asked.sourcing.rent.terms == ("spot",)


def test_two_words_for_one_format_are_one_and_a_slip_is_refused():
    service = {"workload.model": "llama-3.1-8b", "workload.input": "9", "workload.output": "9",
               "hardware.candidates": "l4", "workload.kind": "serving"}
    asked, _ = load_any(None, service | {"workload.quantization": "awq,int4,fp8"}, CATALOG)
    assert asked.workload.quantization == ("int4", "fp8")
    with pytest.raises(InputError, match="int4 is given twice"):
        load_any(None, service | {"workload.quantization": "int4,int4"}, CATALOG)
    with pytest.raises(InputError, match="one engine"):
        load_any(None, service | {"workload.engine": "vllm,sglang"}, CATALOG)


@pytest.mark.parametrize(("name", "what"), [
    ("macbook pro m3 max", "Apple"), ("rx7900xtx", "Radeon"), ("tpu-v5e", "TPU"), ("trn1.32xlarge", "AWS"),
    ("gaudi3", "Gaudi"), ("vr200", "Rubin"), ("strix halo", "APU"), ("mi455x", "MI400")])
def test_hardware_that_is_not_modeled_is_refused_by_its_name(name, what):
    with pytest.raises(UnknownName, match=f"{what}.*not modeled; the nearest that is"):
        candidate_nodes([name], CATALOG)


@pytest.mark.parametrize(("name", "part"), [("3xmi300x", 3), ("6x3090", 6), ("7xh100", 7)])
def test_a_number_of_gpus_that_no_file_has_is_cut_from_a_larger_node(name, part):
    (node,) = candidate_nodes([name], CATALOG)
    mine = CATALOG.node(node)
    whole = max((one for one in CATALOG.all("nodes", Node) if one.gpu == mine.gpu), key=lambda one: one.gpus)
    assert (mine.gpus, mine.kind) == (part, "assumed")
    assert mine.cpu.memory == pytest.approx(whole.cpu.memory * part / whole.gpus)
    assert mine.power.load < whole.power.load


@pytest.mark.parametrize(("more", "kind"), [
    ({}, "generation"), ({"epochs": 2}, "diffusion"), ({"method": "lora"}, "diffusion"),
    ({"method": "inference"}, "generation")])
def test_images_without_a_word_of_training_are_made(more, kind):
    work = planner.plan(model="sdxl", images=200, on="rtx-4090-1x", **more).provenance.scenario["workload"]
    assert (work["kind"], work["samples"]) == (kind, 200)
