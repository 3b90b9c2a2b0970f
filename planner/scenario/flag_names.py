"""What people call flags on the command line: other names, switches that set a value, and what to write instead."""

from __future__ import annotations

_ALSO = {
    "mean-length": "mean-tokens tokens-per-sample tokens-per-example sample-length sample-len length mean-len "
                   "avg-length",
    "adapters": "max-loras num-loras loras lora-count num-adapters lora-adapters",
    "seq-len": "ctx-len ctx-length ctx-size context-len context-size num-ctx window-size "
               "model-max-length max-source-length ctx context context-length context-window max-length "
               "max-seq-length max-seq-len seq-length cutoff-len sequence-len block-size seq seqlen sequence",
    "rate": "qps rps requests-per-second request-rate",
    "prompts": "prompts-per-step rollout-batch-size prompt-batch-size prompts-per-batch",
    "on": "hardware cluster gpu gpu-type node instance instance-type machine accelerator card cards device vram "
          "gpu-memory gpu-options hardware-options",
    "lora-rank": "rank lora-r r",
    "lora-targets": "lora-target lora-target-modules target-modules",
    "quantization": "quant quantize gguf bits weight-format weights-format format",
    "precision": "dtype torch-dtype mixed-precision compute-dtype params-dtype param-dtype",
    "objective": "minimize optimize goal sort sort-by order-by rank-by",
    "max-nodes": "nodes num-nodes nnodes num-machines machines",
    "global-batch": "bs batch-size train-batch-size global-batch-size effective-batch-size",
    "per-device-batch": "micro-batch micro-batch-size mbs per-device-train-batch-size per-device-batch-size "
                        "per-gpu-batch-size batch-size-per-gpu batch-per-gpu train-micro-batch-size-per-gpu",
    "grad-accum": "gradient-accumulation grad-accumulation gradient-accumulation-steps accumulation-steps "
                  "grad-accum-steps ga accumulate-grad-batches",
    "optimizer": "optim optimizer-type",
    "arrivals": "arrival-process arrival-pattern",
    "steps": "train-iters max-iters iterations iters max-steps max-train-steps num-steps train-steps training-steps "
             "total-steps",
    "model": "model-path model-name-or-path pretrained repo-id llm checkpoint model-name model-id base-model hf-model "
             "policy policy-model actor actor-model student student-model model-name-hf checkpoint-path",
    "engine": "inference-backend serving-backend runtime backend inference-engine serving-engine rollout-engine "
              "generation-engine",
    "reward-model": "teacher teacher-model",
    "stack": "framework trainer training-framework",
    "own": "have my-gpus owned",
    "documents": "num-prompts batch-requests docs pages",
    "tpot": "itl",
    "e2e": "latency response-time total-latency end-to-end",
    "samples-per-prompt": "n rollout-n n-samples group-size num-generations generations-per-prompt rollouts "
                          "n-rollouts completions-per-prompt",
    "resolution": "image-size img-size res",
    "from": "config config-file from-config",
    "samples": "pairs clips num-samples dataset-size num-examples examples rows generate-images images-to-generate "
               "generate-videos videos-to-generate",
    "images": "images-per-sample num-images",
    "years": "amortize amortization amortized depreciation amortise lifetime",
    "provider": "cloud providers vendor",
    "region": "regions location zone",
    "input": "random-input-len synthetic-input-tokens-mean prompt-input-tokens-mean input-tokens-mean isl-mean "
             "sonnet-input-len tokens-per-doc tokens-per-document tokens-per-request input-tokens input-len "
             "input-length prompt prompt-tokens prompt-length isl",
    "output": "random-output-len sharegpt-output-len custom-output-len hf-output-len output-tokens-mean "
              "prompt-output-tokens-mean osl-mean max-completion-tokens output-tokens output-len output-length "
              "max-new-tokens max-tokens osl",
    "gpus": "num-processes total-gpus num-gpus n-gpus ngpus gpu-count count world-size num-accelerators "
            "accelerator-count num-devices device-count num-cards",
    "method": "adapter finetuning-type train-type tuner-type peft-type task workload algorithm algo",
    "epochs": "num-epochs num-train-epochs",
    "dataset": "data dataset-path data-path train-file training-file",
    "deadline": "time-budget max-duration max-runtime walltime wall-time max-time within by finish-by done-by due "
                "until before",
    "budget": "max-cost max-price cost-limit",
    "users": "num-users concurrent-users",
    "kv-cache": "kv-cache-dtype",
    "memory-fraction": "gpu-memory-utilization mem-fraction-static",
    "prefix-hits": "prefix-cache prefix-hit-rate prefix-cache-hit-rate cache-hit-rate prefix-caching",
    "max-sequences": "max-batch-slots max-concurrent-sequences max-num-seqs max-running-requests",
    "max-batched-tokens": "max-num-batched-tokens chunked-prefill-size",
    "prefill-delay": "prefill-delayer prefill-delayer-max-delay-passes",
    "concurrency": "session-concurrency num-concurrent concurrent-requests max-concurrency",
    "max-power": "power",
    "price": "gpu-price gpu-hour-price price-per-gpu price-per-gpu-hour cost-per-gpu-hour usd-per-gpu-hour gpu-cost "
             "hourly-price",
    "percentile": "latency-percentile slo-percentile",
    "speculative": "spec-decode speculative-decoding draft spec spec-decoding",
    "electricity": "electricity-price electricity-cost power-price power-cost kwh-price price-per-kwh usd-per-kwh "
                   "energy-price"}
