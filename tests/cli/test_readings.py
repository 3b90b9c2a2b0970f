"""What people write between the words that count: signs, exclusions, corrections, spans, and words that say nothing."""

from __future__ import annotations

import json
import random
import re

import pytest

from planner.catalog.load import Catalog
from planner.cli.completed import shown
from planner.cli.main import main
from planner.cli.sentence import spoken
from planner.cli.several import portfolio_of
from planner.cli.told import Told
from planner.errors import InputError, PlannerError

CATALOG = Catalog()
SERVES = "serve llama-3.1-8b at 2 requests/s, "
READ = [  # words beside one question, and flags that they are
    ("~1.5k tokens in and 300 out", "--input 1.5k --output 300"), ("8k input 1k output", "--input 8k --output 1k"),
    ("input 8k output 1k", "--input 8k --output 1k"),
    ("prompts around 6000 tokens, answers 250", "--input '6000 tokens' --output 250"),
    ("prompts around 6000 tokens where 4000 are always the same", "--input '6000 tokens' --prefix-hits 66%"),
    ("6k token prompts of which 3k is shared", "--input 6k --prefix-hits 50%"),
    ("prompts 2k, outputs 500", "--input 2k --output 500"),
    ("70% of the prompt cached", "--prefix-hits 70%"),
    ("20% headroom", "--headroom 20%"),
    ("reply under 1 second", "--e2e '1 second'"),
    ("first token under 500 ms and the whole answer within 8 s", "--ttft '500 ms' --e2e '8 s'"),
    ("answer starts within 2 seconds", "--ttft '2 seconds'"),
    ("replies < 3 s", "--e2e '3 s'"),
    ("users think 20 seconds", "--think '20 seconds'"),
    ("budget at most 8 grand a month", "--budget '8 k USD/month'"),
    ("\N{EURO SIGN}900 a month", "--budget '900 euros/month'"),
    ("900\N{EURO SIGN}/month", "--budget '900 euros/month'"),
    ("for 200 bucks a month", "--budget '200 USD/month'"),
    ("at most 90 cents an hour", "--budget '0.9 USD/hour'"),
    ("electricity at 0.12 \N{EURO SIGN}/kWh", "--electricity '0.12 euros/kWh'"),
    ("18 cents per kWh", "--electricity '0.18 USD/kWh'"),
    ("not on AWS", "--provider azure,coreweave,crusoe,gcp,hyperstack,lambda,nebius,oblivus,oci,runpod,verda"),
    ("no spot", "--terms on-demand"), ("without spot instances", "--terms on-demand"),
    ("no reserved", "--terms on-demand"),
    ("not in the US", "--region europe,canada,asia"), ("hardware in us-east", "--region us-east"),
    ("on A100 or H100 but not A100", "--on h100"), ("on l4, l40s and h100 except l4", "--on l40s,h100"),
    ("AMD only", "--on mi300x"), ("no nvidia please", "--on mi300x"), ("non-nvidia hardware", "--on mi300x"),
    ("anything except TPUs", ""),
    ("never mind AWS", "--provider azure,coreweave,crusoe,gcp,hyperstack,lambda,nebius,oblivus,oci,runpod,verda"),
    ("no fp8", "--quantization bf16"), ("no rush", ""), ("any deadline is fine", ""), ("not sure about the rest", ""),
    ("for no more than 500 USD a month", "--budget '500 USD/month'"),
    ("9 to 5 only", "--day 9h-17h"), ("between 9 and 5", "--day 9h-17h"), ("from 8am to 6pm", "--day 8h-18h"),
    ("during business hours", "--day 9h-17h"),
    ("between 4k and 8k token prompts", "--input 8k"), ("2-4k tokens in", "--input 4k"),
    ("on 8 H100, no wait, 16", "--on '16 h100'"), ("on 8 H100 - sorry, 4x L40S", "--on '4x l40s' --max-nodes 1"),
    ("300 tokens out, make that 400", "--output 400"), ("tp 4", "--layout tp=4"),
    ("tensor parallel size 2", "--layout tp=2"),
    ("over infiniband", ""), ("with nvlink and 64gb ram", ""), ("on a 3090 with 64gb ram", "--on 'a 3090'"),
    ("temperature 0.7", ""), ("pls lmk", ""), ("(it is a rag thing mostly)", ""),
    ("\N{EM DASH} finance wants to know", ""),
    ("in \N{LEFT DOUBLE QUOTATION MARK}production\N{RIGHT DOUBLE QUOTATION MARK};\n- on l4\n- 1k tokens in",
     "--on l4 --input 1k")]


