"""A question in a sentence, `planner does mixtral 8x7b fit on 2x a100 80gb`, as the words of a command with flags.

Every word is read as something, is one of those that say nothing, or is refused by name: none is left out unsaid.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager

from planner.catalog.load import Catalog
from planner.cli.accounted import unheard
from planner.cli.apart import apart
from planner.cli.asked_back import AskedBackError
from planner.cli.completed import (
    OPTIMAL,
    beside_own,
    filled,
    meant_methods,
    modeled,
    once_more,
    shown,
    source,
    typed,
    verb_of,
)
from planner.cli.drawn import drawn, longest_drawn
from planner.cli.implied import compared, for_a_time, one_machine, stages
from planner.cli.meaning import asked_of
from planner.cli.memory_of import memory_of
from planner.cli.named_work import NamedWork, named_work
from planner.cli.not_understood import decisive, is_open, is_whole, noted
from planner.cli.read_from import ReadFrom, places_of
from planner.cli.read_sizes import told_twice
from planner.cli.read_slips import of_a_size
from planner.cli.read_words import Sentence
from planner.cli.single import once, one_kind
from planner.cli.told import WORK, Told
from planner.cli.what_is_left import without
from planner.cli.written import words_of
from planner.errors import InputError

LOADS = frozenset(("users", "daily-users", "monthly-users", "rate", "concurrency", "documents", "samples", "requests",
                   "objective"))
"""Flags of a load, or of the most of it; whoever asks for a pace without one is alone."""
_ENDLESS = LOADS - {"documents", "samples"}
PRICED = frozenset(("model", "on", "own", "method", "quantization", "provider"))
"""Flags that leave the load open: what a million tokens cost is then told of a batch, which keeps the GPUs busy."""
_NOTHING: Mapping[str, str] = {}
_KIND = re.compile(r"^an? (?=[^0-9])")
_ONE = frozenset(("clip", "image", "video", "picture", "photo", "song"))
"""One of what is made, where no number of them is said."""
_SEEN = frozenset(("image", "images", "picture", "pictures", "photo", "photos", "screenshots", "image-text"))


@contextmanager
def _numbers() -> Iterator[None]:
    """Refuse a number that is none of what it counts. Raises InputError."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from None


def spoken(args: Sequence[str], catalog: Catalog, verb: str | None = None, beside: Mapping[str, str] = _NOTHING,
           told: Told | None = None) -> list[str] | None:
    """Return a command with flags that asks what the words ask, `verb` first where it is given; none of no question.

    beside: the flags that are given too. told: is told the words that are not understood and may be left out, as they
    count nothing and the rest says what it is about, and what was assumed.

    Raises InputError with the words that were not understood.
    """
    told = Told() if told is None else told
    noted_first: list[str] = []
    sentence = Sentence(drawn(words_of(args), noted_first), catalog, assumed=noted_first).read()
    flags, asks = sentence.flags, sentence.asks
    if sentence.refused and told.left_out is None:
        raise InputError("; ".join(sentence.refused))
    told.assumed += without(flags, sentence.excluded, catalog)
    told_twice(flags, catalog)
    _kept(asks, flags, sentence)
    source(asks, flags)
    asks |= {"step"} & set(sentence.words)
    asks |= {"one"} if _ONE.intersection(sentence.words) else set()
    if "saves" in asks and asks.isdisjoint(("serve", "tune", "train")) and not flags.get("method"):
        asks.add("train")  # what is saved is what is trained
        asks.discard("hold")
    meant_methods(flags, asks, sentence.words)
    if "lora-rank" in flags and "method" not in flags and "method" not in beside and "serve" not in asks:
        flags["method"] = ["lora"]
    if "rl" not in asks and "prompts" in flags:  # those of a step are of reinforcement learning
        flags.setdefault("input", flags.pop("prompts"))
    known = flags | {flag: [value] for flag, value in beside.items() if flag not in flags}
    work = named_work(known.get("model", ()), catalog)
    with _numbers():
        told.assumed += sentence.assumed + asked_of(sentence, known, work) + of_a_size(flags, catalog)
    longest_drawn(asks, flags, told.assumed)
    beside_own(asks, flags)
    if not _ENDLESS.isdisjoint(flags) and "input" not in flags and "samples" not in flags and "mean-length" in flags:
        flags["input"] = flags.pop("mean-length")  # of requests a mean length is that of their prompts
    flags.update((flag, [value]) for flag, value in sentence.usual.items() if flag not in flags and (
        flag != "deadline" or "utilization" not in flags))  # used every week is no run that is done in one
    if not flags and not asks:
        return None
    one_kind(flags)
    once(flags, told, many=len(flags.get("method", ())))
    _had(asks, flags, told.left_out)
    modeled(flags, asks, told, catalog)
    with _numbers():
        filled(flags, asks, told, catalog.recipes, work)
    given = flags.keys() | set(beside)
    chosen = "estimate" if "max" in flags else verb or verb_of(asks, flags, given)
    _seen(sentence, asks, flags, chosen)
    _settle(asks, flags, given, work)
    _imply(asks - ({"duration"} if work.makes else set()), flags, given, chosen, makes=bool(work.makes))
    compared(asks, flags, given, chosen, told)
    if told.left_out is not None:
        one_machine(sentence, asks, flags, chosen, catalog)
    if flags.get("method") == ["inference"] and "deadline" in flags and not (
            told.part or _ENDLESS.isdisjoint(flags)):
        for_a_time(flags, told)
    return _answered(sentence, chosen, flags, told, given, beside)


