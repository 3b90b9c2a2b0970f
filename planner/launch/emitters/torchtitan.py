"""torchtitan: a config function, `plan_config.plan`, that torchtitan.train is pointed at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.catalog.architecture import Mlp, Model
from planner.catalog.attention import Attention
from planner.catalog.details import Details
from planner.launch.axes import WHOLE, No, Settings, Table, in_part, only, settings_of
from planner.launch.chunks import chunks_of
from planner.launch.emitter import Emitter, plain
from planner.launch.made_up import MADE_UP
from planner.launch.megatron import ROTARY_BASE
from planner.launch.program import Part, Program, Variable, of_training, script, torchrun
from planner.launch.work import Work

_BASES = {"llama3": "llama3_8b", "qwen3": "qwen3_14b", "deepseek_v3": "deepseek_v3_16b", "gpt_oss": "gpt_oss_20b"}
"""The published config of each family that the plan's values are put over."""
_SCHEDULES = {"1f1b": "1F1B", "gpipe": "GPipe", "zero-bubble": "ZBVZeroBubble", "dualpipe": "DualPipeV"}
_CONVERTERS = {"fp8": "Float8LinearConverter", "mxfp8": "MXFP8LinearConverter", "fp4": "NVFP4LinearConverter"}
EAGER, ASYNC, ROWWISE = "fsdp2-eager", "fsdp2-async-tp", "fsdp2-rowwise"


def _batch(work: Work) -> Settings:
    layout = work.layout
    local = layout.micro_batch * (layout.micro_batches if layout.pp > 1 else 1)
    whole = {"training.local_batch_size": local, "training.global_batch_size": work.global_batch}
    return whole | ({"parallelism.pipeline_parallel_microbatch_size": layout.micro_batch} if layout.pp > 1 else {})


def _precision(work: Work) -> Settings | No:
    name = work.layout.precision
    if name == "fp8" and work.stack.name != ROWWISE:
        return No("fp8 with a scale for each tensor (it has one for each row)", {"stack": ROWWISE})
    if name not in ("bf16", "fp32", *_CONVERTERS):
        return No(f"{name} (it has bf16, fp32, {', '.join(_CONVERTERS)})", {"precision": "bf16"})
    return {"training.mixed_precision_param": "float32" if name == "fp32" else "bfloat16"}


def _pipeline(work: Work) -> Settings | No:
    layout = work.layout
    settings: dict[str, object] = {"parallelism.pipeline_parallel_degree": layout.pp}
    schedule = layout.schedule or "1f1b"
    if layout.pp == 1:
        return settings
    if schedule in ("zero-bubble", "dualpipe"):
        return No(f"{schedule} of one chunk a stage (its own hold two, in the form of a V)", {"schedule": "1f1b"})
    name = "Interleaved1F1B" if layout.vpp > 1 else _SCHEDULES[schedule]
    return settings | {"parallelism.pipeline_parallel_schedule": name,
                       "parallelism.module_fqns_per_model_part": chunks_of(work)}


def _sharding(work: Work) -> Settings | No:
    layout, copies = work.layout, work.copies
    if layout.zero == 1:
        return No("1 (FSDP shards gradients too)", {"zero": 2})
    if layout.zero == 0:
        if layout.cp > 1:
            return No("0 with context parallelism (whose ranks shard the weights)", {"zero": 3})
        return {"parallelism.data_parallel_replicate_degree": layout.dp, "parallelism.data_parallel_shard_degree": 1}
    if layout.dp % copies:
        return No(f"{copies} copies of {layout.shard} ranks (each copy has whole data-parallel ranks)",
                  {"shard": layout.dp * layout.cp})
    return {"parallelism.data_parallel_replicate_degree": copies,
            "parallelism.data_parallel_shard_degree": layout.dp // copies,
            "parallelism.fsdp_reshard_after_forward": "always" if layout.zero == 3 else "never"}


def _offload(work: Work) -> Settings | No:
    out = work.layout.offload
    if out.optimizer == out.parameters and out.optimizer in (0, 1):
        return {"training.enable_cpu_offload": bool(out.optimizer)}
    return in_part(work)


_SELECTIVE = ("every-second-matmul",)
"""What its selective recompute works out again."""
_CLASSES = {"none": "None", "selective": "SelectiveAC.Config()", "full": "FullAC.Config()"}



def _recompute(work: Work) -> Settings | No:
    kept = work.layout.recompute
    if kept not in _CLASSES:
        return No(f"{work.value('recompute')} (all layers alike)", {"recompute": "full"})
    if kept == "selective" and work.stack.selective_recompute != _SELECTIVE:
        return No(f"selective of {', '.join(work.stack.selective_recompute)} (its own is of every second product)",
                  {"recompute": "full"})
    return {}


