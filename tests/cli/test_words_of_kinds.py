"""Each kind of work is told in its own words: images have no first token, and a batch ends."""

from __future__ import annotations

import json

import pytest

SDXL = ("--model", "sdxl", "--on", "l40s-1x")
PRICED = (
    ((*SDXL, "--rate", "0.2"), "USD/1,000 images", "TTFT"),
    ((*SDXL, "--method", "inference", "--samples", "1000"), "USD/1,000 images", "TTFT"),
    (("--model", "llama-3.1-8b", "--documents", "10k", "--input", "500", "--output", "50", "--on", "l40s-1x"),
     "USD/1,000 documents", "TTFT"),
    (("--model", "llama-3.1-8b", "--rate", "1", "--input", "500", "--output", "50", "--on", "l40s-1x"),
     "USD/M output", "1,000"))


@pytest.mark.parametrize(("asked", "said", "never"), PRICED)
def test_a_comparison_says_what_its_costs_are_for(planner, asked, said, never):
    ran = planner("compare", *asked)
    assert ran.code == 0, ran.err
    assert said in ran.out
    assert never not in ran.out


@pytest.mark.parametrize("asked", [(*SDXL, "--rate", "0.2"),
                                   ("--model", "bge-large", "--rate", "9", "--input", "500", "--output", "0",
                                    "--on", "l40s-1x")])
def test_a_service_without_tokens_compares_in_full(planner, asked):
    ran = planner("compare", *asked, "-v")
    assert ran.code == 0, ran.err
    assert "per M tokens" not in " ".join(ran.out.split())
    assert "1,000" in ran.out


RL = ("--model", "qwen2.5-7b", "--method", "ppo")
LENGTHS = ("--input", "512", "--output", "1024")


@pytest.mark.parametrize(("verb", "asked", "said"), [
    ("estimate", (*SDXL[:2], "--node", "l40s-1x", "--method", "lora"), "LoRA training at"),
    ("plan", (*SDXL, "--steps", "100", "--batch", "8"), "100 LoRA training steps of 8 images of 1024x1024"),
    ("plan", (*SDXL, "--steps", "9", "--method", "full"), "9 full training steps of 1 image of 1024x1024"),
    ("estimate", (*RL, *LENGTHS, "--node", "8xh100", "--layout", "tp=4"), "PPO at"),
    ("estimate", (*RL, *LENGTHS, "--node", "8xh100", "--layout", "tp=4"), "on the same GPUs"),
    ("estimate", (*RL, *LENGTHS, "--node", "8xh100", "--layout", "tp=4", "--lora-rank", "8"), "PPO (LoRA) at")])
def test_the_headline_says_what_is_done(planner, verb, asked, said):
    ran = planner(verb, *asked)
    assert ran.code == 0, ran.err
    assert said in " ".join(ran.out.split())


def test_nodes_of_two_types_have_one_price_together(planner):
    ran = planner("plan", *RL, *LENGTHS, "--steps", "500", "--on", "8xh100", "--rollouts-on", "8xl40s", "--json")
    assignment = json.loads(ran.out)["assignments"][0]
    whole = assignment["usd_per_node_hour"] * assignment["nodes"]
    said = " ".join(planner("plan", *RL, *LENGTHS, "--steps", "500", "--on", "8xh100", "--rollouts-on",
                            "8xl40s").out.split())
    assert f"{whole:,.2f} USD/h in all finish 500 PPO steps of 128 prompts x 1 answer" in said
    assert "USD/h per node" not in said
    assert f"on {assignment['rollouts']['gpus']} l40s" in said


def test_states_on_the_host_are_not_on_the_gpu(planner):
    asked = "estimate", *RL, *LENGTHS, "--node", "8xh100", "--json", "--layout"
    out, kept = (json.loads(planner(*asked, f"tp=4,dp=2,swap=0,offload_optimizer={share}").out)["memory"]
                 for share in (1, 0))
    assert out["components"]["optimizer"] == 0 < out["components"]["gradients"]
    assert kept["components"]["optimizer"] > 0
    assert kept["components"]["gradients"] == out["components"]["gradients"]


@pytest.mark.parametrize(("asked", "told"), [
    ((*SDXL, "--users", "9"), "give think, such as 30s"),
    ((*SDXL, "--concurrency", "8"), "write --rate"), ((*SDXL, "--ttft", "2s", "--rate", "1"), "write --e2e"),
    ((*SDXL, "--steps", "9", "--tuning", "full"), "write --method lora")])
def test_a_key_of_another_kind_says_what_to_write(planner, asked, told):
    ran = planner("plan", *asked)
    assert ran.code == 2
    assert told in ran.err


@pytest.mark.parametrize(("name", "steps"), [("flux-schnell", "4 steps of 1 pass"), ("flux-dev", "28 steps of 1 pass"),
                                             ("black-forest-labs/FLUX.1-schnell", "4 steps of 1 pass"),
                                             ("flux.2-klein-4b", "4 steps of 1 pass")])
def test_a_distilled_model_is_run_in_its_own_steps(planner, name, steps):
    ran = planner("estimate", "--model", name, "--method", "inference", "--node", "l40s-1x")
    assert steps in " ".join(ran.out.split()), ran.err


def test_the_mean_length_of_preferences_sets_the_step_without_samples(planner):
    asked = "estimate", "--model", "llama-3.1-8b", "--method", "dpo", "--node", "gh200-96gb-1x", "--json"
    whole, short = (json.loads(planner(*asked, *more).out)["time"]["step_seconds"]
                    for more in ((), ("--mean-length", "600")))
    assert short < whole / 2


def test_a_gpu_without_bf16_runs_images_in_fp16(planner):
    said = (planner("estimate", "--model", "sdxl", "--method", "inference", "--node", node, "--json").out
            for node in ("v100-sxm2-16gb-1x", "l40s-1x"))
    assert [json.loads(each)["layout"]["precision"] for each in said] == ["fp16", "bf16"]