@pytest.mark.parametrize(("words", "flags"), READ)
def test_words_beside_a_question_are_flags_or_are_left_out(words: str, flags: str) -> None:
    read = spoken([SERVES + words], CATALOG, told=Told(left_out=[]))
    plain = f"plan --model llama-3.1-8b --rate '2 requests/s' --method inference {flags}".strip()
    assert read is not None
    assert sorted(shown(read).split(" --")) == sorted(plain.split(" --"))


AMOUNTS = [  # the end of a question, and the flags that its numbers are
    # what is trained on
    ("pretrain a 3B on 600 billion tokens", "--tokens 600B"), ("pretrain 1b, 1.5T tok", "--tokens 1.5T"),
    ("train a 13b/400b token run", "--tokens 400B"),
    ("lora r=16 on llama3 8b, 10k examples avg 700 tok, 3 epochs",
     "--lora-rank 16 --samples 10k --mean-length '700 tok' --epochs 3"),
    ("lora rank 32 on mistral-7b with 50k pairs of 900 tokens",
     "--lora-rank 32 --samples 50k --mean-length 900"),
    ("full finetune mistral-7b, 150k samples, 512 tokens each, bs 64",
     "--samples 150k --mean-length 512 --global-batch 64"),
    ("full finetune mistral-7b on 2 mil rows at 4096", "--samples 2M --seq-len 4096"),
    ("full finetune mistral-7b on 300M tokens in 36 hours", "--tokens 300M --deadline '36 hours'"),
    ("full finetune mistral-7b on 300M tokens in under 24h for less than $3000",
     "--tokens 300M --deadline '24 h' --budget '3000 USD'"),
    ("full finetune mistral-7b on 300M tokens for 5 grand", "--tokens 300M --budget '5k USD'"),
    ("full finetune mistral-7b on 300M tokens, 2-3 weeks", "--tokens 300M --deadline '3 weeks'"),
    ("full finetune mistral-7b on 300M tokens for \N{POUND SIGN}2k", "--tokens 300M --budget '2k pounds'"),
    ("full finetune mistral-7b on 300M tokens at $2.50 per GPU hour", "--tokens 300M --price 2.50"),
    ("full finetune mistral-7b on 300M tokens overnight", "--tokens 300M --deadline 12h"),
    ("ppo mistral-7b, 20k prompts/epoch, 2 epochs", "--samples 20k --epochs 2"),
    ("dpo mistral-7b, 80k preference pairs", "--samples 80k"),
    ("grpo mistral-7b, 8 samples per prompt, 500 steps with 256 prompts each",
     "--samples-per-prompt 8 --steps 500 --prompts 256"),
    ("GRPO of Qwen2.5-32B where rollouts run on L40S and the trainer on H100, 128 prompts, 8 samples, 2k token "
     "answers, 100 steps", "--rollouts-on l40s --on h100 --prompts 128 --samples-per-prompt 8 --output 2k --steps 100"),
    ("ppo on qwen2.5-7b, train on 8 H100, generate on 8 L40S, 100 steps",
     "--on '8 h100' --rollouts-on '8 l40s' --steps 100"),
    ("grpo mistral-7b with 1024 rollouts on 8 H100, 100 steps", "--samples-per-prompt 1024 --on '8 h100' --steps 100"),
    ("grpo mistral-7b, 16 rollouts per prompt, 128 prompts a step, 4k token answers",
     "--samples-per-prompt 16 --prompts 128 --output 4k"),
    # what is served
    ("serve mistral-7b at 300 requests/min", "--rate '300 requests/min'"),
    ("serve mistral-7b, 12 qps", "--rate '12 qps'"),
    ("serve mistral-7b to 40k DAU, each writes 6 msgs", "--daily-users 40k --requests-per-user 6"),
    ("serve mistral-7b to 500 daily users, 12 messages a day each", "--daily-users 500 --requests-per-user 12"),
    ("serve mistral-7b to 25 people at once", "--users 25"),
    ("serve mistral-7b, 64 concurrent requests", "--concurrency 64"),
    ("serve mistral-7b, 1M requests a day, 1k/256 tokens", "--rate '1M requests/day' --input 1k --output 256"),
    ("serve mistral-7b, 3M questions a day between 9 and 5", "--day 9h-17h --rate '375000 requests/hour'"),
    ("serve mistral-7b at 5 rps, 2k in, 300 out", "--rate '5 rps' --input 2k --output 300"),
    ("serve mistral-7b to 50 users at 20 tok/s each", "--users 50 --tpot '20 tokens/s'"),
    ("serve mistral-7b to 50 users, ttft under 800 ms, tpot 40ms", "--users 50 --ttft '800 ms' --tpot '40 ms'"),
    ("serve mistral-7b to 50 users for 200 bucks a month", "--users 50 --budget '200 USD/month'"),
    ("summarize 50k reports of 10 pages with mistral-7b by tomorrow", "--documents 50k --input 6650 --deadline 24h"),
    ("embed 12 mil product descriptions (200 tokens each) with bge-m3", "--documents 12M --input 200 --output 0"),
    ("biggest context I can serve for mistral-7b on 4xL4 with 10 simultaneous users",
     "--on 4xl4 --users 10 --max sequence"),
    ("can 2 x 5090 handle mistral-7b for a team (10 ppl)", "--on '2 x 5090' --users 10 --max-nodes 1"),
    ("throughput of mistral-7b on 2 MI300X, batch 64", "--on '2 mi300x' --concurrency 64 --max-nodes 1"),
    ("what do 1 billion tokens of output cost on mistral-7b if I host it", "--output 211 --documents 4739336"),
    ("serve mistral-7b to 10 users w/ 4k prompts", "--users 10 --input 4k"),
    ("100k EUR for 365 days of serving mistral-7b to 50 users", "--users 50 --budget '8219.18 eur/month'"),
    # what is drawn, filmed and heard
    ("generate 1M 1024x1024 images per day with flux-dev", "--resolution 1024x1024 --rate '1M images/day'"),
    ("generate 2000 five second clips in 720p with hunyuan-video", "--frames 121 --resolution 720p --samples 2000"),
    ("fine-tune sdxl on 20k of our photos", "--samples 20k"),
    ("qlora mistral-7b, dataset 20 million tokens, 3 epochs", "--tokens '20 million tokens' --epochs 3"),
    ("rl for qwen3-32b, group size 16, 1000 steps of 128 prompts",
     "--samples-per-prompt 16 --steps 1000 --prompts 128"),
    ("does full tuning of mistral-7b on 1B tokens fit on h100s, at $2.20 per gpu hour",
     "--on h100s --tokens 1B --price 2.20"),
    ("generate 500 images at 768px with sdxl", "--resolution 768x768 --samples 500"),
    ("generate 5-second 720p clips with wan2.1-14b, roughly 2,000 clips a day",
     "--resolution 720p --frames 81 --rate '2,000 clips/day'"),
    ("24 fps 720p video, 4 sec clips, 300 clips per hour, hunyuan-video",
     "--resolution 720p --frames 97 --rate '300 clips/hour'"),
    ("train a lora for sdxl on 40 images, batch 4, 1500 steps", "--samples 40 --batch 4 --steps 1500"),
    ("transcribe 50,000 hours of call centre recordings with whisper-large-v3, any deadline is fine",
     "--documents 6000000"),
    ("transcribe 20k hours of podcasts with whisper-large-v3 in 3 days", "--documents 2400000 --deadline '3 days'")]


