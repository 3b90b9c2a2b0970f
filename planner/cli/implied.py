"""What follows from a sentence that says less than a plan needs: how much is trained where ways are compared, that
8 H100 are eight and no more, and that several stages are one behind the other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import get_args

from planner.catalog.load import Catalog
from planner.cli.completed import OPTIMAL
from planner.cli.read_words import Sentence
from planner.cli.told import GROWING, WORK, Told
from planner.scenario.hardware_names import candidate_nodes
from planner.scenario.posttraining import RlMethod
from planner.scenario.words import method_named
from planner.units import SECONDS, parse
from planner.units.reading import parse_count

_DAY = 86400.0
_MONTH = 30 * _DAY
"""A service is planned by the month."""
_TUNED = "100M"
"""Tokens by which ways to tune are compared, where nothing says how many."""
_STAGES = frozenset(("pretrain", "sft", "full", "dpo", "ppo", "grpo", "kto", "orpo", "simpo", "reward-model"))
"""Methods of which one follows another on the same model."""
_NODES = frozenset(("nodes", "machines", "boxes", "servers", "instances", "node"))
_NEEDS = frozenset(("take", "takes", "need", "needs", "needed", "require", "required"))
"""Words of what asks for as much as it takes."""
_COUNT = re.compile(r"(?:[a-z]+\d+[a-z]*[ -]?[x*:] ?(?P<behind>\d{1,3})|(?P<front>\d{1,3})\s?x?\s?\D.*)", re.ASCII)
_LOADED = frozenset((*GROWING, "documents", "tokens", "samples", "steps"))


def compared(asks: Collection[str], flags: dict[str, list[str]], given: Collection[str], verb: str, told: Told) -> None:
    """Put an amount of training where ways to train are compared and nothing says how much it is."""
    method = next(iter(flags.get("method", ())), "")
    trains = method not in ("", "inference") or not {"train", "tune"}.isdisjoint(asks)
    several = any(len(flags.get(flag, ())) > 1 for flag in ("global-batch", "seq-len", "precision"))
    if "tokens" in flags or not (WORK - {"deadline", "epochs"}).isdisjoint(given):
        return
    if told.part or not trains or "model" not in given or not {
            *GROWING, "documents"}.isdisjoint(given) or not (
                verb == "compare" or (several and "fit" not in asks) or "saves" in asks or "epochs" in flags or {
                    "cost", "train"} <= set(asks) or ("duration" in asks and {"fit", "oom", "rl"}.isdisjoint(asks))):
        return
    if method_named(method) in get_args(RlMethod):
        return  # of which a step is answered
    pretrains = method == "pretrain" or (method == "" and "tune" not in asks)
    flags["tokens"] = [OPTIMAL if pretrains else _TUNED]
    flags.setdefault("method", ["pretrain" if pretrains else "full"])
    told.assumed.append(f"how much is trained is not said: {flags['tokens'][0]} tokens are taken, and time and cost "
                        "grow with them")


def one_machine(sentence: Sentence, asks: Collection[str], flags: dict[str, list[str]], verb: str, catalog: Catalog
                ) -> None:
    """Limit a plan to the GPUs that a sentence counts: on 8 H100 are no 16, unless it asks how many, or for nodes."""
    named = flags.get("on", [])
    if verb != "plan" or len(named) != 1 or not {"gpus", "rl"}.isdisjoint(asks) or (
            _LOADED.isdisjoint(flags) and "deadline" not in flags) or not {
            "own", "gpus", "max-nodes"}.isdisjoint(flags):
        return
    count = _COUNT.fullmatch(named[0])
    words = sentence.words
    open_ = not _NODES.isdisjoint(words) or ("what" in words and not _NEEDS.isdisjoint(words))
    if count is None or open_ or int(count["behind"] or count["front"]) not in {
            catalog.node(name).gpus for name in candidate_nodes(named, catalog)}:
        return
    flags["max-nodes"] = ["1"]


def stages(sentence: Sentence, flags: Mapping[str, list[str]], told: Told) -> Sequence[Mapping[str, list[str]]]:
    """Return the flags of each stage of several, sft then dpo; none of other questions."""
    methods = flags.get("method", [])
    known = {str(method_named(name)) for name in methods}
    if len(methods) < 2 or not known <= _STAGES or "versus" in sentence.asks or told.part:
        return []
    alike = [flag for flag, values in flags.items() if len(values) == len(methods) and flag in _LOADED]
    told.assumed.append(f"{' and '.join(methods)} are stages of one model, one behind the other: each is answered, and "
                        "their times and costs add up")
    if not alike:
        told.assumed.append("how much is trained is said once, and taken for each of them")
    return [{**flags, "method": [method], **{flag: [flags[flag][at]] for flag in alike}}
            for at, method in enumerate(methods)]


def for_a_time(flags: dict[str, list[str]], told: Told) -> None:
    """Take how long a service runs for the time of its budget, as it has no end."""
    try:
        seconds = parse(flags["deadline"][0], SECONDS, "time", "1 year")
    except ValueError:
        return
    if seconds < _DAY:
        return
    span = flags.pop("deadline")[0]
    money = (flags.get("budget") or [""])[0]
    number, _, coin = money.partition(" ")
    if coin and "/" not in money:
        flags["budget"] = [f"{parse_count(number, 'budget') * _MONTH / seconds:.6g} {coin}/month"]
        told.assumed.append(f"{money} for {span} is a budget of {flags['budget'][0]}")
    else:
        told.assumed.append(f"a service runs on: {span} changes neither what it needs nor its price a month")