CALLED = {said: flag for flag, names in _ALSO.items() for said in names.split()}
"""What people call flags on the command line, with the flag that it is."""
_SPARES = "write --spare-replicas 1 or --spare-nodes 1: what may fail with the latency targets still met"
_NOTHING = "leave it out: it changes neither time, memory nor money"
FILLERS = frozenset(("num", "n", "number", "of", "count", "total", "target", "name", "required", "expected", "desired",
                     "avg", "average", "training", "train", "finetune", "finetuning", "serving", "inference", "type",
                     "the", "my", "max", "maximum", "slo", "sla", "limit", "goal", "time"))
"""Words in the name of a flag that change nothing: --total-tokens, --target-ttft, --num-documents."""
OF_DATA = frozenset(("dataset", "data", "corpus"))
"""Words in the name of a flag that say whose the number is, --dataset-tokens, where they stand before what is counted.
"""
COUNTED = frozenset(("tokens", "samples", "examples", "rows", "epochs"))
FOREIGN = frozenset(("max-total-tokens",))
"""Flags of other programs whose words would mean another of the planner's: the room in SGLang's cache."""
LENGTHS = frozenset(("length", "lengths", "len", "tokens", "token", "toks", "size"))
SIDES = {"input": frozenset(("input", "prompt", "prompts", "question", "query", "in", "context-in", "doc", "document",
                             "article")),
         "output": frozenset(("output", "out", "response", "answer", "reply", "gen", "generation", "generated",
                              "generate", "summary", "completion", "decode"))}
"""Side of a request -> the words that flags of its length begin with: --response-length, --gen-len."""
MEANS = frozenset(("avg", "average", "mean"))
OF_A_SAMPLE = LENGTHS | {"sample", "samples", "example", "examples", "seq", "sequence", "per", "row", "conversation"}
"""Words behind those of a mean in the name of a sample's length: --avg-tokens, --mean-tokens-per-sample."""
SIZES = ("params", "parameters", "model-size", "size")
"""Flags of a model's size, which is a model where none is named."""
IDLE = frozenset((
    "lr", "learning-rate", "lr-scheduler", "lr-scheduler-type", "scheduler", "alpha", "lora-alpha", "beta",
    "dpo-beta", "kl-coef", "kl", "dropout", "lora-dropout", "warmup", "warmup-steps", "warmup-ratio",
    "weight-decay", "wd", "seed", "temperature", "top-p", "top-k", "max-grad-norm", "grad-clip", "clip-grad",
    "adam-beta1", "adam-beta2", "logging-steps", "eval-steps", "save-steps", "output-dir", "run-name", "wandb",
    "report-to", "template", "chat-template", "trust-remote-code", "num-workers", "dataloader-num-workers",
    "save-strategy", "eval-strategy", "port", "served-model-name", "api-key", "hf-token", "tokenizer-mode"))
