"""vLLM: `vllm serve` for each kind of replica, by the names of its options (vllm/engine/arg_utils.py)."""

from __future__ import annotations

from collections.abc import Sequence

from planner.launch.axes import No, Settings, TableOf, only
from planner.launch.emitter import ServiceEmitter
from planner.launch.program import Program, Variable
from planner.launch.routers import VLLM_ROUTER
from planner.launch.served import EngineGroup
from planner.launch.serving import (
    ADAPTERS,
    CHECKPOINTS,
    NIXL,
    RESULT,
    Command,
    any_number,
    as_json,
    half,
    load,
    program_of,
    with_adapters,
)

_CACHES = {"auto": "auto", "bf16": "bfloat16", "fp8": "fp8"}
_ROLES = {"prefill": "kv_producer", "decode": "kv_consumer"}
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Of adapters, for which it has kernels (vllm/config/lora.py)."""
LOOKUP = 4
"""Longest n-gram of the prompt that is looked up."""


def _format(served: EngineGroup) -> Settings | No:
    name = served.placed.layout.stored
    dtype = half(served)
    if name in ("bf16", *CHECKPOINTS):
        return {"dtype": dtype}
    if name == "fp8":
        return {"dtype": dtype} | ({} if served.published else {"quantization": "fp8"})
    return No(f"{name} ({served.release.package} {served.release.release} has bf16, fp8, {', '.join(CHECKPOINTS)})",
              {"quantization": "fp8"})


def _experts(served: EngineGroup) -> Settings | No:
    if not served.model.mixes_experts:
        return {}
    ep, ranks = served.placed.layout.ep, served.tp * served.dp
    if ep not in (1, ranks) or served.value("expert_tp") != ranks // ep:
        return No(f"{ep} x {served.value('expert_tp')} of {ranks} GPUs (experts are over all GPUs of a stage, or split "
                  "by all)", {"ep": ranks})
    return {"enable-expert-parallel": True} if ep > 1 else {}


def _stages(served: EngineGroup) -> Settings | No:
    if served.pp > 1 and not served.engine.stages_of(served.serving.role):
        return No(f"{served.pp} of {served.serving.role} (its connector takes keys and values of whole models)",
                  {"pp": 1})
    return {"pipeline-parallel-size": served.pp}


def _role(served: EngineGroup) -> Settings:
    role = served.serving.role
    return {} if role == "whole" else {"kv-transfer-config": as_json(
        {"kv_connector": "NixlConnector", "kv_role": _ROLES[role]})}


def _adapters(served: EngineGroup) -> Settings | No:
    held = served.serving.adapters
    if held is None:
        return {}
    if held.rank not in _RANKS:
        above = next((rank for rank in _RANKS if rank >= held.rank), _RANKS[-1])
        return No(f"rank {held.rank} (it has {', '.join(map(str, _RANKS))})", {"lora_rank": above})
    return {"enable-lora": True, "max-loras": held.count, "max-cpu-loras": held.count, "max-lora-rank": held.rank}


TABLE: TableOf[EngineGroup] = {
    ("candidate",): lambda s: {},
    ("precision",): _format,
    ("tp",): lambda s: {"tensor-parallel-size": s.tp},
    ("pp",): _stages,
    ("dp",): lambda s: {"data-parallel-size": s.dp},
    ("ep", "expert_tp"): _experts,
    ("replicas",): lambda s: {},
    ("role",): _role,
    ("answers",): lambda s: {} if s.value("answers") == "tokens" else {"runner": "pooling"},
    ("prompts",): any_number,
    ("by_hour",): any_number,
    ("memory_fraction",): lambda s: {"gpu-memory-utilization": s.fraction},
    ("max_sequences",): lambda s: {"max-num-seqs": s.sequences},
    ("max_batched_tokens",): lambda s: {"max-num-batched-tokens": s.tokens},
    ("prefill_delay",): only("prefill_delay", None, reason="its ranks take prompts as they come",
                             instead={"prefill_delay": 0}),
    ("max_model_len",): lambda s: {"max-model-len": s.longest},
    ("kv_cache",): lambda s: {"kv-cache-dtype": _CACHES[str(s.value("kv_cache"))]} if s.value(
        "kv_cache") in _CACHES else No(f"{s.value('kv_cache')} (it has {', '.join(_CACHES)})", {"kv_cache": "fp8"}),
    ("drafts",): lambda s: {"speculative-config": as_json(
        {"method": "ngram", "num_speculative_tokens": s.serving.drafts, "prompt_lookup_max": LOOKUP})}
    if s.serving.drafts else {},
    ("prefix_cache",): lambda s: {"enable-prefix-caching": True},
    ("adapters", "lora_rank"): _adapters,
}

SEVERAL_NODES = (
    'RUN+=(--nnodes "$NNODES" --node-rank "${NODE_RANK:?}" --master-addr "${MASTER_ADDR:?}"'
    ' --master-port "${MASTER_PORT:?}" --data-parallel-rpc-port "$((MASTER_PORT + 1))")',
    'if [[ "$NODE_RANK" != 0 ]]; then', "  RUN+=(--headless)", "fi")


def _lines(served: EngineGroup) -> list[str]:
    lines = []
    if served.serving.role != "whole":
        lines += ['export VLLM_NIXL_SIDE_CHANNEL_HOST="${VLLM_NIXL_SIDE_CHANNEL_HOST:-$(hostname -I | cut -d" " -f1)}"',
                  f'export VLLM_NIXL_SIDE_CHANNEL_PORT="$((5600 + {SIDE_CHANNELS} * ${{REPLICA:-0}}))"']
    if served.serving.drafts:
        count = served.serving.drafts
        lines += ['if [[ -n "$DRAFT_MODEL" ]]; then', f'  RUN+=(--speculative-config "{{\\"model\\":\\"$DRAFT_MODEL\\",'
                  f'\\"num_speculative_tokens\\":{count}}}")', "fi"]
    return lines + with_adapters(served, "--lora-modules")


SIDE_CHANNELS = 64
"""Ports of one replica's connectors: one for each copy of attention (VLLM_NIXL_SIDE_CHANNEL_PORT + rank)."""


def _bench(served: EngineGroup, prompt: int, answer: int, rate: float | None) -> str:
    return ('exec vllm bench serve --backend vllm --host "${1:-127.0.0.1}" --port "$PORT" --model "$MODEL" '
            f'--served-model-name "$NAME" --dataset-name random --random-input-len {prompt} --random-output-len '
            f"{answer} --ignore-eos {load(served, rate)} --save-result --result-filename {RESULT}")


def emit(served: Sequence[EngineGroup]) -> Program:
    """Return the scripts that serve with vLLM."""
    variables = []
    if any(one.serving.drafts for one in served):
        variables.append(Variable("DRAFT_MODEL", "", "Draft model; without, n-grams of the prompt are looked up, of "
                                  "which fewer are accepted."))
    if any(one.serving.adapters for one in served):
        variables.append(ADAPTERS)
    return program_of(served, TABLE, Command(
        'vllm serve "$MODEL"', '--served-model-name "$NAME" --host 0.0.0.0 --port "$port"', SEVERAL_NODES, VLLM_ROUTER,
        _bench, online=("bf16", "fp8"), lines=_lines, variables=variables, transfer=NIXL))


EMITTER = ServiceEmitter("vllm", TABLE, emit)