WHOLE = [  # questions, and the commands that they are
    ("We trained our 7B for 12 days on 64 A100 last year. Now a 13B on 2T, how many H100 for 30 days?",
     "plan --on h100 --model 13b --tokens 2T --deadline '30 days'"),
    ("our p4d.24xlarge sft of a 13B takes about 20 hours, is an H200 box cheaper?",
     "compare --own p4d.24xlarge --on h200 --method sft --model 13b --tokens 100M"),
    ("hey all, pretrain mistral 7b on 8B tokens on 8 H100",
     "plan --method pretrain --model mistral-7b --tokens 8B --on '8 h100' --max-nodes 1"),
    ("20 H100 hours left, enough for 30M tokens lora on llama 70b?",
     "estimate --on h100 --method lora --model llama-70b --tokens 30M"),
    ("is llama 70b cheaper self hosted vs $0.9 per million tokens", "compare --model llama-70b --documents 1M"),
    ("how much slower is bf16 vs fp8 when pretraining 70B on 512 H100",
     "compare --method pretrain --on '512 h100' --model 70b --precision bf16,fp8 --tokens chinchilla"),
    ("speculative decoding for llama 70b, 60% acceptance, 16 users", "plan --model llama-70b --users 16 "
     "--speculative 3:0.6 --method inference")]


