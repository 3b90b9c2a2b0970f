"""The flags of a sentence made whole: what follows from others, what is not modeled, and a second answer."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import get_args

from planner.catalog.load import Catalog
from planner.catalog.preference import Preference, Tuned
from planner.catalog.recipes import Recipes, UsualDrafts
from planner.cli.named_work import NamedWork
from planner.cli.phrases import REINFORCED
from planner.cli.plain_words import figure
from planner.cli.read_from import ReadFrom, places_of
from planner.cli.read_words import Sentence
from planner.cli.told import GROWING, WORK, Told
from planner.cli.within import by_night, got_through, longest, passes, repeated
from planner.errors import InputError
from planner.scenario.hardware_names import is_hardware
from planner.scenario.posttraining import RlMethod
from planner.scenario.unmodeled import Outsider, family_of
from planner.scenario.words import method_named, named
from planner.units.reading import parse_count

BARE = frozenset(("model", "on", "own", "gpus", "seq-len"))
"""Flags that leave open what a model is to do: whether it fits is answered for every method."""
PLANNED = frozenset(("own", "deadline", "budget", "samples", "documents", "users", "rate", "provider", "terms",
                     "price"))
"""Flags that a plan alone heeds."""
OPTIMAL = "chinchilla"
"""Tokens by which hardware is compared for training, where nothing says how many."""
ONE_VALUE = ("tokens", "samples", "documents", "rate", "users", "concurrency", "input", "output", "seq-len", "epochs",
             "mean-length", "budget", "steps", "e2e", "ttft", "tpot", "utilization", "prefix-hits", "lora-rank",
             "global-batch")
"""Flags of which a question has one value: of several each is answered."""
MOST = 4
"""Values that are answered one by one, at most."""
_COMPUTED = frozenset(("bf16", "fp16", "fp8", "fp32", "float16", "bfloat16"))
"""Formats of which training computes in, and stores no weights."""
GENERAL = ("peft", "rlhf", "rl", "rlvr", "reinforcement")
"""What a method is one of."""
_BEHIND = frozenset(("then", "after", "followed", "before", "afterwards", "vs", "versus", "or"))
"""Words between two methods that are one behind the other, or compared; a full DPO is one."""
_GPU = "h100-sxm"
"""GPU that is taken where two numbers of GPUs are compared, and none is named."""
_COUNT = re.compile(r"^\d+ ?x? ?")
_MOST_KNOWN = 0.99
"""Share of a prompt that may be known: its last token is always computed."""



def typed(verb: str, flags: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a verb with flags as a command."""
    return [verb, *(word for flag, values in flags.items() for word in (
        [f"--{flag}", ",".join(values)] if values else [f"--{flag}"]))]


def once_more(sentence: Sentence, verb: str, flags: dict[str, list[str]], told: Told) -> list[str]:
    """Return the command of a second answer, where a question has two, and note the first; none of other questions."""
    if len(counts := flags.get("gpus", [])) > 1:
        if not {"on", "own"} & flags.keys():
            flags["on"] = [_GPU]
            told.assumed.append(f"which GPUs they are is not said: {_GPU} is taken, and --on says others")
        verb = "plan" if verb == "compare" else verb
        told.first += [(f"on {each} GPUs", typed(verb, {**flags, "gpus": [each]})) for each in counts[:-1]]
        return typed(verb, {**flags, "gpus": counts[-1:]})
    apart = [flag for flag in ONE_VALUE if len(flags.get(flag, ())) > 1 and OPTIMAL not in flags[flag]][:1]
    if apart:
        verb = "plan" if verb == "compare" else verb
    if verb == "plan" and len(flags.get("model", ())) > 1 and "largest" not in sentence.asks:
        apart = ["model", *apart]
    if apart:
        each = [dict(zip(apart, values, strict=True)) for values in product(*(flags[flag] for flag in apart))]
        *before, last = ({**flags, **{flag: [value] for flag, value in one.items()}} for one in each)
        told.first += [(", ".join(value if flag == "model" else f"{flag} {value}" for flag, value in one.items()),
                        typed(verb, meant)) for one, meant in zip(each, before, strict=False)]
        return typed(verb, last)
    load = next((flag for flag in GROWING if flag in flags), "")
    if sentence.times != 1.0:
        if not load:
            raise InputError("what if there is more needs how much there is now: say so, as in '50 requests a second'")
        told.first.append(("now", typed(verb, flags)))
        number, space, unit = flags[load][0].partition(" ")
        grown = f"{figure(parse_count(number, load) * sentence.times)}{space}{unit}"
        told.assumed.append(f"{sentence.times:g} times as much is --{load} '{grown}'")
        return typed(verb, {**flags, load: [grown]})
    if "why-fit" in sentence.asks and verb == "estimate" and "layout" not in flags:
        alone = "offload_optimizer=0,offload_parameters=0,offload_activations=0"
        told.first.append(("with nothing on the host", typed(verb, {**flags, "layout": [alone]})))
        return typed(verb, flags)
    return []


