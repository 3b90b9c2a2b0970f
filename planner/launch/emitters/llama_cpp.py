"""llama.cpp: `llama-server` for each kind of replica, by the names of its options (tools/server/README.md)."""

from __future__ import annotations

from collections.abc import Sequence

from planner.launch.axes import No, Settings, TableOf, only
from planner.launch.emitter import ServiceEmitter
from planner.launch.program import Program
from planner.launch.routers import NGINX
from planner.launch.served import EngineGroup
from planner.launch.serving import RESULT, Command, any_number, load, program_of

MOST = 256
"""Requests at once: LLAMA_MAX_SEQ (src/llama-cparams.h)."""
LOGICAL = 2048
"""Its own batch that is cut into those of the GPU (--batch-size)."""
_CACHES = {"auto": "f16", "bf16": "bf16", "int8": "q8_0"}


def _split(served: EngineGroup) -> Settings | No:
    if served.nodes > 1:
        return No(f"{served.gpus} GPUs on {served.nodes} nodes (a replica is on one)", {"pp": served.node.gpus})
    if served.tp > 1 and served.pp > 1:
        return No(f"{served.tp} with {served.pp} stages (it splits layers or matrices, not both)", {"pp": 1})
    mode = "tensor" if served.tp > 1 else "layer" if served.pp > 1 else "none"
    if mode == "none":
        return {"split-mode": mode}
    # its own memory fit is for other modes, and would put fewer layers on the GPUs
    return {"split-mode": mode, "tensor-split": ",".join(["1"] * served.gpus)}


def _slots(served: EngineGroup) -> Settings | No:
    if served.sequences > MOST:
        return No(f"{served.sequences} (it has at most {MOST})", {"max_sequences": MOST})
    return {"parallel": served.sequences}


def _context(served: EngineGroup) -> Settings:
    """Every request has the longest context for itself where that fits, else all share what the plan has."""
    whole = served.sequences * served.longest
    if whole <= served.serving.kv_tokens:
        return {"ctx-size": whole, "no-kv-unified": True}
    return {"ctx-size": max(served.serving.kv_tokens, served.longest), "kv-unified": True}


def _cache(served: EngineGroup) -> Settings | No:
    name = str(served.value("kv_cache"))
    if name not in _CACHES:
        return No(f"{name} (it has {', '.join(_CACHES)})", {"kv_cache": "int8"})
    if name == "int8" and served.tp > 1:
        return No("int8 with matrices split over GPUs (only where layers are)", {"kv_cache": "auto"})
    return {"cache-type-k": _CACHES[name], "cache-type-v": _CACHES[name]}


def _drafts(served: EngineGroup) -> Settings:
    count = served.serving.drafts
    return {"spec-type": "ngram-simple", "spec-ngram-simple-size-m": count} if count else {}


TABLE: TableOf[EngineGroup] = {
    ("candidate", "tp", "pp"): _split,
    ("precision",): lambda s: {},
    ("dp",): only("dp", 1, reason="it has no copies of attention in a replica", instead={"dp": 1}),
    ("ep", "expert_tp"): lambda s: {} if s.value("ep") == 1 else No(
        f"{s.value('ep')} (experts are where their layer is)", {"ep": 1}),
    ("replicas",): lambda s: {},
    ("role",): only("role", "whole", reason="one server does both", instead={"disaggregated": "no"}),
    ("answers",): lambda s: {} if s.value("answers") == "tokens" else {"embedding": True},
    ("prompts",): any_number,
    ("by_hour",): any_number,
    ("memory_fraction",): only("memory_fraction", 1.0, reason="it takes what context and weights need",
                                 instead={"engine": "llama-cpp"}),
    ("max_sequences",): _slots,
    ("max_batched_tokens",): lambda s: {"ubatch-size": s.tokens, "batch-size": max(LOGICAL, s.tokens)},
    ("prefill_delay",): only("prefill_delay", None, reason="it has no copies of attention",
                             instead={"prefill_delay": 0}),
    ("max_model_len",): _context,
    ("kv_cache",): _cache,
    ("drafts",): _drafts,
    ("prefix_cache",): lambda s: {"cache-prompt": True},
    ("adapters", "lora_rank"): lambda s: {} if s.serving.adapters is None else No(
        f"{s.serving.adapters.count} (its adapters change the whole server)", {"adapters": 0}),
}
_FIXED = "--n-gpu-layers all --fit off --flash-attn on --cont-batching --metrics"


def _bench(served: EngineGroup, prompt: int, answer: int, rate: float | None) -> str:
    return ('exec vllm bench serve --backend openai --host "${1:-127.0.0.1}" --port "$PORT" --model "$NAME" '
            f"--tokenizer {served.checkpoint} --dataset-name random --random-input-len {prompt} --random-output-len "
            f"{answer} --ignore-eos {load(served, rate)} --save-result --result-filename {RESULT}")


def emit(served: Sequence[EngineGroup]) -> Program:
    """Return the scripts that serve with llama.cpp."""
    return program_of(served, TABLE, Command(
        'llama-server --model "$MODEL"', f'--alias "$NAME" --host 0.0.0.0 --port "$port" {_FIXED}', (), NGINX,
        _bench, published=False, model="GGUF file, the first where there are several: `hf download REPO FILE "
        "--local-dir .`.", lines=lambda one: (
            "# where its image has it, with its libraries",
            '[[ ! -x /app/llama-server ]] || export PATH="/app:$PATH" '
            'LD_LIBRARY_PATH="/app${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"')))


EMITTER = ServiceEmitter("llama-cpp", TABLE, emit)
