"""Sentences of answers that are drawn to learn from, or that are judged: their words as other sentences have them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from planner.catalog.load import Catalog
from planner.cli.phrases import REINFORCED
from planner.scenario.posttraining import PROMPT
from planner.units.reading import parse_count

JUDGED = frozenset(("dpo", "kto", "orpo", "simpo", "reward", "preference", "preferences"))
"""Words of methods that learn from answers which somebody has judged."""
_COUNT = r"\d[\d.,]{0,12}[km]?"
_ANSWERS = r"(?:answers?|responses?|completions?|replies)"
_HARDWARE = r"(?:[a-z]{1,9} )?[a-z]{0,5}\d{1,4}[a-z]{0,4}"
_DISTILLS = re.compile(r"\b(?:distill?|distilling|distillation)\b")
_ON_POLICY = re.compile(r" ?\bon[- ]policy\b")
_DRAWN: tuple[tuple[str, str], ...] = (
    (r" (?:with|and) (?:a|its|the) critic\b(?! of)", ""),  # ppo has one
    (rf"\b(?<!\d )prompts of (?:about |around )?({_COUNT}) tokens\b", r"\1 input tokens"),
    # 256 prompts x 16, 128 prompts times 8 answers
    (rf"({_COUNT}) prompts (?:x|times|by) ({_COUNT})(?! prompts)(?: (?:samples|rollouts|generations|{_ANSWERS})\b)?",
     r"\1 prompts , \2 rollouts"),
    (rf"\b({_COUNT}) (?:tokens? )?(?:per|an|each|a) (?:answer|response|completion|rollout)\b", r"\1 output tokens"),
    (rf"\b{_ANSWERS} (?:that )?(?:of |are |is )?(?:about |around |an )?(?:averaging|average|avg|mean)"
     rf"(?: of| about| around)? ({_COUNT})(?: tokens)?\b", r"\1 output tokens"),
    # 8 answers of 2000 tokens
    (rf"\b(\d{{1,3}}) {_ANSWERS} (?:of|with) (?:about |around |up to )?({_COUNT}) tokens\b",
     r"\1 rollouts , \2 output tokens"),
    (rf"(?<!tokens )\b(\d{{1,3}}) {_ANSWERS}\b(?! tokens)", r"\1 rollouts"),
    (r"\b(disaggregated|colocated|co-located)\b(?: rollouts)?", r"\1 rollouts"))
"""What reinforcement learning says of answers -> the same in counted nouns."""
_LEARNED: tuple[tuple[str, str], ...] = (
    (rf"\b({_COUNT}) (?:[a-z]{{4,12}} )?{_ANSWERS}\b", r"\1 samples"),
    (r"\bcomparison (?=pairs?\b|samples?\b)", ""))
"""What learning from judged answers says of them -> the same."""
_FOUR_BITS = re.compile(r"\b(?:4-?bit|int4|nf4) lora\b")
_BOTH = re.compile(
    rf"\b(?P<trainer>trainer|training|learner|train)(?P<on> on| with)? (?P<trains>\d{{1,4}}) (?P<what>{_HARDWARE})"
    rf"(?P<between>[ ,a-z]{{1,30}}) on (?P<draws>\d{{1,4}}) (?P<other>{_HARDWARE})\b")
"""Trainer on 16 H100, rollouts on 16 L40S."""
_NODE = 8
"""GPUs of a node, as most have."""
_SPLIT = re.compile(
    rf"\b(?P<draws>\d{{1,4}}) (?P<what>{_HARDWARE}) for (?:the )?(?:rollouts?|generation|sampling|inference)(?: ,)? "
    rf"(?:and|,) (?P<trains>\d{{1,4}}) (?:(?P=what) |more )?for (?:the )?(?:training|trainer|learner|updates)\b"
    rf"|\b(?P<trains2>\d{{1,4}}) (?P<what2>{_HARDWARE}) for (?:the )?(?:training|trainer|learner|updates)(?: ,)? "
    rf"(?:and|,) (?P<draws2>\d{{1,4}}) (?:(?P=what2) |more )?for (?:the )?"
    r"(?:rollouts?|generation|sampling|inference)\b")
"""16 H100 for generation and 8 for training."""


def drawn(words: Sequence[str], assumed: list[str]) -> list[str]:
    """Return the words of a sentence with its answers counted as what they are in it; of another as they are.

    assumed: is told what of it no flag carries.
    """
    text = " ".join(words)
    if _DISTILLS.search(text) and _ON_POLICY.search(text):
        text = _DISTILLS.sub("on-policy-distillation", _ON_POLICY.sub("", text), count=1)
    text = text.replace("rejection sampling", "rejection-sampling")
    rewarded = not REINFORCED.isdisjoint(text.split())
    if rewarded or not JUDGED.isdisjoint(words):
        text = _FOUR_BITS.sub("qlora", text)
    rules = _DRAWN if rewarded else () if JUDGED.isdisjoint(words) else _LEARNED
    for pattern, written in rules:
        text = re.sub(pattern, written, text)
    both = _BOTH.search(text) if rewarded else None
    counts = [int(both["trains"]), int(both["draws"])] if both else []
    if both and both["what"] != both["other"] and max(counts) > _NODE:  # of one node each they are node types
        most = sum(counts)
        assumed.append(f"{both['trains']} {both['what']} and {both['draws']} {both['other']} are {most} GPUs at most, "
                       "and how many train and how many draw is searched")
        text = (f"{text[:both.start()]}{both['trainer']}{both['on'] or ''} {both['what']}{both['between']} on "
                f"{both['other']} max-gpus {most}{text[both.end():]}")
    if rewarded and (split := _SPLIT.search(text)) is not None:
        draws, trains = (int(split[name] or split[f"{name}2"]) for name in ("draws", "trains"))
        assumed.append(f"{draws} GPUs that draw answers and {trains} that train are {draws + trains} in all, whose "
                       f"best split is searched: planner estimate --layout rollout_gpus={draws} holds this one")
        text = (f"{text[:split.start()]}{draws + trains} {split['what'] or split['what2']} disaggregated rollouts"
                f"{text[split.end():]}")
    return text.split()


def longest_drawn(asks: Collection[str], flags: dict[str, list[str]], assumed: list[str]) -> None:
    """Put the tokens of the longest answer that is drawn, with its prompt, where the longest is said, and note them."""
    for longest in flags.pop("longest", []) if "rl" in asks else []:
        prompt = parse_count(flags["input"][0], "input") if "input" in flags else round(PROMPT)
        most = parse_count(longest, "length") + prompt
        flags["max-model-len"] = [f"{most}"]
        assumed.append(f"answers of up to {longest} tokens to prompts of {prompt:,} are --max-model-len {most}")


def frameworks(words: Sequence[str], catalog: Catalog) -> list[str]:
    """Return what frameworks of reinforcement learning are called, where a sentence is about it."""
    if REINFORCED.isdisjoint(words):
        return []
    return [name for known, each in catalog.posttraining_law.frameworks.items() for name in (known, *each.aliases)]