def modeled(flags: dict[str, list[str]], asks: Collection[str], told: Told, catalog: Catalog) -> None:
    """Leave hardware out that is not modeled where other is named beside it. Raises InputError where none is."""
    named = flags.get("on", [])
    families = {name: family for name in named if (family := _unmodeled(name, catalog)) is not None}
    if not families:
        return
    rest = [name for name in named if name not in families]
    for name, family in families.items():
        if not rest:
            nearest = re.split(r"[ ,]", family.nearest)[0]
            command = typed(verb_of(asks, flags, flags.keys()), {**flags, "on": [nearest]})
            raise InputError(f"{name!r} is {family.what}, which is not modeled; the nearest that is: {family.nearest}; "
                             f"planner {shown(command)} asks about that")
        told.assumed.append(f"{name} is {family.what}, which is not modeled: {', '.join(rest)} alone is planned for")
    flags["on"] = rest


def _unmodeled(name: str, catalog: Catalog) -> Outsider | None:
    return None if is_hardware(name, catalog) else family_of(name)


def meant_methods(flags: dict[str, list[str]], asks: set[str], words: Sequence[str]) -> None:
    """Take what a method is one of for no other than the one that is named, and instead of for what it asks."""
    methods = flags.get("method", [])
    if len(methods) > 1:
        flags["method"] = [name for name in methods if name not in GENERAL] or methods
    tuned = [name for name in methods if name != "sft" and method_named(name) in get_args(Tuned)]
    post_trained = [name for name in methods if method_named(name) in (*get_args(RlMethod), *get_args(Preference))]
    places = sorted(place for name in (*tuned, *post_trained) for place in places_of(name))
    if len(tuned) == 1 and len(post_trained) == 1 and places and _BEHIND.isdisjoint(words[places[0]:places[-1]]):
        flags["method"], flags["tuning"] = post_trained, [str(method_named(name)) for name in tuned]
    if REINFORCED.intersection(methods):
        asks.add("rl")
    if "instead" in asks:
        asks.add("why-not" if "why" in asks else "versus")
    if "longest" in asks and asks & {"train", "tune"} and not methods:
        flags["method"] = ["full" if "tune" in asks else "pretrain"]
    if "longest" in asks and "own" in flags and "on" not in flags:
        flags["on"] = flags.pop("own")


