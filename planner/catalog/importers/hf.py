"""A model from its Hugging Face config.json: the shape alone, exact to the parameter, or refused by name.

Here are which shape each model_type has, what is assumed of one that is not in the table, and the published format.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from planner.catalog.architecture import Model
from planner.catalog.importers import hf_dense as dense
from planner.catalog.importers import hf_hybrids as hybrids
from planner.catalog.importers import hf_mixtures as mixtures
from planner.catalog.importers.hf_parts import Config, Entry, usual
from planner.catalog.importers.hf_reading import read_config, read_object
from planner.errors import InputError
from planner.text_io import real
from planner.yaml_io import dump, parse, validate

_BY_SHAPE: dict[Callable[[Config], Entry], str] = {
    dense.llama: "llama granite baichuan yi exaone helium",
    dense.tied_llama: "smollm3 minicpm ernie4_5 ",
    dense.mistral: "mistral ministral ministral3 mistral3", dense.phi3: "phi3", dense.phi: "phi",
    dense.qwen: "qwen", dense.qwen2: "qwen2 qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text mimo",
    dense.qwen3: "qwen3 qwen3_vl qwen3_vl_text hunyuan_v1_dense",
    dense.olmo: "olmo", dense.olmo2: "olmo2", dense.olmo3: "olmo3", dense.gemma: "gemma", dense.gemma2: "gemma2",
    dense.gemma3: "gemma3 gemma3_text", dense.glm: "glm", dense.glm4: "glm4", dense.chatglm: "chatglm",
    dense.seed_oss: "seed_oss", dense.internlm2: "internlm internlm2", dense.exaone4: "exaone4", dense.bitnet: "bitnet",
    dense.arcee: "arcee", dense.apertus: "apertus", dense.nemotron: "nemotron", dense.starcoder2: "starcoder2",
    dense.stablelm: "stablelm", dense.cohere: "cohere", dense.cohere2: "cohere2", dense.gpt_neox: "gpt_neox",
    dense.gpt2: "gpt2", dense.gpt_bigcode: "gpt_bigcode", dense.gptj: "gptj codegen", dense.opt: "opt",
    dense.bloom: "bloom", dense.falcon: "falcon", dense.mpt: "mpt",
    mixtures.mixtral: "mixtral", mixtures.qwen2_moe: "qwen2_moe",
    mixtures.qwen3_moe: "qwen3_moe qwen3_vl_moe qwen3_vl_moe_text", mixtures.olmoe: "olmoe",
    mixtures.granitemoe: "granitemoe granitemoeshared", mixtures.phimoe: "phimoe", mixtures.dbrx: "dbrx",
    mixtures.gpt_oss: "gpt_oss", mixtures.glm4_moe: "glm4_moe", mixtures.dots1: "dots1",
    mixtures.minimax_m2: "minimax_m2", mixtures.minimax_m3: "minimax_m3 minimax_m3_vl minimax_m3_vl_text",
    mixtures.deepseek_v1: "deepseek",
    mixtures.deepseek: "deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2 kimi_k25 glm_moe_dsa glm4_moe_lite",
    mixtures.deepseek_v4: "deepseek_v4", mixtures.llama4: "llama4 llama4_text",
    mixtures.gemma4: "gemma4 gemma4_text", mixtures.ernie4_5_moe: "ernie4_5_moe",
    mixtures.hunyuan_moe: "hunyuan_v1_moe hunyuan", mixtures.mimo_v2_flash: "mimo_v2_flash",
    mixtures.step3p7: "step3p7",
    hybrids.nemotron_h: "nemotron_h", hybrids.jamba: "jamba", hybrids.mamba: "mamba falcon_mamba",
    hybrids.mamba2: "mamba2", hybrids.granite_hybrid: "granitemoehybrid", hybrids.kimi_linear: "kimi_linear",
    hybrids.nemotron_nas: "nemotron-nas",
    hybrids.qwen_hybrid: "qwen3_next qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text",
}
FAMILIES: dict[str, Callable[[Config], Entry]] = {
    name: shape for shape, names in _BY_SHAPE.items() for name in names.split()}
TELLING = frozenset({
    "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "kv_lora_rank", "ssm_cfg", "state_size",
    "linear_attn_config", "block_configs", "is_encoder_decoder", "layers_block_type", "hybrid_override_pattern",
    "hybrid_layer_pattern", "sparse_attention_config", "index_topk", "parallel_attn", "use_parallel_residual",
    "attn_config", "ssm_state_size", "mamba_d_state", "hidden_size_per_layer_input", "altup_num_inputs"})
"""Keys that say that a model is no stack of equal dense layers."""
EIGHT, FOUR = 8, 4
MOST_NAME = 100
INDEX = "model.safetensors.index.json"
SEQUENCE_LENGTH, GLOBAL_BATCH = 8192, 1024
"""Training set-up assumed of a model whose config states none; no longer than its positions."""
SEES = frozenset({"vision_config", "visual", "mm_vision_tower", "audio_config"})
"""Keys of a config that has more than a language model."""
WITH_IMAGES = frozenset({"gemma3", "gemma4", "llama4", "mistral3", "kimi_k25", "minimax_m3_vl", "qwen3_5",
                         "qwen3_5_moe"})
"""Language models that can read images too; their text part is what the entry is of."""


def unknown(c: Config) -> tuple[Entry, str]:
    """Return the shape of a model_type that is not in the table, and what is assumed. Raises ValueError with the key.

    Only where the config has all fields of a Llama and none that tells of another shape.
    """
    c = usual(c)
    kinds = set(c.get("layer_types") or ()) - {"full_attention", "sliding_attention"}
    telling = sorted(key for key in TELLING if c.get(key)) + [f"layer_types {kind}" for kind in sorted(kinds)]
    if telling:
        raise ValueError(f"not in the table of architectures, and {telling[0]} says that it is not like Llama")
    missing = [key for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                               "vocab_size", "hidden_act") if not c.get(key)]
    if missing:
        raise ValueError("not in the table of architectures, and to be read like Llama it lacks " + ", ".join(missing))
    if c["hidden_act"] not in ("silu", "swiglu", "swish"):
        raise ValueError(f"not in the table of architectures, and hidden_act {c['hidden_act']} does not tell whether "
                         "the feed-forward has a gate")
    normed = any(c.get(key) for key in ("qk_norm", "use_qk_norm"))
    entry = dense.llama(c)
    block = entry["blocks"][0]
    entry["blocks"] = [block | {"attention": block["attention"] | ({"qk_norm": True} if normed else {})}]
    return entry, ("model_type " + str(c.get("model_type")) + " is not in the table: read like Llama (gated "
                   "feed-forward, two RMS norms a layer, rotary positions, biases only where the config states them, "
                   "full attention)")


def stored(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the format of the weights as published, and a note where it is assumed to be bf16 for want of a model."""
    given = config.get("quantization_config")
    if not isinstance(given, dict):
        return "bf16", ""
    method = str(given.get("quant_method", "")).lower()
    words = " ".join([method, str(given.get("format", "")), str(given.get("quant_algo", ""))]).lower()
    if config.get("expert_dtype") == "fp4":
        return "mxfp4", "experts are published in mxfp4, the rest in fp8"
    named = next((name for name in ("mxfp4", "nvfp4", "fp8") if name in words), None)
    if named:
        return named, ""
    for weights in _weights(given):
        found = _format(weights.get("num_bits"), str(weights.get("type", "int")))
        if found:
            return found, ""
    return "bf16", f"published in {method or 'a format'} that is not modeled: bf16 assumed"