@pytest.mark.parametrize(("line", "meant"), WHOLE)
def test_a_whole_question_is_a_command(line: str, meant: str) -> None:
    read = spoken([line], CATALOG, told=Told(left_out=[]))
    assert read is not None
    assert sorted(shown(read).split(" --")) == sorted(meant.split(" --"))


@pytest.mark.parametrize(("line", "flags"), AMOUNTS)
def test_each_number_goes_to_its_key(line: str, flags: str) -> None:
    read = spoken([line], CATALOG, told=Told(left_out=[]))
    assert read is not None
    named = [part for part in f" {shown(read)}".split(" --")[1:] if part.partition(" ")[0] not in ("model", "method")]
    assert sorted(named) == sorted(f" {flags}".split(" --")[1:])


@pytest.mark.parametrize(("line", "said"), [
    ("serve llama-3.1-8b on h100 without egress fees", "without 'egress' is not understood"),
    ("serve llama-3.1-8b at 2 rps with vllm but not vllm", "choice left: name it by --engine"),
    ("generate 1M images with sdxl for 1 cent per image", "is the price of a thing, and no budget"),
    ("serve llama-3.1-8b to 50 users or 80 users with 1k in or 2k in", "--users is said twice"),
    ("serve llama-3.1-8b on h100, 40% of it", "'40%' .*what does it count"),
    ("finetune zebra on 8 h100", "which model is tuned, .*'zebra' is not understood")])
