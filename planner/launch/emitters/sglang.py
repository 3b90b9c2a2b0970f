"""SGLang: its server for each kind of replica, by the names of its options (sglang/srt/arg_groups/fields)."""

from __future__ import annotations

from collections.abc import Sequence

from planner.launch.axes import CannotExpress, No, Settings, TableOf
from planner.launch.emitter import ServiceEmitter
from planner.launch.program import Program
from planner.launch.routers import BOOTSTRAP, SGLANG_ROUTER
from planner.launch.served import EngineGroup
from planner.launch.serving import (
    ADAPTERS,
    CHECKPOINTS,
    NIXL,
    RESULT,
    Command,
    any_number,
    half,
    load,
    program_of,
    with_adapters,
)

_ONLINE = {"fp8": "fp8", "nf4": "bitsandbytes"}
_CACHES = {"auto": "auto", "bf16": "bfloat16", "fp8": "fp8_e4m3"}


def _format(served: EngineGroup) -> Settings | No:
    name = served.placed.layout.stored
    dtype: Settings = {"dtype": half(served)}
    if name in ("bf16", *CHECKPOINTS):
        return dtype
    if name in _ONLINE:
        return {**dtype, **({} if served.published else {"quantization": _ONLINE[name]})}
    return No(f"{name} ({served.release.release} has bf16, {', '.join((*_ONLINE, *CHECKPOINTS))})",
              {"quantization": "fp8"})


def _experts(served: EngineGroup) -> Settings | No:
    if not served.model.mixes_experts:
        return {"ep-size": 1}
    ep, ranks = served.placed.layout.ep, served.tp * served.dp
    if ranks % ep or served.value("expert_tp") != ranks // ep:
        return No(f"{ep} x {served.value('expert_tp')} of {ranks} GPUs", {"ep": ranks})
    return {"ep-size": ep}


def _role(served: EngineGroup) -> Settings:
    role = served.serving.role
    return {} if role == "whole" else {"disaggregation-mode": role, "disaggregation-transfer-backend": "nixl"}


def _cache(served: EngineGroup) -> Settings | No:
    name = str(served.value("kv_cache"))
    if name not in _CACHES:
        return No(f"{name} (it has {', '.join(_CACHES)})", {"kv_cache": "fp8"})
    return {"kv-cache-dtype": _CACHES[name]}


def _adapters(served: EngineGroup) -> Settings:
    held = served.serving.adapters
    return {} if held is None else {"enable-lora": True, "max-loras-per-batch": held.count, "max-lora-rank": held.rank,
                                    "lora-target-modules": "all"}


def _drafts(served: EngineGroup) -> Settings | No:
    if not served.serving.drafts:
        return {}
    if served.dp > 1:
        return No(f"{served.serving.drafts} (its n-grams do not run with copies of attention)", {"dp": 1})
    if served.pp > 1:
        return No(f"{served.serving.drafts} (its n-grams do not run with pipeline stages)", {"pp": 1})
    return {"speculative-algorithm": "NGRAM", "speculative-num-draft-tokens": served.serving.drafts}


TABLE: TableOf[EngineGroup] = {
    ("candidate",): lambda s: {},
    ("precision",): _format,
    ("tp", "dp"): lambda s: {"tp-size": s.tp * s.dp, "attn-dp-size": s.dp},
    ("pp",): lambda s: {"pp-size": s.pp},
    ("ep", "expert_tp"): _experts,
    ("replicas",): lambda s: {},
    ("role",): _role,
    ("answers",): lambda s: {} if s.value("answers") == "tokens" else {"is-embedding": True},
    ("prompts",): any_number,
    ("by_hour",): any_number,
    ("memory_fraction",): lambda s: {"mem-fraction-static": s.fraction},
    # of all copies of attention together: the server divides both by their number
    ("max_sequences",): lambda s: {"max-running-requests": s.sequences * s.dp},
    ("max_batched_tokens",): lambda s: {"chunked-prefill-size": s.tokens * s.dp},
    ("prefill_delay",): lambda s: {"enable-prefill-delayer": True, "prefill-delayer-max-delay-passes":
                                   s.serving.prefill_delay} if s.serving.prefill_delay else {},
    ("max_model_len",): lambda s: {"context-length": s.longest},
    ("kv_cache",): _cache,
    ("drafts",): _drafts,
    ("prefix_cache",): lambda s: {},
    ("adapters", "lora_rank"): _adapters,
}

SEVERAL_NODES = (
    'RUN+=(--nnodes "$NNODES" --node-rank "${NODE_RANK:?}" --dist-init-addr "${MASTER_ADDR:?}:${MASTER_PORT:?}")',)


def _lines(served: EngineGroup) -> list[str]:
    lines = []
    if served.serving.role == "prefill":
        lines.append(f'RUN+=(--disaggregation-bootstrap-port "$((port + {BOOTSTRAP}))")')
    return lines + with_adapters(served, "--lora-paths")


def _bench(served: EngineGroup, prompt: int, answer: int, rate: float | None) -> str:
    return ('exec python3 -m sglang.bench_serving --backend sglang-oai --base-url "http://${1:-127.0.0.1}:$PORT" '
            f'--model "$MODEL" --served-model-name "$NAME" --dataset-name random --random-range-ratio 1 '
            f"--random-input-len {prompt} --random-output-len {answer} {load(served, rate)} --output-file {RESULT}")


def _together(served: Sequence[EngineGroup]) -> None:
    """Raise CannotExpress where the stages of decode are not those of all prefill, or one."""
    stages = {one.pp for one in served if one.serving.role == "prefill"}
    for one in served:
        if one.serving.role == "decode" and one.pp > 1 and stages - {one.pp}:
            raise CannotExpress(one.target, {"pp": No(
                f"{one.pp} of decode beside {', '.join(map(str, sorted(stages)))} of prefill (as many, or 1)",
                {"pp": 1})})


def emit(served: Sequence[EngineGroup]) -> Program:
    """Return the scripts that serve with SGLang. Raises CannotExpress."""
    _together(served)
    variables = [ADAPTERS] if any(one.serving.adapters for one in served) else []
    return program_of(served, TABLE, Command(
        'python3 -m sglang.launch_server --model-path "$MODEL"',
        '--served-model-name "$NAME" --host 0.0.0.0 --port "$port"', SEVERAL_NODES, SGLANG_ROUTER, _bench,
        online=("bf16", *_ONLINE), lines=_lines, variables=variables, transfer=NIXL))


EMITTER = ServiceEmitter("sglang", TABLE, emit)
