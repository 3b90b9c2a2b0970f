"""What a training framework can do, what it keeps in memory and what it overlaps: facts, with their source."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, field_validator

from planner.catalog.architecture import Fused
from planner.catalog.encoder import Sense
from planner.catalog.hardware import Precision
from planner.catalog.offloading import OffloadSupport
from planner.catalog.preference import Preference, PreferenceSupport
from planner.catalog.ranges import Factor, Few, Parameters, Passes, Share
from planner.catalog.recipes import TrainedBytes
from planner.catalog.sourced import Sourced
from planner.units import Bytes, Seconds
from planner.yaml_io import Frozen

Schedule = Literal["1f1b", "gpipe", "zero-bubble", "dualpipe"]
RecomputeModule = Literal["core_attn", "layernorm", "mlp", "mlp_act", "moe", "moe_act", "mla_up_proj",
                          "every-second-matmul"]
KeptProduct = Literal["gate", "wo", "wkv_a"]
Weights = Literal["pretrain", "full", "lora", "qlora", "inference"]
"""Methods whose name says what trains, and from where."""
Method = Literal[Weights, Preference]
Trained = Literal["language", "projector", "encoder"]
"""Parts of a model that sees or hears."""
Reference = Literal["copy", "adapters-off", "precomputed"]
"""Where the frozen model that preferences are held against is: beside the policy, in it, or run before training."""
Degree = Literal["tp", "cp", "dp", "ep", "expert_tp", "pp", "vpp", "zero", "hsdp", "micro_batch"]


class StateBytes(Frozen):
    """Bytes per parameter of one precision recipe: compute weight, accumulated gradient, master copy, both moments."""

    weight: Annotated[float, Field(ge=1e-4, le=64)]
    gradient: Annotated[float, Field(ge=1e-4, le=64)]
    master: Annotated[float, Field(ge=0, le=64)]
    moments: Annotated[float, Field(ge=0, le=64)]
    step: Annotated[float, Field(ge=0, le=64)] = 0.0
    """Held besides while the optimizer steps: AdamW over many tensors at once has the root of the second moment."""


class Overlap(Frozen):
    """Share of each kind of traffic hidden behind compute that is long enough to hide it."""

    tensor_parallel: float = Field(ge=0, le=1)
    data_parallel: float = Field(ge=0, le=1)
    shard_gather: float = Field(ge=0, le=1)
    pipeline: float = Field(ge=0, le=1)
    context_parallel: float = Field(ge=0, le=1)
    expert_parallel: float = Field(default=0.0, ge=0, le=1)


class ExpertKernels(Frozen):
    """How a stack runs a mixture of experts. Host times are of a layer, forward and backward."""

    host_layer: Seconds
    host_expert: Seconds
    """Host time of each local expert."""
    gather_expert: Seconds | None = None
    """Time that ZeRO-3 takes to gather an expert's matrices as a loop comes to it; none where it gathers layers."""
    permute_passes: Passes
    """Times the routed tokens pass through memory, forward and backward, to be sorted by expert and back."""
    biased_passes: Passes
    """The same, added where experts have biases: no fused kernel adds them or takes their gradient."""
    plain_passes: Annotated[float, Field(ge=1e-4, le=1e4)]
    """Times the activation of ungated experts passes through memory, forward and backward; gated ones are fused."""
    imbalance: Annotated[float, Field(ge=1, le=1e4)] = 1.0
    """Tokens of the busiest GPU over the mean; 1 where the router is balanced by force, as in benchmarks."""
    joint_adapters: bool = False
    """Whether the matrices into an expert's feed-forward share one adapter, of the sum of their ranks."""
    keeps_outputs: bool = True
    """Whether what experts return is kept for backward; not where their weight is applied ahead of the last product."""
    weighed: Annotated[float, Field(ge=1, le=8)] | None = None
    """Bytes of a number of what experts return as it is multiplied by their weights; none is as of any activation."""
    deduplicated: bool = False
    """Whether a token is sent once to each GPU and node with experts of its (DeepEP, HybridEP), or once an expert."""
    in_turn: bool = False
    """Whether a benchmark's router gives tokens the experts in turn: those of a token are neighbors, on few GPUs."""