TABLE: Table = {
    ("candidate", "dp", "micro_batch"): _batch,
    ("precision",): _precision,
    ("tp", "sp"): lambda w: {"parallelism.tensor_parallel_degree": w.layout.tp,
                             "parallelism.enable_sequence_parallel": bool(w.value("sp")) or w.layout.tp == 1},
    ("cp",): lambda w: {"parallelism.context_parallel_degree": w.layout.cp},
    ("cp_method",): lambda w: {} if w.layout.cp == 1 else only(
        "cp_method", "all-gather", reason="it gathers keys and values", instead={"cp": 1})(w),
    ("ep",): lambda w: {"parallelism.expert_parallel_degree": w.layout.ep},
    ("expert_tp",): only("expert_tp", None, 1, reason="experts are whole on their ranks", instead={"expert_tp": 1}),
    ("pp", "vpp", "stages", "schedule"): _pipeline,
    ("zero", "hsdp"): _sharding,
    ("no_sync",): only("no_sync", 0, reason="gradients are reduced each time", instead={"no_sync": 0}),
    ("recompute",): _recompute,
    ("offload", "offload_parameters"): _offload,
    ("offload_activations",): only("offload_activations", 0.0, reason="checkpoints stay on the GPU",
                                   instead={"offload_activations": 0}),
    ("nvme",): only("nvme", 0, reason="it offloads to the host", instead={"offload_to": "host"}),
    ("method", "lora_rank"): plain("method", "checkpoint.initial_load_in_hf", {"full": True, "pretrain": None}),
    ("optimizer",): only("optimizer", "adamw", reason="its configs have AdamW", instead={"optimizer": "adamw"}),
    ("optimizer_in_backward",): only("optimizer_in_backward", False, reason="gone since 0.3"),
    ("loss",): only("loss", "the stack's", "chunked", reason="its configs compute the loss in chunks"),
    **WHOLE,
    ("packing",): only("packing", "packed", reason="its data loader fills every sequence", instead={"packing": True}),
}

VARIABLES = (
    Variable("DATA", "{data}", "mock for made-up tokens, or a data set of torchtitan: c4 is from Hugging Face."),
    Variable("TOKENIZER", "assets/hf", "Folder with the tokenizer, and to tune with the weights: "
             "scripts/download_hf_assets.py of torchtitan. Made-up tokens need none."),
    *of_training("3e-4"),
)


def emit(work: Work) -> Program:
    """Return the config function of a plan, and the script that starts it."""
    own, settings = work.model.name not in work.release.models, settings_of(work, TABLE)
    model = _own_model(work.model) if own else ()
    config = "\n".join(_config(work, model, settings)) + "\n"
    body = ['export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"', "",
            "exec " + " ".join(torchrun(work.gpus_per_node, work.placed.nodes)) + " \\",
            "  -m torchtitan.train --module plan_config --config plan"]
    environment = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
    head = f"torchtitan {work.release.release}: runs on every node"
    # weights to tune lie beside their tokenizer
    data = "mock" if work.method == "pretrain" else "c4"
    variables = tuple(Variable(v.name, v.default.format(steps=work.steps, data=data), v.meaning) for v in VARIABLES)
    if 'environ["ROTARY_BASE"]' in config:
        variables += (ROTARY_BASE,)
    return Program(
        target=work.target, parts=(Part("train", "train.sh", work.placed.nodes, work.gpus_per_node),),
        files={"plan_config.py": config, "made_up.py": MADE_UP.format(release=work.release.release),
               "train.sh": script(head, environment, body)}, variables=variables,
        notes=("A dry run on one machine: `NGPU=8 COMM_MODE=fake_backend` before the torchrun line.",),
        feedback="train.log")


