"""A question from a file, from flags, from both; its open ends; and writing it back."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from planner.catalog.hardware import Node
from planner.catalog.load import Catalog
from planner.errors import InputError, UnknownName
from planner.scenario.accumulated import EACH, TIMES
from planner.scenario.batch import Batch
from planner.scenario.flags import FLAGS
from planner.scenario.hardware_names import candidate_nodes
from planner.scenario.limits import Deadline, Limits
from planner.scenario.load import (
    find,
    load_question,
    paths,
    shipped,
)
from planner.scenario.resolve import resolve
from planner.scenario.workload import Training
from planner.scenario.writing import to_yaml
from planner.yaml_io import parse, validate
from tests.asked import load_scenario
from tests.scenario.said import said

MAIN = "llama-3.1-70b-pretrain"
CATALOG = Catalog()
BARE = {"workload.model": "llama-3.1-70b", "workload.tokens": "1T"}


@pytest.fixture(scope="module")
def main_scenario():
    return load_scenario(MAIN, {}, CATALOG)[0]


def test_the_main_scenario_is_the_one_of_the_contract(main_scenario):
    assert main_scenario.workload.tokens == 15 * 10**12
    assert main_scenario.workload.global_batch == Batch(2048)
    assert main_scenario.hardware.candidates == ("dgx-h100", "dgx-h200", "dgx-b200")
    assert main_scenario.limits.deadline == Deadline(60 * 86400.0)
    assert said(load_scenario(MAIN, {}, CATALOG)[1]) == ["stack=megatron-core"]


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_scenario_is_found_and_written_back(name):
    assert find(name) == find(name + ".yaml") == find(name.upper())
    scenario, _ = load_question(str(find(name)), {}, CATALOG)
    assert validate(parse(to_yaml(scenario), "again"), type(scenario)) == scenario


def test_a_flag_overrides_the_file_and_the_rest_stays(main_scenario):
    flags = {"limits.deadline": "30d", "hardware.candidates": "8xB200, dgx-a100"}
    scenario, _ = load_scenario(MAIN, flags, CATALOG)
    assert scenario.limits.deadline == Deadline(30 * 86400.0)
    assert scenario.hardware.candidates == ("dgx-b200", "dgx-a100")
    assert scenario.workload == main_scenario.workload


def test_flags_alone_state_the_question_and_every_default_is_said():
    scenario, defaults = load_scenario(None, BARE | {"hardware.candidates": "dgx-h100"}, CATALOG)
    assert said(defaults) == ["method=pretrain", "stack=megatron-core", "precision=bf16", "sequence_length=8192",
                              "global_batch=2048 sequences", "terms=on-demand"]
    assert (scenario.workload.sequence_length, scenario.workload.global_batch) == (8192, Batch(2048))
    _, fewer = load_scenario(None, BARE | {"hardware.candidates": "dgx-h100", "workload.precision": "bf16",
                                           "workload.sequence_length": "4k", "sourcing.rent.terms": "on-demand"},
                             CATALOG)
    assert said(fewer) == ["method=pretrain", "stack=megatron-core", "global_batch=2048 sequences",
                           "sequence_length=4000 tokens"]


def test_without_hardware_every_node_type_with_an_admitted_offer_is_a_candidate():
    scenario, defaults = load_scenario(None, BARE, CATALOG)
    offered = {CATALOG.node(offer.node).name for prices in CATALOG.price_lists for offer in prices.offers
               if offer.term == "on-demand"}
    assert set(scenario.hardware.candidates) == offered
    assert f"candidates={','.join(sorted(offered))}" in said(defaults)
    provider = CATALOG.names("prices")[0]
    fewer, _ = load_scenario(None, BARE | {"sourcing.rent.providers": provider.upper()}, CATALOG)
    assert set(fewer.hardware.candidates) < offered
    assert fewer.sourcing.rent.providers == (provider,)


def test_resolving_again_changes_nothing(main_scenario):
    assert resolve(main_scenario, CATALOG) == (main_scenario, [])


@pytest.mark.parametrize("spelling", ["llama-3.1-70b", "Llama-3.1-70B", "meta-llama/Llama-3.1-70B",
                                      "meta-llama/Llama-3.1-70B-Instruct", "meta-llama/llama-3.1-70b"])
def test_models_are_found_in_every_spelling(spelling):
    scenario, _ = load_scenario(MAIN, {"workload.model": spelling}, CATALOG)
    assert scenario.workload.model == "llama-3.1-70b"


def test_candidates_are_nodes_gpus_or_counted_gpus_in_any_case():
    nodes = CATALOG.all("nodes", Node)
    ada = [node for node in nodes if node.gpu == "l40s"]
    assert candidate_nodes(["DGX-H100"], CATALOG) == ["dgx-h100"]
    assert candidate_nodes(["L40S"], CATALOG) == [node.name for node in ada]
    assert candidate_nodes(["4xL40S"], CATALOG) == [node.name for node in ada if node.gpus == 4]
    assert candidate_nodes(["8 x h100", "h100", "dgx-h100"], CATALOG)[0] == "dgx-h100"
    assert "dgx-h100" in candidate_nodes(["h100"], CATALOG)
    for node in nodes:
        assert node.name in candidate_nodes([node.gpu], CATALOG)
        assert node.name in candidate_nodes([f"{node.gpus}x{node.gpu}"], CATALOG)


@pytest.mark.parametrize(("name", "message"), [("h10O", "unknown node or GPU"), ("9xrtx-3070", "4xrtx-3070"),
("", "unknown"),
                                               ("8x", "unknown node or GPU"),
                                               ("8xfoo", "unknown node or GPU")])
def test_unknown_hardware_is_refused_with_what_there_is(name, message):
    with pytest.raises(UnknownName, match=message):
        candidate_nodes([name], CATALOG)


def test_errors_name_the_flag_the_path_or_the_file(tmp_path):
    with pytest.raises(InputError, match=r"^--deadline: '3' has no unit"):
        load_scenario(MAIN, {"limits.deadline": "3"}, CATALOG, labels={"limits.deadline": "--deadline"})
    with pytest.raises(InputError, match=r"^limits.deadline: '3' has no unit"):
        load_scenario(MAIN, {"limits.deadline": "3"}, CATALOG)
    with pytest.raises(InputError, match=r"^--model: required, but missing"):
        load_scenario(None, {"workload.tokens": "1T"}, CATALOG, labels={"workload.model": "--model"})
    with pytest.raises(UnknownName, match=r"'limits.deadlin'; did you mean limits.deadline"):
        load_scenario(MAIN, {"limits.deadlin": "3 d"}, CATALOG)
    with pytest.raises(InputError, match="nothing is asked: say which model"):
        load_scenario(None, {}, CATALOG)
    path = tmp_path / "s.yaml"
    path.write_text("workload: 3\n")
    with pytest.raises(InputError, match=r"s.yaml:1: workload: expected keys and values below it, got 3"):
        load_scenario(str(path), {"workload.tokens": "1T"}, CATALOG)


def test_every_flag_sets_a_value_that_exists_and_every_list_is_known_as_one():
    known = dict(paths())
    # what is drafted is a block in a file, and 3:0.7 in one word; what a GPU takes at once makes the batch
    others = {"workload.speculative", f"workload.{EACH}", f"workload.{TIMES}"}
    assert set(FLAGS.values()) - others <= set(known)
    assert {path for path, is_list in known.items() if is_list} == {
        "workload.precision", "hardware.candidates", "sourcing.rent.terms", "sourcing.rent.providers",
        "sourcing.rent.regions", "sourcing.rent.instances", "workload.quantization", "workload.day",
        "workload.stack", "workload.lora_targets", "workload.trained_parts", "workload.rollouts_on"}


def test_a_path_wins_over_a_shipped_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(MAIN).write_text(re.sub(r"\A.*", "name: mine", find(MAIN).read_text().replace("# ", "#")))
    assert find(MAIN) == Path(MAIN)


@pytest.mark.parametrize(("text", "expected"), [
    ("60 d", Deadline(60 * 86400.0)), ("60 d at 90%", Deadline(60 * 86400.0, 0.9)),
    ("36h at 99.5 %", Deadline(36 * 3600.0, 0.995))])
def test_a_deadline_may_ask_for_a_confidence(text: str, expected: Deadline) -> None:
    limits = Limits.model_validate({"deadline": text})
    assert limits.deadline == expected
    assert Limits.model_validate(limits.model_dump(mode="json", exclude_none=True)) == limits


@pytest.mark.parametrize(("text", "expected"), [
    ("2048", Batch(2048)), (512, Batch(512)), ("2048 sequences +- 2%", Batch(2048, 0.02)),
    ("96 seqs +/- 12.5 %", Batch(96, 0.125))])
def test_a_global_batch_may_have_a_tolerance(text: object, expected: Batch) -> None:
    work = Training.model_validate({"model": "m", "tokens": "1 T", "global_batch": text})
    assert work.global_batch == expected
    assert Training.model_validate(work.model_dump(mode="json", exclude_none=True)) == work


@pytest.mark.parametrize("text", ["60 d at 40%", "60 d at 100%", "60 d at", "at 90%", "60 at 90%"])
def test_a_wrong_confidence_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        Limits.model_validate({"deadline": text})
