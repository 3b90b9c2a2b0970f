"""A question in a sentence is read as a command, or refused with the words that are not understood."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.catalog.load import Catalog
from planner.cli.accounted import unheard
from planner.cli.completed import Told, shown
from planner.cli.main import main
from planner.cli.read_from import ReadFrom
from planner.cli.read_words import Sentence
from planner.cli.sentence import spoken
from planner.cli.several import portfolio_of
from planner.cli.written import words_of
from planner.errors import InputError

CATALOG = Catalog()
SAID = [
    ("how many H100s do I need to pretrain a 13B model on 1 trillion tokens in 30 days?",
     "plan --on h100s --method pretrain --model 13b --tokens 1T --deadline '30 days'"),
    ("does mixtral 8x7b fit on 2x a100 80gb", "plan --model mixtral-8x7b --on '2x a100 80gb'"),
    ("does llama 3.1 70b qlora fit on 2x 3090", "estimate --model llama-3.1-70b --method qlora --on '2x 3090'"),
    ("can I run qwen3 32b in int4 on a 5090",
     "estimate --model qwen3-32b --quantization int4 --on 'a 5090' --method inference"),
    ("serve llama-3.1-8b for 200 users under 2 seconds",
     "plan --model llama-3.1-8b --users 200 --e2e '2 seconds' --method inference"),
    ("largest model I can qlora on a single 4090", "plan --method qlora --on 'a single 4090'"),
    ("H100 vs H200 for serving llama 70b at 5 requests/s",
     "compare --on h100,h200 --model llama-70b --rate '5 requests/s' --method inference"),
    ("pretrain 13B on 1T tokens, we were quoted $2.10/h per H100",
     "plan --method pretrain --on h100 --model 13b --tokens 1T --price 2.10"),
    ("h100 at $2.10/hr: pretrain 7b on 200B tokens",
     "plan --on h100 --method pretrain --price 2.10 --model 7b --tokens 200B"),
    ("I can pay at most $50/h to serve llama 70b at 5 requests/s on h100",
     "plan --model llama-70b --on h100 --budget '50 USD/h' --rate '5 requests/s' --method inference"),
    ("rent or buy 8 H100 for 18 months", "compare --on '8 h100' --years 1.47945"),
    ("embed 50 million documents of 512 tokens with bge-m3 in 24 hours",
     "plan --model bge-m3 --documents 50M --input 512 --deadline '24 hours' --output 0"),
    ("generate 1 million images with flux-dev in a week",
     "plan --model flux-dev --samples 1M --deadline '1 week' --method inference"),
    ("finetune qwen2.5-vl-7b on 100k images", "plan --model qwen2.5-vl-7b --samples 100k --images 1"),
    ("dpo llama-3.1-8b on 60k pairs on my 4x4090", "plan --method dpo --model llama-3.1-8b --own 4x4090 --samples 60k"),
    ("max context length of llama 3.1 8b on 24gb", "plan --model llama-3.1-8b --on 24gb --method inference"),
    ("cost per million tokens of llama-3.1-70b on h100", "plan --model llama-3.1-70b --on h100 --documents 1M"),
    ("why not a100 for llama-3.1-8b full on 100M tokens",
     "explain --model llama-3.1-8b --method full --tokens 100M --why-not gpu=a100"),
    ("lora llama-3.1-8b, rank 64, 3 epochs, 20k samples, context 2k, under $50, spot on aws",
     "plan --method lora --model llama-3.1-8b --lora-rank 64 --seq-len 2k --terms spot --provider aws --epochs 3 "
     "--samples 20k --budget '50 USD'"),
    ("fine-tune sdxl on 20k images with an a6000", "plan --model sdxl --on 'an a6000' --samples 20k --method full"),
    ("rl for qwen3-32b with 16 samples per prompt, 500 steps of 128 prompts",
     "plan --method rl --model qwen3-32b --samples-per-prompt 16 --steps 500 --prompts 128"),
    ("train a lora for sdxl on 40 images with a 4080", "plan --method lora --model sdxl --on 'a 4080' --samples 40"),
    ("max batch size for llama 3.1 8b lora at 4096 on an a100 40gb",
     "estimate --max micro-batch --model llama-3.1-8b --method lora --seq-len 4096 --on 'an a100 40gb'"),
    ("pretrain 13B on 300B tokens with a budget of 200k dollars by 1 march 2098",
     "plan --method pretrain --model 13b --tokens 300B --budget '200k dollars' --deadline '1 march 2098'"),
    ("is an A10G enough for whisper large v3", "plan --on a10g --model whisper-large-v3"),
    ("how long does it take to finetune mistral 7b with qlora on 10k samples of 1000 tokens on a 3090",
     "plan --model mistral-7b --method qlora --on 'a 3090' --samples 10k --mean-length 1000"),
    ("what gpu do I need to run qwen3 32b at 30 tokens per second",
     "plan --model qwen3-32b --tpot '30 tokens/s' --method inference --users 1"),
    ("I have 64 a100 for two weeks, can I pretrain a 3b model on 200B tokens?",
     "plan --own '64 a100' --method pretrain --deadline '2 weeks' --model 3b --tokens 200B"),
    ("serve llama-3.1-8b to 200 concurrent requests, p99 under 4 seconds",
     "plan --model llama-3.1-8b --concurrency 200 --percentile p99 --e2e '4 seconds' --method inference"),
    ("is it cheaper to buy 8 H100 or rent them for 2 years at 60% utilization",
     "compare --on '8 h100' --years 2 --utilization 60%"),
    ("does qwen3 32b lora fit on a DGX", "estimate --model qwen3-32b --method lora --on 'a dgx'"),
    ("pretrain a 3b model compute-optimal on h100", "plan --method pretrain --model 3b --tokens chinchilla --on h100"),
    ("pretrain a 3b model on 100 tokens per parameter",
     "plan --method pretrain --model 3b --tokens '100 per parameter'"),
    ("how many concurrent users can a single 4090 serve with qwen3 8b at 20 tokens per second each",
     "plan --objective users --on 'a single 4090' --model qwen3-8b --tpot '20 tokens/s' --method inference"),
    ("ppo on llama 3.1 8b with a reward model on 8xa100",
     "plan --method ppo --model llama-3.1-8b --reward model --on 8xa100"),
    ("can two DGX Sparks run gpt-oss-120b in mxfp4",
     "plan --on 'two dgx spark' --model gpt-oss-120b --quantization mxfp4 --method inference"),
    ("qlora llama-3.1-8b on 24GB with 4k context, batch size 1",
     "plan --method qlora --model llama-3.1-8b --on 24gb --seq-len 4k --global-batch 1"),
    ("serve sdxl at 2 images per second under 6 seconds",
     "plan --model sdxl --rate '2 images/second' --e2e '6 seconds' --method inference"),
    ("cost per 1M tokens for deepseek-v3 on 8xH200", "plan --model deepseek-v3 --on 8xh200 --documents 1M"),
    ("lora wan-2.1-14b with 60 clips at 480p on an A100",
     "plan --method lora --model wan-2.1-14b --samples 60 --resolution 480p --on 'an a100'"),
    ("how fast does llama-3.1-8b run on a 4090",
     "plan --model llama-3.1-8b --on 'a 4090' --method inference --users 1"),
    ("tokens per second of llama-3.3-70b on 2 H100 for one user",
     "plan --model llama-3.3-70b --on '2 h100' --users 1 --method inference"),
    ("what's the max number of concurrent requests for llama-3.1-8b on an A10 with 8k context",
     "plan --objective users --model llama-3.1-8b --on 'an a10' --input 7789 "
     "--prefix-hits 90% --method inference"),
    ("longest context of qwen3 32b in int4 on a 4090", "estimate --model qwen3-32b --quantization int4 --on 'a 4090' "
     "--method inference --max sequence"),
    ("summarize 10000 documents with llama-3.1-8b in 2 minutes",
     "plan --model llama-3.1-8b --documents 10000 --deadline '2 minutes'"),
    ("serve deepseek r1 with sglang, 2k tokens in 300 out, 1M requests a day",
     "plan --model deepseek-r1 --engine sglang --input 2k --output 300 --rate '1M requests/day' --method inference"),
    ("grpo on qwen2.5-7b with 8xH100, 7.5k prompts, 8 generations each",
     "plan --method grpo --model qwen2.5-7b --on 8xh100 --samples 7.5k --samples-per-prompt 8"),
    ("grpo qwen2.5-7b with 1024 rollouts a step on h100",
     "plan --method grpo --model qwen2.5-7b --prompts 128 --on h100"),
    ("what batch size can I use for llama 3.1 8b lora on a 24gb card at 2048 tokens",
     "estimate --max micro-batch --model llama-3.1-8b --method lora --on 'a 24gb' --seq-len 2048"),
    ("buy 4 L40S for serving qwen3 14b to 100 users for 2 years",
     "plan --on '4 l40s' --model qwen3-14b --terms buy,on-demand --users 100 --years 2 --method inference"),
    ("serve flux schnell to 50 users, one image a minute each",
     "plan --model flux-schnell --rate '50 image/minute' --method inference"),
    ("pretrain a 30b moe with 3b active on 5T tokens with 512 h200",
     "plan --method pretrain --model qwen3-30b-a3b --on '512 h200' --tokens 5T"),
    ("train 70b on 5T tokens this year with 128 h100",
     "plan --model 70b --tokens 5T --deadline 'this year' --on '128 h100'"),
    ("speed of llama 3.3 70b q4 on 2x 3090 with llama.cpp",
     "plan --model llama-3.3-70b-q4 --on '2x 3090' --engine llama.cpp --method inference --users 1"),
    ("summarize 3 million articles of 2k tokens with qwen3 8b over the weekend",
     "plan --model qwen3-8b --documents 3M --input 2k --deadline 2d"),
    ("ZeRO-3 13b full finetune on 8 V100 32gb, does it fit",
     "estimate --layout zero=3 --method full-finetune --on '8 v100 32gb' --model 13b"),
    ("throughput of qwen2.5 72b awq on 4x A10G",
     "plan --model qwen2.5-72b-awq --on '4x a10g' --method inference --users 1"),
    ("grpo qwen2.5 14b on 2 nodes of h100, 1000 steps, 4k response",
     "plan --method grpo --model qwen2.5-14b --on '2 nodes of h100' --steps 1000 --output 4k"),
    ("my slurm cluster has 20 nodes with 4 a100 40gb, pretrain 7b on 140B tokens",
     "plan --own '20 nodes with 4 a100 40gb' --method pretrain --model 7b --tokens 140B"),
    ("is an h200 better than an h100 for llama 70b at 3 requests per second",
     "compare --on h200,h100 --model llama-70b --rate '3 requests/second' --method inference"),
    ("what can I serve for 2000 dollars a month with llama 3.3 70b",
     "plan --model llama-3.3-70b --budget '2000 USD/month' --method inference --objective users"),
    ("serve llama 3.1 8b to 20k daily users, 12 requests each, first token under 1 s",
     "plan --model llama-3.1-8b --daily-users 20k --requests-per-user 12 --ttft '1 s' --method inference"),
    ("compare h100 vs b200 for llama 70b training",
     "compare --on h100,b200 --model llama-70b --tokens chinchilla"),
    ("our own 4x L40S or pay for H100s for llama 3.3 70b, 20k requests a day, 1.5k in 300 out",
     "compare --model llama-3.3-70b --own '4x l40s' --on h100s --rate '20k requests/day' --input 1.5k --output 300 "
     "--method inference"),
    ("GRPO Qwen3-14B with 32 H100, 16 generations per prompt, 8k response length, 500 steps: time and cost",
     "plan --method grpo --model qwen3-14b --on '32 h100' --samples-per-prompt 16 --output 8k --steps 500"),
    ("max batch size for lora on mistral 7b with seq 4096 on a single A6000",
     "estimate --max micro-batch --method lora --model mistral-7b --seq-len 4096 --on 'a single a6000'"),
    ("H100 PCIe or SXM for inference of Qwen 32B?",
     "compare --on 'h100 pcie,h100 sxm' --model qwen-32b --documents 1M"),
    ("cost of a 24/7 endpoint for mistral small with 99.9% uptime, 2 rps",
     "plan --model mistral-small-3.1-24b --spare-replicas 1 --rate '2 rps' --method inference"),
    ("energy use and power draw of training llama 3.1 8b on 1T tokens on 128 H100s",
     "plan --model llama-3.1-8b --on '128 h100s' --tokens 1T"),
    ("embed 50M docs of 400 tokens with qwen2.5 0.5b",
     "plan --model qwen2.5-0.5b --documents 50M --input 400 --output 0"),
    ("our team trains a 13B on 200B tokens with 8 DGX H100", "plan --model 13b --tokens 200B --own '8 dgx h100'"),
    ("can i run gpt-oss 120b on one A100 80 gig", "plan --model gpt-oss-120b --on 'one a100 80gb' --method inference"),
    ("how many tokens per second would I get from llama 3.1 8b on a single 4090",
     "plan --model llama-3.1-8b --on 'a single 4090' --users 1 --method inference"),
    ("lora of gemma 3 27b on 20,000 examples, 1k tokens each, 3 epochs, how long on a single H100",
     "plan --method lora --model gemma-3-27b --on 'a single h100' --samples 20,000 --mean-length 1k --epochs 3"),
    ("summarize a quarter million documents overnight, about 6 thousand tokens each and 300 words out, with qwen3 32b, "
     "done in 10 hours", "plan --model qwen3-32b --documents 250k --input 6000 --output 399 --deadline '10 hours'"),
    ("how many gpus to make 2000 five second 720p clips a day with wan 2.1 14b",
     "plan --resolution 720p --model wan-2.1-14b --frames 81 --rate '2000 clips/day' --method inference"),
    ("how many users can one NVL72 rack serve on deepseek r1 at 30 tokens per second per user",
     "plan --objective users --on 'one nvl72' --model deepseek-r1 --tpot '30 tokens/s' --method inference"),
    ("I've got 20k dollars. how big a model can I pretrain from scratch on chinchilla optimal tokens?",
     "plan --method pretrain --tokens chinchilla --budget '20k USD'"),
    ("how much memory do i need to serve kimi k2 with 128k context for 10 users",
     "plan --model kimi-k2 --users 10 --input 127789 --prefix-hits 90% --method inference"),
    ("cheapest gpu to serve whisper large turbo live for 300 simultaneous calls",
     "plan --model whisper-large-v3-turbo --rate '10 requests/s' --method inference"),
    ("transcribe 100,000 hours of audio with whisper large v3 in two weeks",
     "plan --model whisper-large-v3 --documents 12000000 --deadline '2 weeks'"),
    ("how many L4s for 1,200 calls an hour of 6 minutes each on whisper large v3",
     "plan --on l4s --model whisper-large-v3 --rate '14400 requests/hour' --method inference"),
    ("serve llama 3.1 8b on cpu or a T4, 2 users, 10 tokens per second per user, whats cheapest per month",
     "plan --model llama-3.1-8b --on 'a t4' --users 2 --tpot '10 tokens/s' --method inference"),
    ("serve mixtral 8x7b for 5000 daily users, each sends about 12 messages a day, first token in under half a second",
     "plan --model mixtral-8x7b --ttft '0.5 second' --daily-users 5000 --requests-per-user 12 --method inference"),
    ("chatbot on llama 3.3 70b, 12k token prompts, 400 token answers, 5 requests per second, answer starts within "
     "2 seconds", "plan --model llama-3.3-70b --input 12k --output 400 --rate '5 requests/second' --ttft '2 seconds' "
     "--method inference"),
    ("why not use L40S instead of H100 for serving llama 3.1 8b at 20 requests a second",
     "explain --model llama-3.1-8b --rate '20 requests/second' --why-not gpu=l40s --on l40s,h100 --method inference"),
    ("is it cheaper to reserve 64 H100s for a year or go on demand if I use them about 40% of the time",
     "compare --terms reserved-1y,reserved-3y,on-demand --on '64 h100s' --years 1 --utilization 40%"),
    ("100k daily users, each does 5 chats a day of 3 turns, on gpt-oss 20b, what do I pay per month",
     "plan --model gpt-oss-20b --daily-users 100k --requests-per-user 15 --method inference"),
    ("sdxl on a 3060 12gb, how many images an hour", "estimate --model sdxl --on 'a 3060 12gb' --method inference"),
    ("hunyuan video, one 5 second clip at 720p, how many minutes on an H100 and what does each clip cost",
     "plan --model hunyuan-video --resolution 720p --on 'an h100' --frames 121 --samples 1 --method inference"),
    ("flux dev at 1 image every 2 seconds, how many 4090s",
     "plan --model flux-dev --on 4090s --rate '0.5 image/seconds' --method inference"),
    ("pretrain a 400b moe with 17b active on 15T tokens with 2048 B200s, how many days",
     "plan --method pretrain --model llama-4-maverick --on '2048 b200s' --tokens 15T"),
    ("a 3b param model on half a trillion tokens, which gpus and what will it run us", "plan --model 3b --tokens 500B"),
    ("full finetune of mistral 7b on 4 A100s with 250k conversations averaging 900 tokens",
     "plan --method full-finetune --model mistral-7b --on '4 a100s' --samples 250k --mean-length 900"),
    ("is it cheaper to reserve 16 H100s for a year or pay on demand if we only use them 10 hours a day",
     "compare --terms reserved-1y,reserved-3y,on-demand --on '16 h100s' --years 1 --utilization 41.67%"),
    ("my 2 nodes of 8 A100 40GB: longest sequence I can train a 13b with",
     "estimate --method pretrain --on '2 nodes of 8 a100 40gb' --model 13b --max sequence"),
    ("lora on llama 3.1 8b with batch 4 and seq 2048",
     "plan --method lora --model llama-3.1-8b --global-batch 4 --seq-len 2048"),
    ("serve qwen coder 480b to 500 employees, 12 messages a day each", "plan --model qwen3-coder-480b-a35b "
     "--daily-users 500 --requests-per-user 12 --method inference"),
    ("give me the cheapest setup to embed 2 billion tokens with bge large in one day",
     "plan --model bge-large --deadline '1 day' --input 512 --documents 3906250 --output 0"),
    ("how many hours to train llama 3.1 8b on 15 trillion tokens with 16 thousand H100s",
     "plan --model llama-3.1-8b --on '16000 h100s' --tokens 15T"),
    ("is a 5090 faster than a 4090 for sdxl", "compare --on 'a 5090,a 4090' --model sdxl --method inference"),
    ("cost to caption 5 million images with qwen2.5 vl 7b over a weekend",
     "plan --model qwen2.5-vl-7b --documents 5M --images-per-request 1 --deadline 2d"),
    ("how long does one grpo step of qwen2.5 32b take on 32 H200s with 128 prompts and 8 samples each",
     "plan --method grpo --model qwen2.5-32b --on '32 h200s' --prompts 128 --samples-per-prompt 8"),
    ("how much does a million tokens of gpt-oss 120b cost me if I host it on my own 8xH100",
     "plan --model gpt-oss-120b --own 8xh100 --documents 1M"),
    ("video startup: 500 ltx video clips an hour, 5 seconds each, how many H100s",
     "plan --model ltx-video --on h100s --rate '500 clips/hour' --frames 121 --method inference"),
    ("pretrain 1.5b from scratch on 30B tokens, I have 8 4090s and a month",
     "plan --method pretrain --own '8 4090s' --model 1.5b --tokens 30B --deadline '1 month'"),
    ("how long to fine tune whisper large v3 on 1,000 hours of audio with one A100",
     "plan --model whisper-large-v3 --on 'one a100' --audio 30s --samples 120000"),
    ("how many concurrent chats can 2 L40S hold with mistral small at 8k context each", "plan --objective users --on "
     "'2 l40s' --model mistral-small-3.1-24b --input 7789 --prefix-hits 90% --method inference"),
    ("Not LoRA, full finetuning: mistral 7b, 120k samples with avg. 900 tokens, 3 epochs, on 4x A100 80GB",
     "plan --method full-finetuning --model mistral-7b --mean-length '900 tokens' --on '4x a100 80gb' --samples 120k "
     "--epochs 3"),
    ("finetune llama 3.1 8b on 100M tokens, no lora", "plan --model llama-3.1-8b --method full --tokens 100M"),
    ("sft llama 3.1 8b on 50k samples, avg 600 tokens, max 4096", "plan --method sft --model llama-3.1-8b "
     "--mean-length '600 tokens' --samples 50k --seq-len 4096"),
    ("mean prompt 1800 tokens (max 8192), output 350, 10 rps qwen3 32b", "plan --input '1800 tokens' --output 350 "
     "--model qwen3-32b --rate '10 rps' --max-model-len 8542 --method inference"),
    ("users are only active from 9 to 18 on weekdays, 400 at peak, llama 3.1 70B, 2s to first token",
     "plan --day 9h-18h --model llama-3.1-70b --users 400 --ttft '2 s'"),
    ("Users: 400; prompt: 2k; answer: 300; model Qwen3 14B",
     "plan --input 2k --model qwen3-14b --users 400 --output 300 --method inference"),
    ("2,5 Mrd. Tokens, Llama 3 8B full fine tuning, 8xH100, how many hours",
     "plan --model llama-3-8b --method full-fine-tuning --on 8xh100 --tokens 2.5B"),
    ("have 8 own RTX 3090 at 0,35 EUR/kWh, qlora of 70B over 20M tokens",
     "plan --own '8 rtx 3090' --electricity '0.35 eur/kWh' --method qlora --model 70b --tokens 20M"),
    ("2 old V100 32GB for lora 7B 10M tokens", "plan --on '2 v100 32gb' --method lora --model 7b --tokens 10M"),
    ("train 7b on 1T tokens on 256 H100 or on 128?", "compare --on '256 h100,128 h100' --model 7b --tokens 1T"),
    ("200ms per token? no wait, 20ms per token, for 50 req/s of codellama 34b",
     "plan --model codellama-34b --tpot '20 ms' --rate '50 requests/s' --method inference"),
    ("serve 8b to 10 users, sorry, 20 users", "plan --model 8b --users 20 --method inference"),
    ("spot is preempted every 3 hours, is it worth it for finetuning 8B on 500M tokens",
     "plan --terms spot --model 8b --tokens 500M --method full"),
    ("how many epochs of a 10B token dataset can I do with a 1B model on 8xA100 in 24h?",
     "plan --on 8xa100 --tokens 10B --model 1b --objective time"),
    ("how many tokens can I train in 30 days with a 7b on 64 H100", "estimate --on '64 h100' --model 7b "
     "--method pretrain"),
    ("how often should I checkpoint a 70B run on 512 H100?",
     "plan --on '512 h100' --model 70b --method pretrain --tokens chinchilla"),
    ("generate 100 hours of music with ace-step on a 4090",
     "plan --model ace-step --on 'a 4090' --samples 1500 --method inference"),
]


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


def test_hardware_that_is_not_modeled_is_refused_with_the_question_that_works() -> None:
    with pytest.raises(InputError, match=r"Apple silicon.*planner plan .*--on dgx-spark .*asks about that"):
        spoken(["how many users can a Mac Studio with 512GB handle on deepseek v3 at 4 bit"], CATALOG)


def test_what_training_costs_is_asked_of_an_amount() -> None:
    """It was read as what a million documents cost to answer."""
    with pytest.raises(InputError, match="depends on how much"):
        spoken(["how", "much", "does", "it", "cost", "to", "train", "llama-3.1-8b"], CATALOG)
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