def filled(flags: dict[str, list[str]], asks: Collection[str], told: Told, recipes: Recipes,
           work: NamedWork) -> None:
    """Take a batch for what is worked on at once, and a context of what is served for prompts that fill it."""
    usual, drafts = recipes.requests, recipes.drafts
    repeated(flags, told)
    if "grad-accum" in flags and (batch := flags.get("batch") or flags.get("global-batch")):
        flags.setdefault("per-device-batch", batch)  # beside what is accumulated a batch is that of a GPU
        flags.pop("batch", None)
        flags.pop("global-batch", None)
    if "per-device-batch" in flags and not {"global-batch", "batch"}.isdisjoint(flags):
        told.assumed.append(f"{flags.pop('per-device-batch')[0]} per GPU is left out: how a batch is split is planned")
    if "context" in flags and not {*GROWING, "objective"}.intersection(flags):
        flags["seq-len"] = flags.pop("context")
    if "batch" in flags and not work.makes:
        tuned = set(flags.get("method", ())) - {"inference"}
        trains = tuned or WORK.intersection(flags) or {"train", "tune"}.intersection(asks)
        runs = not tuned and ({"serve", "hold"}.intersection(asks) or not trains)
        flags["concurrency" if runs else "global-batch"] = flags.pop("batch")
    if known_tokens := flags.pop("prefix", []):
        known = parse_count(known_tokens[0], "tokens")
        input_ = flags.setdefault("input", [f"{known + usual.input}"])[0].removesuffix(" tokens")
        share = min(_MOST_KNOWN, known / parse_count(input_, "input"))
        flags.setdefault("prefix-hits", [f"{math.floor(100 * share)}%"])
        told.assumed.append(f"{known_tokens[0]} of {input_} prompt tokens that are the same every time are "
                            f"--prefix-hits {flags['prefix-hits'][0]}")
    by_night(flags, told)
    _drafted(flags, asks, told, drafts)
    _computed(flags, told)
    longest(flags, told, usual)
    passes(flags, asks, told)
    got_through(flags, asks, told)
    if (whole := flags.pop("all-tokens", [])) and "documents" not in flags:
        side = "output" if "generate" in asks else "input"
        usual_length = usual.output if side == "output" else min(usual.input, work.length or usual.input)
        length = parse_count(flags[side][0], side) if side in flags else usual_length
        flags[side], flags["documents"] = [str(length)], [str(max(1, parse_count(whole[0], "tokens") // length))]
        told.assumed.append(f"{whole[0]} tokens are read as {int(flags['documents'][0]):,} pieces of {length:,}: "
                            f"--{side} says how long yours are")
    context = flags.pop("context", [])
    if not context:
        return
    if "input" in flags or "tokens" in flags or "documents" in flags or "method" in flags:
        flags.setdefault("seq-len", context)
        return
    output = parse_count(flags["output"][0], "output") if "output" in flags else usual.output
    lengths = [parse_count(each, "context") for each in context]
    if min(lengths) <= output:
        flags["seq-len"] = context
        return
    flags["input"] = [ReadFrom(f"{length - output}", places_of(each))
                      for length, each in zip(lengths, context, strict=True)]
    hits = flags.setdefault("prefix-hits", [f"{usual.known:.0%}"])[0]
    told.assumed += [f"a context of {each} is read as prompts of {length - output:,} tokens and answers of {output:,}, "
                     f"and {hits} of a prompt as known from the turn before: --input and --prefix-hits say your own"
                     for length, each in zip(lengths, context, strict=True)]


def _drafted(flags: dict[str, list[str]], asks: Collection[str], told: Told, drafts: UsualDrafts) -> None:
    """Put how many tokens are drafted, and how many of them are taken."""
    if taken := flags.pop("acceptance", []):
        flags["speculative"] = [f"{drafts.tokens}:{float(taken[0].removesuffix('%')) / 100:g}"]
        told.assumed.append(f"{drafts.tokens} tokens are drafted at a time, and {taken[0]} of them taken: "
                            "--speculative says how many of yours")
    elif "speculative" in asks:
        flags.setdefault("speculative", [f"{drafts.tokens}:{drafts.acceptance:g}"])
        told.assumed.append(f"{drafts.tokens} tokens are drafted at a time, and {drafts.acceptance:.0%} of them taken "
                            f"({drafts.example}): --speculative says your own")


def _computed(flags: dict[str, list[str]], told: Told) -> None:
    """Take the format of what is trained for the one that it is computed in."""
    stored = {str(named("workload.quantization", each)) for each in flags.get("quantization", ())}
    if flags.get("method") == ["lora"] and stored and stored <= {"int4", "nf4", "int8"}:
        del flags["quantization"]
        if stored == {"int8"}:
            told.assumed.append("LoRA on weights in 8 bits is not modeled: planned for on bf16 ones, which take twice "
                                "as much; --method qlora has them in 4 bits")
            return
        flags["method"] = ["qlora"]
        told.assumed.append("LoRA on weights in 4 bits is QLoRA")
    trained = {"tokens", "samples"} & set(flags) and "method" not in flags
    trained = trained or not {"pretrain", "full", "sft"}.isdisjoint(flags.get("method", ()))
    if trained and "documents" not in flags and set(flags.get("quantization", ())) <= _COMPUTED:
        flags.update({"precision": flags.pop("quantization")} if "quantization" in flags else {})


def source(asks: set[str], flags: dict[str, list[str]]) -> None:
    """Take buying and renting in one sentence for the question which of both, and buying alone for terms."""
    others = {"--terms=spot", "--terms=reserved-1y,reserved-3y"}
    commits = "--terms=on-demand" in asks and not others.isdisjoint(asks) and "model" not in flags
    if {"worth", "--terms=spot"} <= asks and flags.get("terms") == ["spot"]:
        flags["terms"] = ["on-demand", "spot"]  # whether it is worth it shows beside what it is instead of
        asks.add("versus")
    if {"buys", "rents"} <= asks or commits:
        asks.add("rent")
    elif "buys" in asks and "rent" not in asks:
        flags.setdefault("terms", ["buy", "on-demand"])


def beside_own(asks: set[str], flags: dict[str, list[str]]) -> None:
    """Take buying or renting for a load on what is owned for more of it: what is there is kept."""
    if "rent" in asks and {"own", "model"} <= flags.keys() and not set(GROWING).isdisjoint(flags):
        asks -= {"rent", "versus"}
        flags.setdefault("on", [_COUNT.sub("", name) for name in flags["own"]])
        flags["terms"] = ["buy", "on-demand"]


def shown(command: Sequence[str]) -> str:
    """Return a command as it is typed."""
    return " ".join(f"'{word}'" if set(word) & set(" $(;&|*") else word for word in command)


def verb_of(asks: Collection[str], flags: Mapping[str, Sequence[str]], given: Collection[str]) -> str:
    """Return the verb that answers what is asked."""
    if "why-not" in asks:
        return "explain"
    kinds = sum(len(flags.get(flag, ())) for flag in ("on", "own"))
    if "rent" in asks or ("better" in asks and kinds > 1) or (
            "versus" in asks and "model" in given and _choices(flags)):
        return "compare"
    step = {"step-time", "tokens"}.intersection(asks) and {"on", "own"} & set(flags) and WORK.isdisjoint(flags)
    several = sum(len(flags.get(flag, ())) for flag in ("on", "own")) > 1
    if step or ({"why-fit", "makes"}.intersection(asks) and flags.get("on") and not several and PLANNED.isdisjoint(
            given)):
        return "estimate"
    if "passes" in asks or ("largest" in asks and {"model", "max"}.isdisjoint(given)):
        return "plan"
    layout = {"fit", "longest"}.intersection(asks) and not several and (PLANNED - (
        {"users"} if "longest" in asks else set())).isdisjoint(given)
    hardware = "max" in given or "on" in given or WORK.isdisjoint(given)
    bare = BARE.issuperset(given) and not ("longest" in asks and "on" in given)
    return "estimate" if layout and hardware and not bare else "plan"


def _choices(flags: Mapping[str, Sequence[str]]) -> bool:
    """Say whether there are things of one kind to compare."""
    hardware = sum(len(flags.get(flag, ())) for flag in ("on", "own"))
    return hardware != 1 or any(len(values) > 1 for values in flags.values())