AxisValue: TypeAlias = str | Annotated[float, Field(ge=0, le=10**6)]
"""Value of an axis of layouts: a number, or its word."""


class Conflict(Frozen):
    """Axes that a framework does not combine."""

    together: dict[Degree, Annotated[int, Field(ge=1, le=10**6)]] = Field(default={})
    """Axis -> the least value at which it takes part; `{cp: 2, vpp: 2}` is context parallelism with interleaving."""
    at: dict[str, tuple[AxisValue, ...]] = Field(default={})
    """Axis -> the values at which it takes part; `{zero: [0]}`."""
    methods: tuple[Method, ...] = ()
    """Of what training this is true; none named means of any."""
    reason: str = Field(min_length=3)
    """Why, as a plan and an error say it."""


class Stack(Sourced):
    """One framework at one generation of releases."""

    like: str | None = None
    """Another stack, which has whatever this one does not state, but for what it is used for."""
    used_for: dict[Method, Annotated[int, Field(ge=1, le=100)]] = Field(default={})
    """Methods that people train with it, and its place among the stacks that they use: `stack: auto` searches these."""
    encoders: dict[Method, Annotated[int, Field(ge=1, le=100)]] = Field(default={})
    """The same of models that answer with vectors or scores (embedders, rerankers, classifiers), which others lack."""
    last_resort_for: tuple[Method, ...] = ()
    """Methods that it has and few use it for: `stack: auto` searches it where no stack in use has a plan."""
    preference: PreferenceSupport | None = None
    """None where it does not train on preferences, or nobody looked."""
    zero_stages: tuple[Literal[0, 1, 2, 3], ...]
    zero_with_pipeline: Literal[0, 1, 2, 3]
    """Highest ZeRO stage that the framework allows together with pipeline parallelism."""
    pipeline: bool
    interleaving: bool
    schedules: tuple[Schedule, ...] = ("1f1b",)
    """Orders of a pipeline's work that the framework has; interleaving is 1f1b's."""
    tensor_parallel: bool
    sequence_parallel: bool
    context_parallel: bool
    expert_parallel: bool = False
    """Whether the experts of a layer can be shared out over GPUs."""
    expert_tp: bool = False
    """Whether experts can be split over fewer GPUs than other matrices, so that expert groups reach over TP ranks."""
    precisions: tuple[Precision, ...] = ("bf16", "fp16", "tf32", "fp32")
    """Formats of matrix products that the framework trains in."""
    context_gathered: bool = False
    """Whether keys and values are gathered whole before attention, which hides nothing, and do not go round a ring."""
    ulysses: bool = False
    """Whether context parallelism can exchange heads by all-to-all instead of keys and values round a ring."""
    repeats_heads: tuple[Literal["ulysses", "tensor"], ...] = ()
    """What repeats key-value heads over ranks that outnumber them: Ulysses, tensor parallelism."""
    live_parameters: Parameters | None = None
    """Parameters that ZeRO-3 keeps gathered where it gathers matrix by matrix; none where it gathers whole layers."""
    fully_sharded: bool = False
    """PyTorch FSDP: weights stay sharded at every stage from 2, which keeps a gathered 16-bit copy till backward."""
    no_sync: tuple[Literal[0, 1], ...] = (0,)
    """Whether micro-batches but the last keep their gradients whole and unreduced (1); the first is the default."""
    flat_gradients: bool = False
    """Gradients are of whole flat parameters, frozen weights included (FSDP 1 with use_orig_params)."""
    gathered_layers: Few = 2
    """Layers that ZeRO-3 holds gathered: the one at work, and those prefetched."""
    tables_apart: bool = False
    """Embedding and head are units of their own, of which ZeRO-3 gathers one at a time."""
    hybrid_shard: bool = False
    """Whether the highest ZeRO stage can shard within groups of GPUs and replicate over them (HSDP)."""
    uneven_chunks: bool = False
    """Whether interleaved chunks may hold unlike numbers of layers."""
    scatter_gather: bool = False
    """Whether a tensor-parallel rank sends its part of what goes to the next stage, to be gathered there."""
    shard_broadcast: Seconds = 0.0
    """Time of a broadcast of updated weights, where each shard has its own in place of one all-gather."""
    offload: OffloadSupport = OffloadSupport()
    recompute_layers: bool
    """Whether a number of layers per stage can be fully recomputed while the rest keep everything."""
    selective_recompute: tuple[RecomputeModule, ...]
    usual_recompute: Literal["none", "selective", "full"] = "none"
    """What a layout that does not say recomputes."""
    kept_inputs: dict[Precision, Annotated[float, Field(ge=1e-4, le=8)]] = Field(default={})
    """Bytes of an element that feed-forwards in a precision keep for backward; else those of an activation."""
    saved_inputs: dict[Precision, Annotated[float, Field(ge=1e-4, le=8)]] = Field(default={})
    """The same of the inputs of matrix products, where they are kept as the product reads them: quantized."""
    unsaved_products: float = Field(default=0.0, ge=0, le=1)
    """Share of the layers of whose products selective recompute saves none: those in a format of their own kernels."""
    full_recompute_keeps: tuple[KeptProduct, ...] = ()
    """Products whose outputs full recompute keeps: the router's, attention's output, the latent keys and values."""
    refuses: tuple[Conflict, ...] = ()
    """Combinations that the framework does not run, beside those that its other fields rule out."""
    states: dict[Precision, StateBytes]
    gradients_persist: bool
    """Gradient buffers live through forward (Megatron, DeepSpeed) or are freed by the step (plain PyTorch)."""
    reduce_bytes: Annotated[float, Field(ge=1e-4, le=64)]
    """Bytes per element of the gradient reduction."""
    fused_norm_and_activation: bool
    norms_in_products: bool = False
    """Whether a norm that feeds one product alone is a part of it, which recompute of norms leaves as it is."""
    gathered_norm_outputs: bool = False
    """Saves the norm outputs gathered over tensor parallelism rather than sharded (DTensor style)."""
    live_layers: Annotated[float, Field(ge=1e-4, le=100)]
    """Saved sets a layer holds while its backward runs: the saved tensors and their gradients."""
    live_mlp: float = Field(default=1.0, ge=1e-4, le=1)
    """Share of the feed-forward's saved set that is live at once: less where it works through the sequence in tiles."""
    loss_bytes_per_logit: Annotated[float, Field(ge=0, le=1000)]
    vocab_parallel_loss: bool
    allocator_ratio: Annotated[float, Field(ge=1, le=100)]
    """Reserved over allocated bytes."""
    context_bytes: Bytes
    communicator_bytes: Bytes
    """Device bytes of one communicator; a job holds one for each kind of group larger than one."""
    standing_groups: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Communicators of a job with a pipeline beside one for each kind: world, model-parallel, tied embeddings."""
    bucket_bytes: Bytes = 0.0
    """Device bytes of the buckets through which gradients are reduced and weights gathered."""
    elementwise: Factor
    """Bytes moved by norms, activations, rotary and residuals over the counted minimum."""
    fused_operations: Share = 1.0
    """Share of those bytes, and of the casts of narrower formats, that its operation fuser leaves; one without one."""
    fuses_operations: bool = False
    """Whether a run turns that fuser on."""
    fused: tuple[Fused, ...] = ()
    """Products that the framework holds as one matrix, with one adapter, where the model's own code does not."""
    adapter_passes: Passes = 1.0
    """Times the input and output of an adapted product pass through memory forward for its adapter."""
    adapter_casts: Passes = 0.0
    """The same of the input alone, added on a base that is not quantized: PEFT casts it to 32 bits there and back."""
    adapter_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of an adapter's input that the stack's configs drop at random; experts' adapters have none."""
    autocasts: bool = True
    """Whether adapters in 32 bits run under autocast, whose products read 16-bit copies of what is cast for them."""
    quantized_adapter: TrainedBytes | None = None
    """Bytes per parameter of adapters on a quantized base; none as PEFT has them, in 32 bits."""
    fused_adapters: bool = False
    """Whether products with adapters are one kernel: it reads what attention and the feed-forward keep, keeps no input
    of an adapter beside that, and works the activation's output out again."""
    upcast: Factor = 1.0
    """Elementwise traffic on a quantized base over that on a plain one: norms, and so what runs between the layers, in
    32 bits (PEFT's prepare_model_for_kbit_training)."""
    casts_residual: bool = False
    """Whether what flows between layers, and so a checkpoint, is in 32 bits over a base that PEFT casts."""
    keeps_checkpoint_gradients: bool = False
    """Whether backward holds the gradients of all checkpoints to its end, beside adapters under FSDP."""
    expands_all_experts: bool = False
    """Whether the experts of a layer are one tensor, so that a quantized base is expanded for all of them at once."""
    crosses: tuple[Sense, ...] = ()
    """What it trains models on whose layers attend to what an encoder has read."""
    quantizes_experts: bool = True
    """Whether experts are of a base that QLoRA quantizes; libraries that know linear layers alone leave them wide."""
    copies_quantized_experts: bool = False
    """Whether every rank holds all experts of a quantized base, which its FSDP does not shard."""
    dequantize: dict[str, Factor] = Field(default={})
    """Time to expand a quantized matrix over that of its bytes, by quantization."""
    fused_attention: bool = True
    """Flash attention, which skips what the causal mask hides and keeps no scores; unfused does neither."""
    attention_kernel: dict[str, Factor] = Field(default={})
    """Share of a GPU architecture's attention rates that the stack's kernel generation reaches, where not one."""
    matrix_rate: dict[Precision, Share] = Field(default={})
    """Share of a GPU's rates that the stack's products of a precision reach, where below one."""
    overlap: Overlap
    experts: ExpertKernels | None = None
    """None where the stack has no mixture of experts."""
    launch_adapter: Seconds = 0.0
    """Host time that an adapted product adds to its layer."""
    gather_unit: Seconds = 0.0
    """Time that ZeRO-3 takes to gather or reduce a unit of weights, whatever its bytes."""
    launch_unit: Seconds = 0.0
    """Host time of the same."""
    gathers_matrices: bool = False
    """Whether such a unit is a matrix (DeepSpeed) or a layer (FSDP); each matrix of an adapter is one."""
    launch_layer: Seconds
    """Host time to launch the kernels of a layer, forward and backward: it takes no less; near zero in CUDA graphs."""
    step_overhead: Seconds
    ranks_wait: bool = False
    """Whether that overhead is of ranks that wait for each other, so that one GPU has none."""
    slowdown: Factor = 1.0
    """Measured over counted step time of the stack that no counted cause explains."""

    @field_validator("states")
    @classmethod
    def _full_width(cls, states: dict[Precision, StateBytes]) -> dict[Precision, StateBytes]:
        """Add 32-bit training, which every framework has: weight, gradient and two moments, no master copy."""
        whole = StateBytes(weight=4, gradient=4, master=0, moments=8)
        return {"fp32": whole, "tf32": whole, **states}

    @property
    def unfused(self) -> float:
        """Share of elementwise bytes and casts that is left: all, but where operations are fused."""
        return self.fused_operations if self.fuses_operations else 1.0

    def place_for(self, method: Method, trains: str, *, silent: bool = False) -> int | None:
        """Return its place among the stacks that people use for a method that trains so; none where it has none.

        silent: of a model that answers with vectors or scores.
        """
        if silent:
            return self.encoders.get(method)
        if method not in get_args(Preference):
            return self.used_for.get(method)
        return self.preference.place if self.preference and self.prefers(method, trains) else None

    def prefers(self, method: Method, trains: str) -> bool:
        """Say whether it trains so by a method that takes preferences."""
        held = self.preference
        return held is not None and method in held.methods and trains in held.tunings

    @property
    def family(self) -> str:
        """The stack whose evidence stands for this one: the one it is like, else itself."""
        return self.like or self.name

    @property
    def accumulation(self) -> tuple[int, ...]:
        """Values of the no_sync axis: the framework's, and 0 where nothing accumulates."""
        return tuple(sorted({0, *self.no_sync}))

    def recipe(self, precision: str) -> StateBytes:
        """Return the bytes per parameter of a precision; those of bf16 where the stack states none."""
        return self.states.get(precision) or self.states["bf16"]  # type: ignore[call-overload]