def _answered(sentence: Sentence, chosen: str, flags: dict[str, list[str]], told: Told, given: Set[str],
              beside: Mapping[str, str]) -> list[str]:
    """Return the command, and note those before it and what none of them carries. Raises InputError."""
    asks = sentence.asks
    command = typed(chosen, flags)
    _leave_out(sentence, sentence.asks, given, command, told)
    if "memory" in sentence.asks and (taken := memory_of(flags, sentence.catalog)):
        told.assumed.append(taken)
    if each := stages(sentence, flags, told):
        told.first += [(" ".join(stage["method"]), typed(chosen, stage)) for stage in each[:-1]]
    elif ways := apart(sentence, flags, told):
        if "model" not in flags and not asks.isdisjoint(("train", "tune")):
            raise AskedBackError(asks)
        chosen = "compare" if "model" not in flags else "plan"
        told.first += [(what, typed(chosen, way)) for what, way in ways[:-1]]
        each = [ways[-1][1]]
    command = typed(chosen, each[-1]) if each else once_more(sentence, chosen, flags, told) or command
    if told.left_out is not None:
        lost = unheard(sentence, flags, " ".join((*told.assumed, *told.left_out, *beside.values())))
        told.left_out[:0] = [each for each in lost if each not in told.left_out]
    return command


def _settle(asks: Set[str], flags: dict[str, list[str]], given: Collection[str], work: NamedWork) -> None:
    """Put each value in the place that it has for what the model does: a judge, what is not wanted, what it writes."""
    if len(named := flags.get("method", [])) > 1 and "reward-model" in named:
        named.remove("reward-model")  # who judges what another method trains
        flags["reward"] = ["model"]
    if named == ["on-policy-distillation"] and len(models := flags.get("model", [])) == 2 == len(work.sizes):
        # the larger one teaches
        teacher = models.pop(work.sizes.index(max(work.sizes)))
        flags["reward-model"] = [teacher]
    if "why-not" in asks and "on" in flags:
        # why not A instead of B: A beside B
        named = flags.pop("on")
        asked = named[:1] if "instead" in asks else named
        flags["why-not"] = [ReadFrom(f"gpu={name}", places_of(name) if asked == named else ()) for name in asked]
        if asked != named:
            flags["on"] = named
    if "unpriced" in flags:
        raise InputError(f"{flags['unpriced'][0]} is the price of a thing, and no budget, which is of a whole job or "
                         "of a month: say the budget, or what a GPU and hour costs (--price)")
    if len(rule := flags.get("tokens", [])) > 1 and OPTIMAL in rule:
        rule.remove(OPTIMAL)  # Chinchilla 70B is a model where its tokens are said
    if work.makes:
        _made(asks, flags, given)
    if "embed" in asks and "output" not in given:
        flags["output"] = ["0"]
    trains = not {"train", "tune"}.isdisjoint(asks) and (LOADS - {"samples"}).isdisjoint(given)
    runs = not {"serve", "hold"}.isdisjoint(asks) and "tokens" not in given and not trains and (
        "model" in given or "rent" not in asks)
    if (runs or (work.makes and asks.isdisjoint(("tune", "train")))) and not {"method", "documents"} & set(given):
        flags["method"] = ["inference"]


def _made(asks: Set[str], flags: dict[str, list[str]], given: Collection[str]) -> None:
    """Put what a model of images or clips is asked: samples are what it makes, and what it takes is that of one."""
    flags.pop("images", None)  # a sample is one
    flags.update({"max": ["batch"]} if flags.get("max") == ["micro-batch"] else {})
    alone = asks.isdisjoint(("train", "tune")) and (LOADS | {"deadline", "budget", "method"}).isdisjoint(given)
    flags.update({"samples": ["1"]} if alone and not asks.isdisjoint(("duration", "one")) else {})


def _leave_out(sentence: Sentence, asks: Set[str], given: Set[str], command: Sequence[str], told: Told) -> None:
    """Note the words that are not understood. Raises InputError where the answer may turn on one of them and the rest
    is no whole question, and where nothing else says what it is about.
    """
    if told.left_out is None:
        turns = [*map(repr, sentence.unread)]
    elif is_whole(given, sentence):
        told.left_out += [*noted(sentence), *sentence.barred]
        return
    else:
        if sentence.refused:
            raise InputError("; ".join(sentence.refused))
        turns = decisive(sentence)
        works = (bool(sentence.unread) or "duration" in asks) and {"model", "budget"}.isdisjoint(given) and (
            not asks.isdisjoint(("train", "tune", "serve", "batch", "generate"))) and asks.isdisjoint(
                ("rent", "buys", "rents", "largest"))
        if (is_open(given) or works) and not turns:
            raise AskedBackError(asks, noted(sentence))
        told.left_out += noted(sentence)
    if turns:
        raise InputError(f"not understood: {', '.join(turns)}; the rest reads as: planner {shown(command)}")


