"""The kinds of questions that are drawn, each by what it means."""

from __future__ import annotations

from tests.cli.wordings import GPUS, MODELS, PICTURES, SIZES, Drawing, Question


def _pretrain(draw: Drawing) -> Question:
    model = draw.model({**SIZES, "llama-3.1-8b": MODELS["llama-3.1-8b"]})
    tokens = draw.text_tokens()
    verb = draw.says("method", "pretrain", "pretrain", "pre-train", "Pretrain", "train from scratch")
    action = f"{verb} {model} {draw.one('on', 'with', 'for')} {tokens}"
    draw.hardware("hardware", "h100-sxm", "a100-sxm-80gb", "h200-sxm", counts=(8, 16))
    if draw.random.random() < 0.5:
        draw.days()
    return draw.question(draw.one("", "cost", "duration", "want"), action)


def _tune(draw: Drawing) -> Question:
    model = draw.model(MODELS)
    method, *ways = draw.random.choice((
        ("lora", "LoRA finetune {}", "fine-tune {} with LoRA", "lora fine-tuning of {}", "finetune {} using LoRA",
         "lora {}", "do a LoRA finetune of {}", "fine tune {} (LoRA)", "train a LoRA on {}"),
        ("qlora", "QLoRA {}", "fine-tune {} with QLoRA", "qlora finetuning of {}", "fine tune {} using qlora",
         "finetune {} (QLoRA)", "run QLoRA on {}"),
        ("full", "full fine-tune {}", "full finetuning of {}", "fully fine-tune {}", "full-parameter fine-tuning of {}",
         "full finetune {}", "do a full fine tune of {}", "full SFT of {}")))
    action = draw.says("method", method, *ways).format(model)
    draw.hardware("hardware", "h100-sxm", "a100-sxm-80gb", "rtx-4090", "l40s", "a100-sxm-40gb")
    draw.data()
    draw.extras()
    nouns = action.split()[0].lower() in ("lora", "qlora", "full-parameter") or "ing of" in action or "SFT of" in action
    return draw.question("" if nouns else draw.one("", "cost", "duration", "want"), action)


def _serve(draw: Drawing) -> Question:
    action = draw.one("serve {}", "host {}", "deploy {}", "run {}", "serve {} with vLLM", "run inference with {}")
    action = action.format(draw.model(MODELS))
    draw.means["method"] = "inference"
    draw.load()
    draw.format()
    if draw.random.random() < 0.5:
        draw.hardware("hardware", "h100-sxm", "a100-sxm-80gb", "l40s", "l4", "h200-sxm")
    return draw.question(draw.one("", "cost", "want", "gpus") if "hardware" not in draw.means else draw.one(
        "", "cost", "want"), action)


def _reinforce(draw: Drawing) -> Question:
    model = draw.model({name: MODELS[name] for name in ("qwen2.5-7b", "llama-3.1-8b", "qwen3-32b")})
    action = draw.says("method", "grpo", "GRPO {}", "GRPO on {}", "run GRPO on {}", "grpo training of {}",
                       "train {} with GRPO", "RL (GRPO) on {}").format(model)
    draw.hardware("hardware", "h100-sxm", "a100-sxm-80gb", counts=(8,))
    draw.adds("prompts", 128.0, "128 prompts per step", "128 prompts a step", "128 prompts/step",
              "128 prompts each step")
    draw.adds("samples-per-prompt", 8.0, "8 samples per prompt", "8 rollouts per prompt", "8 responses per prompt",
              "group size 8", "8 generations each", "8 completions per prompt", "num_generations=8",
              "8 answers per prompt")
    draw.adds("steps", 200.0, "200 steps", "for 200 steps", "200 GRPO steps", "two hundred steps", "200 training steps")
    if draw.random.random() < 0.5:
        draw.adds("output", 2000.0, "responses of 2000 tokens", "2k response tokens", "answers of 2k tokens",
                  "2000 token responses", "response length 2000", "avg response length 2000 tokens")
    return draw.question("", action)


def _fit(draw: Drawing) -> Question:
    model, fit = draw.model(MODELS), "{} {} {}"
    gpu = draw.random.choice(("h100-sxm", "a100-sxm-80gb", "a100-sxm-40gb", "rtx-4090", "l40s"))
    where = draw.gpus("hardware", gpu, draw.random.choice((1, 2, 4)))
    if draw.random.random() < 0.5:
        draw.means["method"] = "inference"
        fit = draw.one("can I run {} on {}", "can {1} run {0}", "will {1} run {0}", "Is it possible to run {} on {}",
                       "running {} on {}: possible", "is {1} enough to serve {0}", "can we host {} on {}")
        draw.format()
    else:
        method, *ways = draw.random.choice((("lora", "LoRA", "lora"), ("qlora", "QLoRA", "qlora"),
                                            ("full", "full fine-tuning", "full finetuning", "full fine tuning")))
        how = draw.says("method", method, *ways)
        fit = draw.one(f"does {how} of {{}} fit on {{}}", f"is {{1}} enough for {how} of {{0}}",
                       f"will {how} of {{}} fit on {{}}", f"can I do {how} of {{}} on {{}}",
                       f"{how} of {{}} on {{}}, does it fit",
                       f"is it possible to do {how} with {{}} on {{}}", f"{{1}}, {how} of {{0}}: does it fit",
                       f"enough VRAM for {how} of {{}} on {{}}")
    if draw.random.random() < 0.3:
        draw.adds("seq-len", 8192.0, "with 8k context", "8192 context", "at 8k context", "with a context of 8192",
                  "at sequence length 8192", "8K context length", "ctx 8192", "context window of 8k")
    return draw.question("", fit.format(model, where))