def _config(work: Work, own: Sequence[str], settings: Settings) -> Iterator[str]:
    called = work.release.models.get(work.model.name, {"family": "llama3", "flavour": "8B"})
    family, flavor = called["family"], called["flavour"]
    converter = _CONVERTERS.get(work.layout.precision)
    compiled = work.stack.name != EAGER
    yield f'"""torchtitan {work.release.release}: the plan in plan.json, for --module plan_config --config plan."""'
    yield ""
    yield "import os"
    yield ""
    yield "from made_up import MadeUp, NoTokenizer"
    yield "from torchtitan.components.optimizer import default_adamw"
    if converter:
        yield f"from torchtitan.components.quantization import {converter}"
    yield "from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC"
    yield "from torchtitan.models.common.config_utils import decoder_vocab_size"
    yield f"from torchtitan.models.{family} import model_registry"
    yield f"from torchtitan.models.{family}.config_registry import {_BASES[family]}"
    if own:
        yield _OWN_IMPORTS
    yield ""
    yield ""
    yield from own
    yield "def plan():"
    convert = f", converters=[{converter}.Config(model_compile_enabled={compiled})]" if converter else ""
    yield f"    c = {_BASES[family]}()"
    yield f'    c.model_spec = model_registry("{flavor}"{convert})'
    if own:
        yield "    c.model_spec.model = model()"
    yield "    c.loss.loss_fn.global_vocab_size = decoder_vocab_size(c.model_spec)"
    for key, value in settings.items():
        yield f"    c.{key} = {value!r}"
    # tried with a real step; the default wants what PyTorch has since 2.14
    yield '    c.parallelism.spmd_backend = "partial_dtensor"'
    yield f"    c.activation_checkpoint = {_CLASSES[work.layout.recompute]}"
    yield f"    c.compile.enable = {compiled}"
    if compiled and work.layout.tp > 1:
        yield f"    c.compile.enable_async_tensor_parallel = {work.stack.name == ASYNC}"
    # graphs do not go with a pipeline, nor with the exchange of experts
    yield f"    c.training.disable_cuda_graphs = {work.layout.pp > 1 or work.layout.ep > 1}"
    yield f"    c.training.seq_len = {work.sequence_length}"
    yield '    c.training.steps = int(os.environ["STEPS"])'
    yield '    c.optimizer = default_adamw(lr=float(os.environ["LEARNING_RATE"]))'
    yield '    if os.environ["DATA"] == "mock":'
    yield "        vocabulary = decoder_vocab_size(c.model_spec)"
    yield "        c.tokenizer, c.dataloader = NoTokenizer.Config(), MadeUp.Config(vocabulary=vocabulary)"
    yield "    else:"
    yield '        c.dataloader.dataset = os.environ["DATA"]'
    yield '    c.hf_assets_path = os.environ["TOKENIZER"]'
    yield '    c.dump_folder = os.environ["CHECKPOINTS"]'
    yield "    c.checkpoint.enable = True"
    yield "    c.metrics.log_freq = 1"
    yield "    c.profiler.enable_profiling = False"
    yield "    return c"


_OWN_IMPORTS = """from torchtitan.models.llama3 import (_EMBEDDING_INIT, _NORM_INIT, ComplexRoPE, Embedding, Linear,
                                      Llama3Model, RMSNorm, _build_llama3_layers, _output_linear_init)"""


def _own_model(model: Model) -> Sequence[str]:
    """Return a function that builds a dense model like Llama."""
    block = model.blocks[0]
    attention, mlp = block.attention, block.mlp
    assert isinstance(attention, Attention)
    assert isinstance(mlp, Mlp)
    width, vocab = model.hidden, model.vocab
    return (
        "def model():",
        f"    rope = ComplexRoPE.Config(dim={attention.head_dim}, max_seq_len=131072, {_rope(model)})",
        f"    layers = _build_llama3_layers(n_layers={model.layers}, dim={width}, n_heads={attention.heads},",
        f"                                  n_kv_heads={attention.kv_heads}, hidden_dim={mlp.ffn}, rope=rope, "
        "fuse_qkv=True, attn_backend='flex')",
        *_norms(model),
        f"    return Llama3Model.Config(dim={width}, vocab_size={vocab}, layers=layers,",
        f"        tok_embeddings=Embedding.Config(num_embeddings={vocab}, embedding_dim={width}, "
        "param_init=_EMBEDDING_INIT),",
        f"        norm=RMSNorm.Config(normalized_shape={width}, {_epsilon(model)}param_init=_NORM_INIT),",
        f"        lm_head=Linear.Config(in_features={width}, out_features={vocab}, "
        f"param_init=_output_linear_init({width})))", "", "")


def _rope(model: Model) -> str:
    """Return the words for a model's rotary positions."""
    said = model.details or Details()
    theta = f"{said.rotary_base:g}" if said.rotary_base else 'float(os.environ["ROTARY_BASE"])'
    if said.scaling is None:
        return f"theta={theta}"
    return (f"theta={theta}, scaling='llama', scaling_factor={said.scaling.factor:g}, "
            f"original_max_position_embeddings={said.scaling.original}")


def _epsilon(model: Model) -> str:
    """Return the epsilon of a model's norms as an argument, where its config states one."""
    epsilon = _norm_epsilon(model)
    return f"eps={epsilon}, " if epsilon else ""


def _norm_epsilon(model: Model) -> str:
    """Return the epsilon of a model's norms, where its config states one."""
    return f"{model.details.norm_epsilon:g}" if model.details and model.details.norm_epsilon else ""


def _norms(model: Model) -> list[str]:
    """Return the lines that set the same in the layers."""
    epsilon = _norm_epsilon(model)
    return ["    for layer in layers:",
            f"        layer.attention_norm.eps = layer.ffn_norm.eps = {epsilon}"] if epsilon else []


EMITTER = Emitter("torchtitan", TABLE, emit)