def _weights(given: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if given.get("quant_method") in ("awq", "gptq", "auto-round"):
        yield {"num_bits": FOUR if given.get("bits") == FOUR or given.get("w_bit") == FOUR else None}
    groups = given.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        if isinstance(group, dict) and isinstance(group.get("weights"), dict):
            yield group["weights"]


def _format(bits: object, kind: str) -> str | None:
    if bits == EIGHT:
        return "fp8" if kind == "float" else "int8"
    return "w4a16" if bits == FOUR and kind == "int" else "nvfp4" if bits == FOUR else None


def import_config(path: Path, as_of: str, text_only: bool = False, name: str | None = None) -> Model:
    """Return the model that a config.json describes. Raises InputError with file and key.

    as_of: the date to record, year-month-day; text_only: the language model of one that is made to see or to hear.
    name: what to call it, instead of what the config, the file or its folder are called.
    """
    config = read_config(path)
    beside = path.parent / "hf_quant_config.json"
    if "quantization_config" not in config and beside.exists():
        config["quantization_config"] = read_object(beside).get("quantization")
    own = config.get("ssm_cfg")
    # the authors' own checkpoints of Mamba-2 name it nowhere else
    kind = config.get("model_type") or ("mamba2" if isinstance(own, dict) and own.get("layer") == "Mamba2" else None)
    if not isinstance(kind, str):
        raise InputError("expected model_type, which names the architecture", file=str(path))
    named = str(read_object(path).get("model_type", kind))
    sees = next((key for key in sorted(SEES) if config.get(key)), None)
    if sees and not text_only and named not in WITH_IMAGES:
        raise InputError(f"not supported: model_type {named}: {sees}: the vision tower is not modeled; --text-only "
                         "imports the language model alone", file=str(path))
    try:
        shape, assumption = (FAMILIES[kind](config), "") if kind in FAMILIES else unknown(config)
        entry = {"hidden": config.get("hidden_size"), "vocab": config.get("vocab_size"), "norm": "rmsnorm"} | shape
        model = Model.model_validate(entry | _head(config, path, as_of, assumption, sees, name))
        # what is written is what a catalog reads
        return validate(parse(dump(model.model_dump(mode="json", exclude_defaults=True)), str(path)), Model)
    except KeyError as error:
        raise InputError(f"model_type {kind}: expected {error.args[0]}", file=str(path)) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        given = f", got {str(first['input'])[:40]}" if isinstance(first["input"], int | float | str) else ""
        raise InputError(f"model_type {kind}: {where}: {first['msg']}{given}", file=str(path)) from None
    except (TypeError, ArithmeticError, AttributeError, ValueError) as error:
        raise InputError(f"not supported: model_type {kind}: {error}", file=str(path)) from None


def _head(config: Mapping[str, Any], path: Path, as_of: str, assumption: str, sees: str | None,
          name: str | None) -> dict[str, Any]:
    kept, doubt = stored(config)
    notes = [assumption, f"text part alone: {sees} is not modeled" if sees else "", doubt]
    note = "; ".join(filter(None, notes))
    named = name or config.get("_name_or_path") or _called(path)
    longest = config.get("max_position_embeddings") or config.get("n_positions") or SEQUENCE_LENGTH
    assumed = {"source": "not in the config; change it to yours", "as_of": as_of, "kind": "assumed"}
    hf_id = named if isinstance(named, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", named) else None
    return {
        "name": re.sub(r"[^a-z0-9.]+", "-", str(named).rsplit("/", maxsplit=1)[-1].lower()).strip("-.")[:MOST_NAME]
        .strip("-.") or "imported",
        "hf_id": hf_id, "source": f"{path.name} of Hugging Face", "as_of": as_of, "kind": "quoted",
        "stored": kept, **({"note": note} if note else {}),
        "sequence_length": min(int(longest), SEQUENCE_LENGTH), "global_batch": GLOBAL_BATCH,
        "facts": {"sequence_length": assumed, "global_batch": assumed}}


def _called(path: Path) -> str:
    """Return what a config is of: its file where that is not simply config.json, the repository in the cache of the
    Hugging Face Hub, else its folder.
    """
    if path.stem.lower() != "config":
        return re.sub(r"[-_.]?config$", "", path.stem, flags=re.IGNORECASE)
    folder = real(path).parent
    cached = next((part for part in reversed(folder.parts) if part.startswith("models--")), None)
    return cached.removeprefix("models--").replace("--", "/", 1) if cached else folder.name


def checkpoint_total(path: Path) -> int | None:
    """Return the parameters that the safetensors index beside a config.json states; none where there is no such file.

    Bytes are divided by those of the config's torch_dtype. Raises InputError.
    """
    index = path.parent / INDEX
    if not index.exists():
        return None
    metadata = read_object(index).get("metadata")
    if not isinstance(metadata, dict):
        return None
    total, size = metadata.get("total_parameters"), metadata.get("total_size")
    config = read_config(path)
    dtype = str(config.get("torch_dtype") or config.get("dtype"))
    width = {"bfloat16": 2, "float16": 2, "float32": 4}.get(dtype)
    if isinstance(total, int):
        return total
    if width is None or not isinstance(size, int | float) or not math.isfinite(size) or "quantization_config" in config:
        return None
    return int(size) // width