def test_what_may_turn_the_answer_is_asked_back(line: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        spoken([line], CATALOG, told=Told(left_out=[]))


LEFT_OUT = [  # beside a whole question: what changes nothing of it, and is said
    ("without egress fees", ["without egress"]), ("40% of it", ["40%"]), ("with 8 bananas each", ["8 bananas"]),
    ("no blockchain", ["no blockchain"]),
    ("last year it took 8 L4 and 31 hours", ["31 hours (of what was)", "8 l4 (of what was)"]),
    ("it takes about 13 seconds today", ["13 seconds (as it is)"]),
    ("with an 8b draft", ["8b draft"]), ("we trained a 13B for 12 days on 64 A100 last year", [
        "13b (of what was)", "12 days (of what was)", "64 a100 (of what was)"])]


@pytest.mark.parametrize(("words", "left"), LEFT_OUT)
def test_what_a_whole_question_does_not_turn_on_is_said_and_it_is_answered(words: str, left: list[str]) -> None:
    told = Told(left_out=[])
    read = spoken([f"{SERVES}{words}"], CATALOG, told=told)
    assert read is not None
    assert sorted(shown(read).split(" --")) == sorted(
        ["plan", "model llama-3.1-8b", "rate '2 requests/s'", "method inference"])
    assert set(left) <= set(told.left_out or ())


def test_no_number_of_a_sentence_is_lost_in_silence() -> None:
    """Each is in the command, in a note, or among what is not taken into account."""
    chance = random.Random(7)
    beside = [words for words, _ in (*READ, *LEFT_OUT)]
    for asked, _ in AMOUNTS:
        unlike = str(chance.choice((37, 53, 71, 89)))
        last = chance.choice(("widgets", "turns", "percent", "of them"))
        line = re.sub(r"(?<=\d),(?=\d)", "", f"{asked}, {chance.choice(beside)}, {unlike} {last}")
        told = Told(left_out=[])
        try:
            read = spoken([line], CATALOG, told=told)
        except InputError:
            continue
        whole = " ".join((shown(read or []), *told.assumed, *(told.left_out or ()), *(
            shown(each) for _, each in told.first)))
        assert unlike in whole, line
        clocks = {"8", "6", "9", "5", "24"}
        for number in set(re.findall(r"(?<![\w.-])\d+(?:\.\d+)?(?![\w.]*[-/:])", line)) - clocks:
            found = {float(each) for each in re.findall(r"\d+(?:\.\d+)?", whole.replace(",", ""))}
            assert found & {float(number), float(number) / 100}, (number, line, whole)


@pytest.mark.parametrize("line", ["need gpus", "What is the best GPU?", "how's the weather while my training runs"])
def test_a_question_about_nothing_is_asked_back_with_three_that_are_whole(
        line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([line]) == 2
    told = capsys.readouterr().err
    assert "what is it for: which model" in told
    assert told.count('\n  planner "') == 3
    assert "No such command" not in told


def test_a_slip_in_a_command_is_still_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimte"]) == 2
    assert "did you mean estimate" in capsys.readouterr().err


def test_a_sentence_of_lines_and_dashes_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    """A free-standing dash was read as the flag of a command line of another tool, and a bullet as one of ours."""
    line = "- qlora llama-3.1-8b\n- on a 4090 - how long for 1k samples of 500 tokens?"
    assert main([line, "--show-scenario"]) == 0
    assert "read as planner plan --method qlora --model llama-3.1-8b --on 'a 4090'" in capsys.readouterr().err


def test_twice_as_many_gpus_have_two_answers() -> None:
    told = Told(left_out=[])
    line = "if i double the number of gpus from 64 to 128 for my 13B/400B token run how much faster is it"
    read = spoken([line], CATALOG, told=told)
    assert read is not None
    assert [shown(command) for _, command in told.first] == ["plan --gpus 64 --model 13b --tokens 400B --on h100-sxm"]
    assert shown(read) == "plan --gpus 128 --model 13b --tokens 400B --on h100-sxm"


def test_jobs_of_teams_are_a_portfolio() -> None:
    line = ("For 3 teams: one pretrains a 1B on 200B tokens in 5 days, second serves Mistral 7B at 5 rps, third "
            "does LoRA of a 70B on 50M tokens; what shared cluster do we need?")
    told = portfolio_of([line], CATALOG)
    assert told is not None
    jobs = [{key: value for key, value in job.items() if key != "name"} for job in json.loads(told)["jobs"]]
    assert jobs == [{"method": "pretrain", "deadline": "5 days", "model": "1b", "tokens": "200B"},
                    {"model": "mistral-7b", "rate": "5 rps"}, {"method": "lora", "model": "70b", "tokens": "50M"}]


ODD = ["~", "-", "/s", "9-5", "$", "0", "-1", "1e400", "9" * 30, "%", "kwh", "of", "not", "but", "between", "and", "to",
       "make that", "sorry", "k", "8x", "tp", "=", "720p", "0x0", "12:99", "25h", "1/0", "\N{SUPERSCRIPT TWO}", "NaN",
       "tokens/s/gpu", "3.1", "twice", "by friday", "2020-01-01", "each"]


def test_no_sentence_is_an_error_of_ours() -> None:
    """Each is refused by a PlannerError or read."""
    chance = random.Random(11)
    lines = [line for line, _ in AMOUNTS] + [SERVES + words for words, _ in READ]
    for _ in range(60):
        words = chance.choice(lines).split()
        for _ in range(3):
            at = chance.randrange(len(words))
            if chance.random() < 0.4:
                words[at] = chance.choice((words[at] + chance.choice(ODD), chance.choice(ODD) + words[at]))
            else:
                words[at:at] = chance.choice(([], [words[at]], [chance.choice(ODD)], chance.choice(lines).split()[:3]))
        try:
            spoken([" ".join(words)], CATALOG, told=Told(left_out=[]))
        except PlannerError:
            continue
