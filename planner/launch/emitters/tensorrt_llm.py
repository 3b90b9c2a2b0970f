"""TensorRT-LLM: `trtllm-serve` for each kind of replica, and the YAML of what it has no option for.

Options: tests/unittest/api_stability/references/trtllm_serve_cli.yaml; keys of the YAML: llmapi/llm_args.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.launch.axes import No, Settings, TableOf, only
from planner.launch.emitter import ServiceEmitter
from planner.launch.formats import as_text, by_file
from planner.launch.program import Program
from planner.launch.routers import NGINX, TRTLLM_ROUTER
from planner.launch.served import EngineGroup
from planner.launch.serving import CHECKPOINTS, RESULT, Command, any_number, load, program_of

FILE = "engine.yaml"
"""Stands for the YAML of a kind of replica, each of which has one of its own."""
_CACHES = {"auto": "auto", "fp8": "fp8", "nvfp4": "nvfp4"}
LOOKUP = 4
"""Longest n-gram of the prompt that is looked up."""


def _format(served: EngineGroup) -> Settings | No:
    name = served.placed.layout.stored
    if name in ("bf16", "fp8", *CHECKPOINTS):
        return {}
    return No(f"{name} (it reads bf16, fp8, {', '.join(CHECKPOINTS)} from the checkpoint)", {"quantization": "fp8"})


def _attention(served: EngineGroup) -> Settings | No:
    if served.dp == 1:
        return {"tp_size": served.tp}
    if served.tp > 1 and served.engine.copies == "narrow":
        return No(f"{served.dp} copies of attention over {served.tp} GPUs each (each copy is on one GPU)",
                  {"tp": 1, "dp": served.dp * served.tp})
    return {"tp_size": served.dp, "enable_attention_dp": True}


def _experts(served: EngineGroup) -> Settings | No:
    if not served.model.mixes_experts:
        return {}
    ep, ranks = served.placed.layout.ep, served.tp * served.dp
    if ranks % ep or served.value("expert_tp") != ranks // ep:
        return No(f"{ep} x {served.value('expert_tp')} of {ranks} GPUs", {"ep": ranks})
    return {"ep_size": ep}


def _nodes(served: EngineGroup) -> Settings | No:
    if served.nodes > 1:
        return No(f"{served.nodes} nodes for a replica (its processes meet over MPI, which these scripts do not start)",
                  {"tp": served.node.gpus})
    return {"gpus_per_node": served.node.gpus}


def _cache(served: EngineGroup) -> Settings | No:
    name = str(served.value("kv_cache"))
    if name not in _CACHES:
        return No(f"{name} (it has {', '.join(_CACHES)})", {"kv_cache": "fp8"})
    return {f"{FILE}:kv_cache_config.dtype": _CACHES[name]}


def _drafts(served: EngineGroup) -> Settings:
    count = served.serving.drafts
    return {f"{FILE}:speculative_config.decoding_type": "NGram", f"{FILE}:speculative_config.max_draft_len": count,
            f"{FILE}:speculative_config.max_matching_ngram_size": LOOKUP} if count else {}


def _role(served: EngineGroup) -> Settings:
    if served.serving.role == "whole":
        return {}
    # the order of steps that overlaps them has no context-only requests
    return {f"{FILE}:cache_transceiver_config.backend": "NIXL",
            f"{FILE}:disable_overlap_scheduler": served.serving.role == "prefill"}


TABLE: TableOf[EngineGroup] = {
    ("candidate",): _nodes,
    ("precision",): _format,
    ("tp", "dp"): _attention,
    ("pp",): lambda s: {"pp_size": s.pp},
    ("ep", "expert_tp"): _experts,
    ("replicas",): lambda s: {},
    ("role",): _role,
    ("answers",): only("answers", "tokens", reason="its server writes", instead={"engine": "vllm"}),
    ("prompts",): any_number,
    ("by_hour",): any_number,
    # of one section of the YAML, so that neither file nor option goes before the other
    ("memory_fraction",): lambda s: {f"{FILE}:kv_cache_config.free_gpu_memory_fraction": s.fraction},
    ("max_sequences",): lambda s: {"max_batch_size": s.sequences},
    ("max_batched_tokens",): lambda s: {"max_num_tokens": s.tokens, "enable_chunked_prefill": True},
    # as soon as every rank has a prompt, and not some steps later
    ("prefill_delay",): lambda s: {f"{FILE}:attention_dp_config.enable_balance": True,
                                   f"{FILE}:attention_dp_config.timeout_iters": s.serving.prefill_delay,
                                   f"{FILE}:attention_dp_config.batching_wait_iters": 0}
    if s.serving.prefill_delay else {},
    ("max_model_len",): lambda s: {"max_seq_len": s.longest},
    ("kv_cache",): _cache,
    ("drafts",): _drafts,
    ("prefix_cache",): lambda s: {f"{FILE}:kv_cache_config.enable_block_reuse": True},
    ("adapters", "lora_rank"): lambda s: {} if s.serving.adapters is None else No(
        f"{s.serving.adapters.count} (its adapters are named in each request by a path)", {"adapters": 0}),
}


def _bench(served: EngineGroup, prompt: int, answer: int, rate: float | None) -> str:
    return ('exec python3 -m tensorrt_llm.serve.scripts.benchmark_serving --backend openai --host "${1:-127.0.0.1}" '
            f'--port "$PORT" --model "$NAME" --tokenizer "$MODEL" --dataset-name random --random-ids '
            f"--random-input-len {prompt} --random-output-len {answer} --ignore-eos {load(served, rate)} --save-result "
            f"--result-filename {RESULT}")


def emit(served: Sequence[EngineGroup]) -> Program:
    """Return the scripts that serve with TensorRT-LLM, and their YAML."""
    apart = any(one.serving.role != "whole" for one in served)
    files: dict[str, str] = {}

    def own(one: EngineGroup, name: str, settings: Settings) -> Settings:
        """Return the options alone, the rest being in a file of its own."""
        parts = by_file({key if ":" in key else f"options:{key}": value for key, value in settings.items()})
        file = f"{name}.yaml"
        files[file] = as_text(file, f"{one.target} {one.release.release}", parts[FILE])
        return parts["options"]

    program = program_of(served, TABLE, Command(
        'trtllm-serve serve "$MODEL"', '--served_model_name "$NAME" --host 0.0.0.0 --port "$port"', (),
        TRTLLM_ROUTER if apart else NGINX, _bench, settings=own,
        lines=lambda one: ['RUN+=(--config "${BASH_SOURCE[0]%.sh}.yaml")']))
    return replace(program, files={**program.files, **files})


EMITTER = ServiceEmitter("tensorrt-llm", TABLE, emit)
