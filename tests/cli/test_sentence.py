"""A question in a sentence is read as a command, or refused with the words that are not understood."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.catalog.load import Catalog
from planner.cli.accounted import unheard
from planner.cli.completed import shown
from planner.cli.main import main
from planner.cli.read_from import ReadFrom
from planner.cli.read_words import Sentence
from planner.cli.sentence import spoken
from planner.cli.several import portfolio_of
from planner.cli.told import Told
from planner.cli.written import words_of
from planner.errors import InputError
from tests.cli.sentences import SAID

CATALOG = Catalog()


@pytest.mark.parametrize(("line", "meant"), SAID)
def test_a_sentence_is_a_command(line: str, meant: str) -> None:
    read = spoken(line.split(), CATALOG)
    assert read is not None
    assert sorted(shown(read).split(" --")) == sorted(meant.split(" --"))


@pytest.mark.parametrize(("line", "whole", "jobs"), [
    ("pretrain a 3B on 300B tokens and then serve it to 200 users on our 4 DGX H100", {"own": "4 dgx h100"}, [
        {"name": "pretrain 3b", "model": "3b", "method": "pretrain", "tokens": "300B"},
        {"name": "serve 3b", "model": "3b", "users": "200"}]),
    ("with h100s: finetune llama-3.1-8b on 50k samples of 800 tokens; serve llama-3.1-8b at 3 rps, in two weeks",
     {"on": "h100s"}, [
         {"name": "finetune llama-3.1-8b", "model": "llama-3.1-8b", "samples": "50k", "mean_length": "800"},
         {"name": "serve llama-3.1-8b", "model": "llama-3.1-8b", "rate": "3 rps", "deadline": "2 weeks"}]),
    ("serve two models: llama 3.3 70b at 4 requests a second, and whisper large for 60 streams, under 15k usd a month",
     {"budget": "182k USD"}, [
         {"name": "serve llama-3.3-70b", "model": "llama-3.3-70b", "rate": "4 requests/second"},
         {"name": "serve whisper-large", "model": "whisper-large", "rate": "2 requests/s"}]),
    ("distill llama 3.1 70b into an 8b student over 10 billion tokens", {}, [
        {"name": "teacher llama-3.1-70b", "model": "llama-3.1-70b", "documents": 2441406, "input": 4096, "output": 1},
        {"name": "student llama-3.1-8b", "model": "llama-3.1-8b", "method": "full", "tokens": "10B"}]),
    ("Our team runs three jobs: a 7B pretrain on 200B tokens, a 13B full finetune on 1B tokens, and a 70B LoRA on 100M "
     "tokens, we own 128 H100", {"own": "128 h100"}, [
         {"name": "pretrain 7b", "method": "pretrain", "model": "7b", "tokens": "200B"},
         {"name": "finetune 13b", "method": "full-finetune", "model": "13b", "tokens": "1B"},
         {"name": "lora 70b", "method": "lora", "model": "70b", "tokens": "100M"}]),
    ("three trainings this year: 7B with 500B tokens, 13B with 300B tokens on our 256 H100", {"own": "256 h100"}, [
        {"name": "job 7b", "deadline": "this year", "model": "7b", "tokens": "500B"},
        {"name": "job 13b", "deadline": "this year", "model": "13b", "tokens": "300B"}]),
    ("finetune 70b lora on 50M tokens", None, []), ("is it better to serve 8b at 5 rps or 70b at 2 rps", None, []),
    ("pretrain 7b on 1T tokens and finetune it", None, [])])
def test_several_jobs_are_a_portfolio(line: str, whole: dict[str, str] | None, jobs: list[dict[str, str]]) -> None:
    told = portfolio_of([line], CATALOG)
    assert (None if told is None else json.loads(told)) == (None if whole is None else {**whole, "jobs": jobs})


def test_jobs_in_words_are_planned_on_one_fleet(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", "--own", "2xdgx-h100", "-q"]
    assert main([*asked, "--jobs", "finetune llama-3.1-8b on 200M tokens; lora llama-3.1-8b on 100M tokens",
                 "--horizon", "4 weeks"]) == 0
    assert "2 jobs on 1 pool" in capsys.readouterr().out


@pytest.mark.parametrize(("line", "before", "last"), [
    ("SFT then DPO llama 3.1 70b, 100k sft samples and 40k preference pairs, 16 H100. total time?",
     "plan --method sft --model llama-3.1-70b --on '16 h100' --samples 100k", "--samples 40k"),
    ("is B200 at $5.5/h better than H100 at $2.2/h for 13B 500B tokens",
     "plan --on b200 --model 13b --tokens 500B --price 5.5", "--price 2.2"),
    ("if our H100 price drops to $1.80, is pretraining a 13B on 1T tokens cheaper on H100 or on MI300X?",
     "plan --on h100 --method pretrain --model 13b --tokens 1T --price 1.80", "--model 13b --tokens 1T"),
    ("Lambda quoted us $2.79/GPU-hour for 32 H100 SXM for 3 months, is it better than AWS?",
     "compare --provider lambda --on '32 h100 sxm' --years 0.246575 --price 2.79", "--years 0.246575"),
    ("train 7b on 1T tokens in 20 days on 256 H100 or in 40 days on 128?",
     "plan --on '256 h100' --model 7b --tokens 1T --deadline '20 days'", "--deadline '40 days'"),
    ("is 7B on 600B tokens or 13B on 300B tokens cheaper to pretrain on H100?",
     "plan --method pretrain --on h100 --model 7b --tokens 600B", "--model 13b --tokens 300B"),
    ("full finetune 8b then DPO, 50M tokens",
     "plan --method full-finetune --model 8b --tokens 50M", "--model 8b --tokens 50M"),
    ("If I increase context from 8k to 32k for LoRA 8B on one A100 80GB, does it still fit?",
     "estimate --method lora --on 'one a100 80gb' --model 8b --seq-len 8k", "--seq-len 32k"),
    ("serve mistral 7b to 50 users or 80 users", "plan --model mistral-7b --users 50 --method inference", "--users 80"),
    ("if we double the global batch from 1024 to 2048, is the 30B pretraining on 256 GPUs faster?",
     "plan --global-batch 1024 --method pretrain --model 30b --gpus 256 --tokens chinchilla", "--global-batch 2048"),
    ("what if my traffic doubles? right now 50 requests a second on qwen3 8b",
     "plan --model qwen3-8b --rate '50 requests/second' --method inference", "--rate '100 requests/second'"),
    ("why cant i full finetune llama 3 70b on one node of 8 h100s",
     "estimate --method full-finetune --model llama-3-70b --on 'one node of 8 h100s' --layout offload_optimizer=0,"
     "offload_parameters=0,offload_activations=0", "--on 'one node of 8 h100s'")])
def test_a_question_with_two_answers_has_both(line: str, before: str, last: str) -> None:
    told = Told(left_out=[])
    read = spoken([line], CATALOG, told=told)
    assert read is not None
    assert [shown(command) for _, command in told.first] == [before]
    assert shown(read).endswith(last) or f"{last} " in shown(read)


@pytest.mark.parametrize(("line", "assumed"), [
    ("how much memory to serve kimi k2 with 128k context for 10 users",
     "1041.9 GiB on all GPUs together: 958.1 GiB of weights in fp8, and 83.8 GiB of bf16 cache"),
    ("translate 3 million texts, 120 words each, with gemma 3 27b by friday", "120 words read as 160 tokens"),
    ("serve llama 3.1 8b on cpu or a T4 for 2 users", "a t4 alone is planned for"),
    ("serve llama 3.1 8b at 20k requests a day", "spread evenly over the day"),
    ("a node dies every 2 days, 13b on 1T tokens, 256 h100", "every 2 days is left out: how often nodes fail"),
    ("3b on 100B tokens, 16 nodes of 8xH100 with 400 Gb/s", "400 gb per s is left out: how GPUs and nodes are joined"),
    ("sft qwen3 8b on 20k samples in 12 hours, number of epochs?", "12 hours divided by its time")])
def test_what_is_assumed_is_said(line: str, assumed: str) -> None:
    told = Told(left_out=[])
    spoken([line], CATALOG, told=told)
    assert assumed in " ".join(told.assumed)


def test_each_number_is_of_the_key_that_took_its_words() -> None:
    """A number was accounted for where any key had one like it: the 2 of "2 x 8 h100" by a rank of 2."""
    sentence = Sentence(words_of(["2 x 8 h100 with rank 2"]), CATALOG)
    on, rank = ReadFrom("8 h100", {2, 3}), ReadFrom("2", {5, 6})
    assert unheard(sentence, {"on": [on], "lora-rank": [rank]}, "") == ["2 x"]
    assert unheard(sentence, {"on": [ReadFrom("2 x 8 h100", range(4))], "lora-rank": [rank]}, "") == []
    assert unheard(sentence, {"on": [on], "lora-rank": [rank]}, "2 x is left out") == []
    twice = {"on": [ReadFrom("2 x 8 h100", range(4))], "max-nodes": [ReadFrom("2", {0})], "lora-rank": [rank]}
    assert unheard(sentence, twice, "") == ["2 x (read as --on and as --max-nodes: which?)"]


def test_hours_of_sound_need_what_hears_them() -> None:
    with pytest.raises(InputError, match="100 hours of sound: say in how many pieces"):
        spoken(["100 hours of meetings with qwen2-audio"], CATALOG)


def test_a_task_that_is_not_modeled_is_refused_by_what_it_is() -> None:
    with pytest.raises(InputError, match=r"^tts: text to speech is not modeled"):
        spoken(["TTS for 2M characters per day"], CATALOG)


def test_hardware_that_is_not_modeled_is_refused_with_the_question_that_works() -> None:
    with pytest.raises(InputError, match=r"Apple silicon.*planner plan .*--on dgx-spark .*asks about that"):
        spoken(["how many users can a Mac Studio with 512GB handle on deepseek v3 at 4 bit"], CATALOG)


def test_what_training_costs_without_an_amount_is_told_of_a_usual_one() -> None:
    """It was read as what a million documents cost to answer, and refused later."""
    told = Told(left_out=[])
    assert spoken(["how much does it cost to train llama-3.1-8b"], CATALOG, told=told) == [
        "plan", "--model", "llama-3.1-8b", "--tokens", "chinchilla", "--method", "pretrain"]
    assert "how much is trained is not said" in told.assumed[-1]
    assert spoken(["cheapest", "gpu", "to", "fine-tune", "qwen2.5-7b"], CATALOG) == ["plan", "--model", "qwen2.5-7b"]


def test_a_run_and_a_service_are_two_questions() -> None:
    """The tokens were read as those of a prompt."""
    line = "train a 13B on 200B tokens and serve it to 400 users on 8 DGX H100"
    with pytest.raises(InputError) as told:
        spoken(line.split(), CATALOG)
    assert "{name: run, model: 13b, tokens: 200B}, {name: service, model: 13b, users: 400}" in str(told.value)


@pytest.mark.parametrize(("line", "unread"), [
    ("train llama-3.1-8b on 3 bananas", "'bananas'"), ("serve frobnitz-7b on h100", "'frobnitz-7b'"),
    ("qlora llama-3.1-8b with 17", "'17'"),
    ("serve llama-3.1-8b with 8 bananas each", "'8 bananas'"),
    ("fine tune a model w/ 200GB of bananas", "'200gb'"),
    ("qlora llama-3.1-8b on 2M tokens a week", "'2m tokens a week'")])
def test_a_word_that_is_not_understood_is_named(line: str, unread: str) -> None:
    with pytest.raises(InputError, match=f"not understood: .*{unread}"):
        spoken(line.split(), CATALOG)


@pytest.mark.parametrize(("line", "left"), [
    ("doodad gizmo with qwen3 14b at 20 requests per second", ["doodad", "gizmo"]),
    ("serve llama-3.1-8b for 200 users", [])])
def test_words_that_count_nothing_are_left_out_and_said(line: str, left: list[str]) -> None:
    told = Told(left_out=[])
    assert spoken(line.split(), CATALOG, told=told) is not None
    assert told.left_out == left


@pytest.mark.parametrize("line", [
    "serve frobnitz-7b on h100", "train llama-3.1-8b on 3 bananas", "train zebra on h100 for 1T tokens",
    "serve llama-3.1-8b on an a10 with more requests"])
def test_words_that_decide_are_never_left_out(line: str) -> None:
    with pytest.raises(InputError, match="not understood"):
        spoken(line.split(), CATALOG, told=Told(left_out=[]))


def test_flags_behind_a_sentence_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["finetune", "llama-3.1-8b", "on", "100M", "tokens", "--gpu", "8xh100", "--show-scenario"]
    assert main(asked) == 0
    out, err = capsys.readouterr()
    assert "read as planner plan --model llama-3.1-8b --tokens 100M --method full" in err
    assert "method: full" in out
    assert main(["finetune", "--model", "llama-3.1-8b", "--tokens", "100M", "--on", "8xh100", "--show-scenario"]) == 0
    assert "method: full" in capsys.readouterr().out


@pytest.mark.parametrize(("args", "read"), [
    (["vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", "8192"], "read from a vLLM command"),
    (["vllm serve Qwen/Qwen3-8B --max-model-len 8192"], "read from a vLLM command"),
    (["estimate", "lora.yml", "--gpu", "4090"], "read from an axolotl config"),
    (["plan", "jobs.log", "--on", "8xh100", "--wait", "4 h"], "Fewest: 1 node of dgx-h100")])
def test_a_config_or_a_log_stands_for_itself(args: list[str], read: str, tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lora.yml").write_text("base_model: Qwen/Qwen3-8B\nadapter: lora\nsequence_len: 2048\n"
                                       "micro_batch_size: 1\ndatasets: []\n")
    (tmp_path / "jobs.log").write_text("submit,start,end,gpus\n2026-10-01T08:00,2026-10-01T09:00,2026-10-01T11:00,8\n")
    assert main(args) == 0
    assert read in " ".join(capsys.readouterr().out.split())


def test_a_file_that_stands_for_itself_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.scenario.configs import read
    from planner.simulate import joblog

    config, log = tmp_path / "lora.yml", tmp_path / "jobs.log"
    config.write_text("base_model: Qwen/Qwen3-8B\nadapter: lora\nsequence_len: 2048\ndatasets: []\n")
    log.write_text("submit,start,end,gpus\n" + "2026-10-01T08:00,2026-10-01T09:00,2026-10-01T11:00,8\n" * 3)
    seen: list[str] = []
    known, job = read.read_config, joblog._job
    monkeypatch.setattr(read, "read_config", lambda file: seen.append(file) or known(file))
    monkeypatch.setattr(joblog, "_job", lambda *row: seen.append("row") or job(*row))
    assert main(["estimate", str(config), "--gpu", "4090", "-q"]) == 0
    assert seen == [str(config)]
    assert main(["plan", str(log), "--on", "8xh100", "--wait", "4 h", "-q"]) == 0
    assert seen[1:] == [str(log), *["row"] * 3]


def test_a_catalog_is_listed_by_its_name_and_an_estimate_of_many_cards_is_a_plan(
        capsys: pytest.CaptureFixture[str]) -> None:
    for args in (["catalog", "gpus"], ["list", "gpus"], ["models"]):
        assert main(args) == 0
    assert "llama-3.1-70b" in capsys.readouterr().out
    assert main(["catalog", "h100"]) == 0
    assert capsys.readouterr().out.startswith("h100-sxm (gpus)")
    assert main(["catalog", "lsit"]) == 2
    assert "'list'" in capsys.readouterr().err
    assert main(["prices", "h100", "h200"]) == 0
    assert "hyperstack" in capsys.readouterr().out
    assert main(["estimate", "--model", "gemma-2-9b", "--gpu", "16GB", "--method", "qlora", "-q"]) == 0
    assert capsys.readouterr().out.startswith("Yes: 1 x GPU of 16 GB holds gemma-2-9b for QLoRA. Fewest")


def test_help_and_version_are_words_too(capsys: pytest.CaptureFixture[str]) -> None:
    for args, said in ((["version"], "planner, version"), (["help"], "Commands:"), (["help", "plan"], "planner plan")):
        assert main(args) == 0
        assert said in capsys.readouterr().out