"""What trainers are told that changes neither time, memory nor money."""
LEFT_OUT = {**dict.fromkeys(IDLE, "it changes neither time, memory nor money"), **dict.fromkeys(
    ("mfu", "model-flops-utilization", "hfu", "efficiency", "gpu-efficiency"),
    "what a GPU reaches is computed from measured runs, and shown"), **dict.fromkeys(
        ("checkpoint-every", "checkpoint-interval", "checkpoint-frequency", "save-every", "save-interval"),
        "the plan chooses how often checkpoints are written"), **dict.fromkeys(
            ("preemption-rate", "interruption-rate", "failure-rate", "mtbf"),
            "how often nodes fail or are taken away is a fact of the catalog"), **dict.fromkeys(
                ("nvlink", "nvswitch", "infiniband", "roce"),
                "how GPUs and nodes are joined is a fact of the node type")}
"""The same, and what is an answer and no question, with why it is left out."""
INSTEAD = {
    **dict.fromkeys(LEFT_OUT, _NOTHING), "mfu": "leave it out: it is computed",
    **dict.fromkeys(("zero", "zero-stage", "recompute", "gradient-checkpointing", "offload"),
                    "the plan chooses it; planner estimate --layout zero=3,recompute=full,offload_optimizer=1 sets it"),
    **dict.fromkeys(("block-swap", "blocks-to-swap", "swap-blocks", "num-blocks-to-swap"),
                    "the plan chooses how many blocks wait on the host; planner estimate --layout "
                    "offload_parameters=0.5 holds half of them there"),
    **dict.fromkeys(("gradient-checkpointing-interval", "checkpointing-interval", "gradient-checkpointing-every"),
                    "the plan chooses it; planner estimate --layout recompute=0.25 is every fourth block of a model of "
                    "images, recompute=mixed every other one"),
    **dict.fromkeys(SIZES, "the model that --model names has its size; without one, --model 13b is a size"),
    **dict.fromkeys(("interconnect", "network", "fabric"), "the node type has its network: planner catalog list nodes"),
    **dict.fromkeys(("tp", "pp", "dp", "ep"), "the plan chooses the layout; planner estimate --layout tp=8 sets it"),
    **dict.fromkeys(("pue", "site-pue", "colocation"), "it is a fact of the site: planner catalog show us-average has "
                    "it, and an entry of yours (--catalogs DIR) replaces it; --electricity 0.08 is the price alone"),
    **dict.fromkeys(("uptime", "availability", "sla", "redundancy"), _SPARES),
    "slo": "write --ttft 2s, --tpot 50ms or --e2e 10s",
    **dict.fromkeys(("no-offload", "without-offload"), "planner plan without --tokens tells the fewest GPUs that "
                    "hold a model with nothing on the host beside those with; planner estimate --layout "
                    "offload_optimizer=0,offload_parameters=0,offload_activations=0 keeps all on the GPUs"),
    **dict.fromkeys(("how-sure", "sure", "probability"), "write --confidence 95%, or --deadline '30d at 90%'; planner "
                    "explain tells how open the choice is"),
    **dict.fromkeys(("tokens-per-second", "tps", "tok-s"), "write --tpot '25 tokens/s' for the pace of one answer, "
                    "--rate for all requests")}
