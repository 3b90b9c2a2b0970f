"""What people call methods, formats, optimizers, terms and goals, with the one name that the planner has for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from planner.catalog.hardware import Precision
from planner.catalog.preference import Tuned
from planner.catalog.price import Term
from planner.catalog.stack import Method, Reference, Weights
from planner.errors import InputError
from planner.scenario.limits import ServingObjective
from planner.scenario.posttraining import RlMethod
from planner.scenario.serving import CacheFormat, Disaggregated, Quantization
from planner.scenario.workload import Loss, Optimizer

_PRECISIONS = {"bf16": "bfloat16", "fp16": "float16 half f16", "fp32": "float32 single f32", "fp8": "float8 f8 e4m3",
               "int8": "8bit", "int4": "4bit", "mxfp8": "mx8"}


def _formats(names: tuple[str, ...]) -> dict[str, str]:
    return {name: said for name, said in _PRECISIONS.items() if name in names}


SYNONYMS: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "workload.kind": (("training", "serving", "diffusion", "generation", "posttraining"), {
        "training": "train", "serving": "service serve inference llmserving batch batchinference offline "
                                         "offlineinference embedding embeddings chat completion",
        "diffusion": "diffusiontraining",
        "generation": "imagegeneration videogeneration diffusioninference",
        "posttraining": "rl rlhf reinforcementlearning"}),
    "workload.method": ((*get_args(Method), *get_args(RlMethod)), {
        "grpo": "dapo gspo drgrpo gropo rl rlvr reinforcementlearning", "rloo": "leaveoneout",
        "reinforce": "reinforceplusplus reinforcepp",
        "on-policy-distillation": "opd gkd", "rejection-sampling": "raft bestofn rft rejectionsamplingfinetuning",
        "pretrain": "pretraining fromscratch cpt continuedpretraining",
        "full": "sft dreambooth finetune finetuning fullfinetune fullfinetuning fullft fft fullparameter fullweights "
                "supervisedfinetuning",
        "lora": "loraft lorafinetuning dreamboothlora peft adapter adapters rslora loraplus pissa",
        "qlora": "qlorafinetuning",
        "dpo": "directpreferenceoptimization dpotuning dpotraining preference preferencetuning "
               "preferenceoptimization ipo cdpo rdpo sppo apo nca robustdpo tdpo",
        "kto": "kahnemantverskyoptimization bco", "orpo": "oddsratiopreferenceoptimization",
        "simpo": "simplepreferenceoptimization cpo",
        "reward-model": "rm reward rewardmodeling rewardmodelling rewardmodeltraining rewardtraining",
        "inference": "infer serving serve embed embedding embeddings batchinference offlineinference deploy "
                     "deployment"}),
    "workload.reference": (get_args(Reference), {
        "adapters-off": "adapteroff disabledadapters", "precomputed": "precompute precomputedlogprobs"}),
    "workload.tuning": (get_args(Tuned), {
        "full": "fullfinetune fullfinetuning fullft fft fullparameter fullweights",
        "lora": "peft adapter adapters", "qlora": "4bitlora lora4bit"}),
    "workload.precision": (get_args(Precision), _formats(get_args(Precision))),
    "workload.quantization": (get_args(Quantization), _formats(get_args(Quantization)) | {
        "bf16": "bfloat16 fp16 float16 none 16bit 16", "int8": "8bit w8a8 8", "int4": "4bit awq gptq gptqint4 4",
        "nvfp4": "fp4", "gptq-int8": "int8gptq", "nf4": "bnb bitsandbytes",
        "q8_0": "q8 8bitgguf", "q6_k": "q6", "q5_k_m": "q5 q5k", "q4_k_m": "q4 q4k gguf ggufq4 4bitgguf",
        "q3_k_m": "q3 q3k", "q2_k": "q2"}),
    "workload.kv_cache": (get_args(CacheFormat), {
        "auto": "default", "bf16": "bfloat16 fp16 float16 16bit", "fp8": "fp8e4m3 fp8e5m2 float8 8bit",
        "nvfp4": "fp4"}),
    "workload.optimizer": (get_args(Optimizer), {
        "adamw": "adam adamwtorch adamwtorchfused adamwfused fusedadamw fusedadam",
        "adamw-8bit": "adam8bit 8bitadam 8bitadamw adamwbnb8bit bnbadamw8bit", "adamw-4bit": "4bitadamw adam4bit",
        "sgd-momentum": "sgd", "paged-adamw": "pagedadamw32bit", "paged-adamw-8bit": "8bitpagedadamw pagedadam8bit"}),
    "workload.loss": (get_args(Loss), {
        "plain": "crossentropy ce standard", "fused": "liger cce cutcrossentropy fusedlinearcrossentropy"}),
    "workload.disaggregated": (get_args(Disaggregated), {"no": "off false none never", "allowed": "yes true on",
                                                         "only": "always must"}),
    "workload.arrivals": (("poisson", "cv=0"), {"poisson": "random exponential",
                                                "cv=0": "constant uniform steady even"}),
    "sourcing.rent.providers": (("aws", "azure", "gcp", "lambda", "oci"), {
        "aws": "amazon amazonwebservices ec2", "azure": "microsoft msft", "gcp": "google googlecloud gce",
        "lambda": "lambdalabs lambdacloud", "oci": "oracle oraclecloud"}),
    "sourcing.rent.regions": (("europe", "us", "canada", "asia"), {
        "europe": "eu emea europeanunion", "us": "usa unitedstates america northamerica", "asia": "apac asiapacific"}),
    "sourcing.rent.terms": (get_args(Term), {
        "on-demand": "payg payasyougo standard rent rental renting hourly",
        "spot": "preemptible interruptible lowpriority",
        "reserved-1y": "1y 1year oneyear reserved1year 1yearreserved reservedoneyear 1yrreserved",
        "reserved-3y": "3y 3year threeyear reserved3year 3yearreserved reservedthreeyear 3yrreserved",
        "capacity-block": "capacityblocks block"}),
    "objective": (get_args(ServingObjective), {
        "users": "people mostusers maxusers concurrency",
        "rate": "throughput requests mostrequests largestrate maxrate highestrate",
        "cost": "cheapest cheap price money usd dollars lowestcost minimumcost mincost",
        "time": "fastest fast speed duration quickest days hours soonest mintime",
        "gpus": "smallest fewest fewestgpus gpu mingpus leastgpus", "energy": "greenest kwh lowestenergy leastenergy"}),
}
"""Scenario value -> its names, and for each the other words for it: small letters and digits, others left out. Methods
that differ in their loss or start alone have one step and one name (IPO is DPO)."""


LARGEST = ("largest", "largest-model", "biggest", "model-size")
"""Goals that are no number to minimize: which model is the largest that the hardware holds."""


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


_MEANT = {path: {_plain(word): name for name in names for word in (name, *said.get(name, "").split())}
          for path, (names, said) in SYNONYMS.items()}


BLOCKS: Mapping[str, str] = {"workloads": "workload", "jobs": ""}
"""Lists of blocks, with the path that the keys of each are named by."""


def _spoken_as(method: str, tuning: str) -> tuple[str, str | None]:
    """Return the method and the tuning that both words together mean: supervised tuning goes by what trains."""
    return (tuning, None) if method == "full" else (method, tuning)


_TOGETHER = {_plain(both): _spoken_as(method, tuning)
             for word, tuning in _MEANT["workload.tuning"].items() for said, method in _MEANT["workload.method"].items()
             if said in ("sft", "supervisedfinetuning") or method not in get_args(Weights)
             for both in (word + said, said + word)}
"""Words that say both, such as "LoRA DPO" and "dpo-qlora" -> the method and the tuning."""


def in_our_words(data: object) -> object:
    """Return what a file holds with every word that has synonyms as the one that the planner has for it."""
    return _renamed(data, "")


def _renamed(data: object, path: str) -> object:
    if path in BLOCKS and isinstance(data, list):
        return [_renamed(each, BLOCKS[path]) for each in data]
    if isinstance(data, dict):
        data = _apart(data) if path == "workload" else data
        return {key: _renamed(value, f"{path}.{key}" if path else str(key)) for key, value in data.items()}
    return named(path, data)


def _apart(work: dict[Any, object]) -> dict[Any, object]:
    """Return a workload whose method says the tuning too with both on their own. Raises InputError for another one."""
    said, given = work.get("method"), named("workload.tuning", work.get("tuning"))
    both = _TOGETHER.get(_plain(said)) if isinstance(said, str) else None
    if both is None:
        return work
    method, tuning = both
    if given not in (None, tuning or method):
        raise InputError(f"method {said!r} says {tuning or method}, and tuning says {given!r}: give one of them")
    return {**work, "method": method} | ({} if tuning is None else {"tuning": tuning})


def method_named(said: object) -> object:
    """Return the method that a word means, alone or with what trains beside it, such as `grpo-lora`."""
    both = _TOGETHER.get(_plain(said)) if isinstance(said, str) else None
    return named("workload.method", said) if both is None else both[0]


def named(path: str, value: object) -> object:
    """Return the name of what a scenario value says, in any case and spelling; a word that is none of its as it is."""
    if isinstance(value, list | tuple):
        # awq, int4 are one format; int4, int4 is a slip
        values = [named(path, each) for each in value]
        return [each for at, each in enumerate(values) if each not in values[:at] or value[at] in value[:at]]
    known = _MEANT.get(path)
    return value if known is None or not isinstance(value, str) else known.get(_plain(value), value)


WORKS = ("task", "workload_type", "job_type", "mode", "type")
"""Keys under which people name the kind of work beside its method."""
_TUNES = ("finetune", "finetuning", "tune", "tuning", "train", "training", "peft")
"""Kinds of work that every way to tune is one of."""


def says_no_more(work: object, method: object) -> bool:
    """Say whether a kind of work says nothing beside a method that is one of it: finetune beside lora."""
    return isinstance(work, str) and _plain(work) in _TUNES and (
        named("workload.method", method) in SYNONYMS["workload.tuning"][0])