def _seen(sentence: Sentence, asks: Collection[str], flags: dict[str, list[str]], chosen: str) -> None:
    """Put what words say beside others: kinds of hardware that are compared, images of samples that a model reads."""
    if chosen == "compare" and "on" in flags:  # an H100 and an H200 are kinds, and no machines of one
        flags["on"] = [ReadFrom(_KIND.sub("", name), places_of(name)) if _KIND.match(name) else name
                       for name in flags["on"]]
    if "tune" in asks and "images" not in flags and _SEEN.intersection(sentence.words) and _sees(
            flags.get("model", []), sentence.catalog):
        flags["images"] = ["1"]


def _sees(names: Sequence[str], catalog: Catalog) -> bool:
    """Say whether a language model is named that reads images."""
    known = [catalog.known_model(name) for name in names]
    return any(model is not None and model.towers for model in known)


def _kept(asks: set[str], flags: dict[str, list[str]], sentence: Sentence) -> None:
    """Take what hardware alone costs, for a time or an hour, for what renting it does."""
    kinds = {amount.kind for amount in sentence.amounts}
    alone = "model" not in flags and {"on", "own"} & flags.keys()
    if alone and "energy" in asks and "time" in kinds and kinds <= {"time", "share", "money"} and "on" in flags:
        asks.add("rent")
        flags["own"] = list(flags["on"])  # what they draw is what owned ones cost
        flags.setdefault("utilization", ["100%"])
        sentence.assumed.append("the row 'owned' is what their electricity costs, and the power of their site with it")
    if alone and kinds <= {"time", "share", "money"} and any(
            amount.kind == "money" and amount.per for amount in sentence.amounts):
        asks.add("rent")  # a price that is quoted for hardware
    if "rent" in asks and "model" in flags and "on" not in flags and "own" not in flags:
        asks.discard("rent")  # what an API takes is set beside what the answer costs
        asks |= {"cost", "versus"}
    known = asks <= {"cost", "energy", "own", "fit"}
    if alone and kinds <= {"time", "share"} and ("worth" in asks or ("cost" in asks and known) or (
            "time" in kinds and len(flags.get("provider", ())) > 1)):
        asks.add("rent")


def _had(asks: Collection[str], flags: dict[str, list[str]], left_out: list[str] | None) -> None:
    """Leave the model out of what hardware costs to rent or to buy, where nothing says how much work it does."""
    if "rent" in asks and "on" in flags and left_out is not None and (WORK | LOADS).isdisjoint(flags):
        left_out += [f"{name} (how much work it is)" for name in flags.pop("model", [])]
        flags.pop("method", None)


def _imply(asks: set[str], flags: dict[str, list[str]], given: Collection[str], verb: str, *, makes: bool
           ) -> None:
    """Put the flags that follow from what is asked together with what is given."""
    counted = "samples" not in given and {"tokens", "epochs"} & set(given)  # of samples it is the default
    if "tune" in asks and "method" not in given and (makes or counted):
        flags["method"] = ["full"]
    if ("cost" in asks or (verb == "compare" and "rent" not in asks)) and "tune" not in asks and not makes:
        _price(asks, flags, given)
    runs = "duration" in asks and "method" not in given and not asks & {"train", "tune", "generate"}
    if runs and "model" in given and WORK.isdisjoint(given) and LOADS.isdisjoint(given):
        flags["method"] = ["inference"]
    paced = {"tpot", "ttft", "e2e"} & set(given) or (
        "duration" in asks and verb == "plan" and flags.get("method") == ["inference"])
    if paced and LOADS.isdisjoint(given):
        flags["users"] = ["1"]
    loaded = not LOADS.isdisjoint(given) or any(flag.startswith("tokens-per-") for flag in given)
    if "budget" in given and flags.get("method") == ["inference"] and not loaded:
        flags["objective"] = ["users"]
    if "longest" not in asks:
        return
    if not {"method", "tokens"} & set(given):
        flags["method"] = ["inference"]
    if verb == "estimate" or "method" in given:
        flags["max"] = ["sequence"]


def _price(asks: set[str], flags: dict[str, list[str]], given: Collection[str]) -> None:
    """Put the amount of work that what is named is priced by, where nothing says how much."""
    if not PRICED.issuperset(set(given) - ({"objective"} if flags.get("objective") == ["energy"] else set())) or (
            "model" not in given):
        return
    if "train" not in asks and flags.get("method") in (None, ["inference"]):
        flags.pop("method", None)
        flags["documents"] = ["1M"]