"""Flags of other tools that the planner has not, with what to write."""
DAILY_USERS = {name: time for time, names in {
    "day": "daily-users users-per-day dau daily-active-users active-users-per-day users-a-day",
    "month": "mau monthly-users users-per-month monthly-active-users users-a-month"}.items() for name in names.split()}
"""Flags of how many people come in a time, each of whom asks a few times."""
EACH_USER = tuple(
    f"{noun}-per-{who}{time}" for noun in ("requests", "messages", "queries", "questions", "prompts", "calls")
    for who in ("user", "person") for time in ("", "-per-day", "-a-day", "-daily", "-per-month"))
"""Flags of how often each of them asks."""
SHORT_RATES = {"rpm": "min", "qpm": "min", "rph": "hour", "rpd": "day"}
"""Flags of requests in a time, with the unit that --rate takes."""
ON = {said: axis for axis, names in {
    "vae=tiled": "vae-tiling enable-vae-tiling vae-tiled tiled-vae",
    "offload=sequential": "sequential-cpu-offload enable-sequential-cpu-offload sequential-offload",
    "offload=model": "model-cpu-offload enable-model-cpu-offload model-offload",
    "recompute=full": "gradient-checkpointing activation-checkpointing full-recompute gradient-checkpointing-enable",
    "recompute=selective": "recompute-activations checkpoint-activations selective-recompute",
    "sp=1": "sequence-parallel", "zero=1": "use-distributed-optimizer"}.items()
    for said in names.split()}
"""What people write without a value, with the axis of a layout that it is."""
SWITCHES = {said: setting for setting, names in {
    "--terms=spot": "spot preemptible interruptible", "--terms=on-demand": "on-demand",
    "--terms=reserved-1y,reserved-3y": "reserved",
    "--terms=buy,on-demand": "buy purchase capex rent-or-buy buy-or-rent own-or-rent rent-or-own own-vs-rent "
                             "rent-vs-own rent-vs-buy buy-vs-rent",
    "--tokens=chinchilla": "chinchilla chinchilla-optimal compute-optimal",
    "--objective=largest": "largest biggest largest-model",
    "--objective=cost": "cheapest cost-per-million cost-per-token",
    "--objective=time": "fastest",
    "--step-cache=teacache": "teacache use-teacache enable-teacache",
    "--step-cache=first-block-cache": "first-block-cache fbcache use-fbcache", "--step-cache=cache-dit": "cache-dit",
    "--latents=cached": "cache-latents cached-latents latents-cached cache-latents-to-disk",
    "--policy-lag=1": "async asynchronous one-step-off",
    "--loss=fused": "use-liger-kernel use-liger liger liger-kernel enable-liger-kernel cut-cross-entropy",
    "--method=lora": "use-peft use-lora", "--ema": "use-ema with-ema", "--compile": "torch-compile use-torch-compile",
    "--quantization=nf4": "load-in-4bit", "--quantization=int8": "load-in-8bit",
    "--objective=gpus": "fewest-gpus smallest"}.items() for said in names.split()}
"""What people write without a value, with the flag and value that it is."""
SHORT = {"-m": "--model", "-g": "--on", "-n": "--gpus", "-d": "--dataset", "-t": "--tokens"}
"""Flags of one letter, as other tools have them."""
VERBS = {"plan": "train run finetune fine-tune tune portfolio size capacity cost recommend serve infer inference",
         "compare": "rent buy versus vs",
         "estimate": "fit fits check memory vram speed throughput", "simulate": "replay benchmark bench",
         "catalog": "models gpus hardware prices list"}
"""What people call the verbs."""
MEANT = {name: {key: value} for key, value, names in (
    ("method", "inference", "serve infer inference"), ("method", "full", "finetune tune"),
    ("objective", "largest", "largest")) for name in names.split()}
"""What they say beside the verb, where no value says otherwise."""