def _compare(draw: Drawing) -> Question:
    first, second = draw.random.sample(("h100-sxm", "a100-sxm-80gb", "h200-sxm", "l40s"), 2)
    names = [draw.one(*(name for name in GPUS[gpu] if "(" not in name)) for gpu in (first, second)]
    draw.means["compared"] = frozenset((first, second))
    both = draw.one("{} vs {}", "{} or {}", "{} versus {}", "{} vs. {}", "{} compared to {}").format(*names)
    lead = draw.one("{}, which is cheaper", "{}", "which is cheaper, {}", "compare {}", "is {} better",
                    "{} - which one")
    lead = lead.format(both) if "compare" not in lead or "compared" not in both else both
    work = draw.one("to serve {}", "for serving {}", "for inference of {}").format(draw.model(MODELS))
    draw.means["method"] = "inference"
    draw.adds("rate", 5.0, "at 5 requests/s", "at 5 rps", "with 5 requests per second", "at 5 QPS")
    return draw.question("", f"{lead} {work}")


def _rent_or_buy(draw: Drawing) -> Question:
    where = draw.gpus("hardware", draw.one("h100-sxm", "a100-sxm-80gb", "l40s"), 8)
    ask = draw.one("rent or buy {}", "should I rent or buy {}", "buy or rent {}", "is it cheaper to buy or rent {}",
                   "renting vs buying {}", "should we buy or lease {}", "rent vs buy {}",
                   "is it better to rent or to buy "
                   "{}").format(where)
    draw.adds("years", 3.0, "for 3 years", "over 3 years", "for three years", "for 36 months", "over a 3 year period")
    if draw.random.random() < 0.6:
        draw.adds("utilization", 0.6, "at 60% utilization", "60% utilisation", "with 60 percent utilization",
                  "used 60% of the time", "at 60 % utilization", "utilization of 60%", "60% load")
    return draw.question("", ask)


def _largest(draw: Drawing) -> Question:
    where = draw.gpus("hardware", draw.one("h100-sxm", "rtx-4090", "a100-sxm-80gb"), draw.random.choice((1, 2, 4)))
    method, *ways = draw.random.choice((
        ("qlora", "qlora", "QLoRA", "fine-tune with QLoRA"), ("lora", "lora", "fine-tune with LoRA"),
        ("full", "fully fine-tune", "full finetune"), ("inference", "run", "serve", "host")))
    how = draw.says("method", method, *ways)
    draw.means["verb"] = "plan"
    return draw.question("", draw.one("what is the largest model I can {} on {}", "biggest model I can {} on {}",
                                      "largest model to {} on {}", "How big a model can I {} on {}",
                                      "what's the biggest model that I can {} with {}").format(how, where))


def _pictures(draw: Drawing) -> Question:
    if draw.random.random() < 0.5:
        name = draw.model(PICTURES)
        draw.means["method"] = "lora"
        action = draw.one("train a {} LoRA", "{} LoRA training", "LoRA for {}", "train a LoRA for {}",
                          "finetune {} with "
                          "LoRA", "{} lora").format(name)
        draw.adds("samples", 40.0, "on 40 images", "with 40 images", "40 pictures", "using 40 photos",
                  "with forty images",
                  "40 training images", "a dataset of 40 images")
        draw.adds("steps", 2000.0, "2000 steps", "for 2,000 steps", "2k steps", "steps=2000", "2000 training steps")
    else:
        name = draw.model(PICTURES)
        draw.means["method"] = "inference"
        action = draw.one("generate 10,000 images with {}", "generate 10k images with {}", "make 10000 images using {}",
                          "10k images with {}", "create ten thousand pictures with {}").format(name)
        draw.means["samples"] = 10000.0
    if draw.random.random() < 0.5:
        draw.means["resolution"] = "1024x1024"
        draw.clauses.append(draw.one("1024x1024", "at 1024x1024", "1024 x 1024", "resolution 1024", "at 1024 px",
                                     "1024\N{MULTIPLICATION SIGN}1024 pixels", "1024 resolution", "at 1024 resolution",
                                     "in 1024x1024"))
    draw.hardware("hardware", "rtx-4090", "l40s", "h100-sxm", counts=(1,))
    return draw.question(draw.one("", "duration") if action.startswith(("train", "gen", "make", "create",
                                                                        "fine")) else "",
                         action)


KINDS = (_pretrain, _tune, _serve, _reinforce, _fit, _compare, _rent_or_buy, _largest, _pictures)


def question(seed: int) -> Question:
    """Return the question of a seed."""
    draw = Drawing(seed)
    return KINDS[seed % len(KINDS)](draw)


