"""What the numbers of a sentence are in a question: samples where a model is tuned are documents where it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.catalog.sized import size_of
from planner.cli.about import NOTHING, SERVING, Asides
from planner.cli.amounts import IN_ALL, TOGETHER, Amount, both_sides, comes_in, heard, in_tokens, of_each_user
from planner.cli.lengths import context, tokens_of
from planner.cli.money import money_of, paid_for
from planner.cli.named_work import NamedWork
from planner.cli.phrases import SIDES, noun_of
from planner.cli.places import PLACES
from planner.cli.read_from import ReadFrom
from planner.cli.times import time_asked
from planner.scenario.posttraining import usual_answers
from planner.units import SECONDS
from planner.units.reading import parse_count

if TYPE_CHECKING:
    from planner.cli.read_words import Sentence


def asked_of(sentence: Sentence, flags: Mapping[str, Sequence[str]], work: NamedWork) -> list[str]:
    """Put the flags that the numbers are, and return what was assumed; those that may be anything are left unread."""
    asks, put, unread = sentence.asks, sentence.put, sentence.unread
    amounts: Sequence[Amount] = sentence.amounts
    assumed: list[str] = []
    tunes = "tune" in asks or bool(set(flags.get("method", ())) - {"inference"})
    if work.sees and "ocr" in asks:
        amounts = [amount._replace(noun="images") if amount.kind == "pages" and amount.of_each else amount
                   for amount in amounts]
    amounts = [in_tokens(amount, work, assumed) for amount in amounts]
    amounts = both_sides(amounts, work, assumed)
    amounts = heard(amounts, work, assumed, put, tunes=tunes) if work.hears else amounts
    kinds = frozenset(amount.kind for amount in amounts)
    whole = any(amount.kind in IN_ALL and not amount.per for amount in amounts)
    if not tunes and (kinds & SERVING or any(
            amount.per and amount.per not in _DEVICES for amount in amounts if amount.kind not in _APART)):
        asks.add("serve")
    comes = any(amount.kind == "users" and comes_in(amount) for amount in amounts)
    about = Asides(asks, kinds, bool(asks & {"serve", "hold", "batch"}) and not tunes, tunes, whole, work, comes,
                   _hours(flags.get("day", ())), assumed, nouns=frozenset(sentence.nouns))
    rate = next((amount for amount in amounts if amount.kind == "fps"), None)
    if rate is not None and work.makes == "video":
        about = replace(about, work=work._replace(frames_per_second=max(1, parse_count(rate.value, "fps"))))
        amounts = [amount for amount in amounts if amount is not rate]
    for amount in of_each_user(amounts, work, assumed):
        flag, value = _flag(amount, about)
        if flag == NOTHING:
            sentence.heard.update(amount.places)
            continue
        if flag:
            put(flag, ReadFrom(value, amount.places))
        else:
            unread.append(amount.text)
    unread[:] = [word for word in unread if word not in about.used]
    flags = {**flags, **sentence.flags}
    if tunes and "images" in kinds and "images" not in flags:
        put("images", "1")
    if not tunes and work.sees and ("images" in kinds or {"ocr", "caption"} & asks) and (
            "images-per-request" not in {*flags, *sentence.flags}):
        put("images-per-request", "1")
    return assumed


def _hours(day: Sequence[str]) -> int:
    """Return how many hours of a day 9h-17h are."""
    first, _, last = (day[0] if day else "").replace("h", "").partition("-")
    return (int(last) - int(first)) % 24 if first.isdigit() and last.isdigit() else 0


def _users(amount: Amount, about: Asides) -> tuple[str, str]:
    return f"{comes}-users" if (comes := comes_in(amount)) else "users", amount.value


def _flag(amount: Amount, about: Asides) -> tuple[str, str]:
    """Return the flag that a number is, and its value; no flag where it is none, and NOTHING where it says nothing."""
    if amount.noun and noun_of(amount.noun) is None:
        sized = amount.value[-1:] == "B" and not amount.noun.endswith("s") and amount.noun != "draft"
        flag, value = _size(amount, about) if sized else ("", amount.value)
        return (flag, value) if flag != "model" or not about.work.models else ("", amount.value)
    if not amount.noun and _names_itself(amount) and (flag := about.placed("", amount)):
        return flag, amount.value
    kind = amount.kind or ("size" if amount.value[-1:] == "B" else "tokens" if amount.beside & SIDES or (
        amount.value[-1:] == "T" and not about.serves) else "")
    if not kind and amount.per in _DEVICES and not about.serves:
        return "per-device-batch", amount.value
    if not kind:
        return _bare(amount, about)
    if kind in _READ:
        return _READ[kind](amount, about)
    return (kind if kind in _ALIKE else ""), amount.value


def _names_itself(amount: Amount) -> bool:
    """Say whether a key's word stands right before a number, as in replies of 150."""
    return any(word in place.words and far <= _OF for place in PLACES[""] for word, far in amount.near.items())


def _bare(amount: Amount, about: Asides) -> tuple[str, str]:
    """Read a number of which nothing says what it counts: by the words around it."""
    at_peak = "peak" in amount.near and "users" in about.nouns - about.kinds and not amount.per
    if at_peak or (amount.beside & TOGETHER and not about.tunes):
        return "users" if at_peak else "concurrency", amount.value
    if paid := paid_for(amount, about.kinds):
        about.assumed.append(f"{amount.value} a {amount.per} is read as USD")
        return paid
    if amount.per and SECONDS.factor(amount.per) and not amount.noun and not about.tunes:
        return "rate", f"{amount.value} {_MADE.get(about.work.makes, 'requests')}/{amount.per}"
    if not amount.noun and (flag := about.placed("", amount) or _of_the_longest(amount, about)):
        return flag, amount.value
    if "at" in amount.beside:
        return ("resolution", f"{amount.value}x{amount.value}") if about.work.makes else ("seq-len", amount.value)
    return "", amount.value


def _of_the_longest(amount: Amount, about: Asides) -> str:
    """Return the flag of a number that is the most of a length: max 4096, up to 8k; none of others."""
    far = min((far for word, far in amount.near.items() if word in _MOST), default=_FAR)
    of_length = about.tunes or about.serves or about.kinds & SERVING
    return "longest" if of_length and far < _FAR and amount.number >= _LONG else ""


def _asked(amount: Amount, about: Asides) -> tuple[str, str]:
    """Read requests, documents and images: so many in a time, or in all."""
    kind, value = amount.kind, amount.value
    if flag := _of_prompts(amount, about):
        return flag, value
    if amount.per or "daily" in amount.beside:
        return _per_time(amount, about)
    if kind == "requests":
        return ("concurrency" if amount.beside & TOGETHER else "documents"), value
    drawn = kind not in ("images", "clips") or (about.work.sees and not about.work.makes)
    return ("documents" if drawn and not about.tunes else "samples"), value


def _of_prompts(amount: Amount, about: Asides) -> str:
    """Return the flag of prompts of a step or an epoch, of images of each request, and of what each user asks."""
    step = "step" in about.asks or ("rl" in about.asks and ("steps" in about.kinds or (
        amount.noun == "prompts" and "epochs" not in about.kinds and amount.number <= _DRAWN)))
    if amount.kind == "documents" and amount.per == "epoch":
        return "samples"
    asked = about.kinds & SERVING - {"requests"} and not about.asks & {"batch", "generate"}
    if amount.noun in ("prompt", "prompts") and amount.value[-1:] == "k" and not amount.per and asked:
        return "input"  # 10 users with 4k prompts
    if amount.kind in ("documents", "requests") and (amount.per == "step" or (step and amount.noun == "prompts")):
        return "prompts"
    served = not amount.per and about.kinds & SERVING and not about.asks & {"batch", "caption"}
    if amount.kind == "images" and about.work.sees and not about.tunes and (
            amount.of_each or served or amount.per in ("request", "prompt", "call")):
        return "images-per-request"
    if "comes" in amount.beside or ("each" in amount.beside and about.comes and (
            not amount.per or amount.per == "day")):
        return "requests-per-user"
    return ""


def _per_time(amount: Amount, about: Asides) -> tuple[str, str]:
    """Read how many come in a time: of a day whose hours are said, within these."""
    value, time = amount.value, amount.per or "day"
    if time == "day" and about.hours:
        about.assumed.append(f"{value} {amount.noun} a day are asked within {about.hours} hours of it")
        return "rate", f"{parse_count(value, 'requests') / about.hours:.6g} requests/hour"
    if (SECONDS.factor(time) or 0.0) >= _EVENLY:
        about.assumed.append(f"{value} {amount.noun} a {time} are spread evenly over the {time}; --peak-factor 3 "
                             "says that the busiest moment has three times as many")
    return "rate", f"{value} {amount.noun if about.work.makes else 'requests'}/{time}"


def _talks(amount: Amount, about: Asides) -> tuple[str, str]:
    """Read samples: of a model that runs they are conversations, each a request."""
    runs = not about.tunes and not about.work.makes and (amount.per or about.comes or "users" in about.kinds)
    if runs and amount.noun.startswith("conversation"):
        return _asked(amount, about)
    if about.asks & {"step", "rl"} and (amount.of_each or amount.per == "prompt"):
        return "samples-per-prompt", amount.value
    if "rl" in about.asks and "documents" in about.kinds and amount.number <= _GROUP:
        return "samples-per-prompt", amount.value  # 128 prompts, 8 samples
    drawn = about.asks & {"generate", "batch", "serve", "hold"} and not about.tunes and not about.work.makes
    if about.work.embeds and about.tunes and amount.noun.startswith("pair"):
        texts = 2 * parse_count(amount.value, "samples")
        about.assumed.append(f"{amount.text} are {texts:,} texts, each a sequence of the batch")
        return "samples", str(texts)
    return ("documents" if drawn and "train" not in about.asks else "samples"), amount.value


def _money(amount: Amount, about: Asides) -> tuple[str, str]:
    of_tokens = not {"token", "tokens", "mtok"}.isdisjoint(amount.near) and not amount.per
    if of_tokens and 0 < amount.near.get("per", 0) <= _OF + 1:
        about.assumed.append(f"{amount.text} per million tokens is what another takes: the USD/M tokens of the answer "
                             "are to be set beside it")
        return NOTHING, ""
    flag, value = money_of(amount)
    if flag == "electricity":
        about.used.update(("power", "electricity", "energy"))
    return flag, value


def _power(amount: Amount, about: Asides) -> tuple[str, str]:
    return "max-power", f"{amount.value} {amount.noun}"


def _rate(amount: Amount, about: Asides) -> tuple[str, str]:
    return "rate", f"{amount.value} {amount.noun}"


def _share(amount: Amount, about: Asides) -> tuple[str, str]:
    if "uptime" in about.asks:
        about.assumed.append(f"{amount.text} of the time is read as one replica more than the load needs, "
                             "--spare-replicas: nobody publishes how often a replica fails")
        return "spare-replicas", "1"
    return about.placed("share", amount), f"{amount.value}%"


def _rollouts(amount: Amount, about: Asides) -> tuple[str, str]:
    """Read answers drawn to a prompt, or in a step to all of its prompts."""
    if amount.per != "step":
        return "samples-per-prompt", amount.value
    drawn = usual_answers(None)
    prompts = max(1, parse_count(amount.value, "rollouts") // drawn)
    about.assumed.append(f"{amount.text} are those of {prompts:,} prompts, {drawn} of each")
    return "prompts", str(prompts)


def _size(amount: Amount, about: Asides) -> tuple[str, str]:
    """Read a size as a model of it; "a model" is none."""
    if "rl" in about.asks and (of := next((flag for flag, words in _ROLES.items() if not words.isdisjoint(
            (amount.noun, *(word for word, far in amount.near.items() if far <= 1)))), "")):
        about.used.add("reward")
        return of, amount.value.lower()
    size = size_of(amount.value.lower())
    if size is None or any(abs(size / named - 1) < _SAME for named in about.work.sizes):
        return NOTHING, ""  # of the model that is named
    return "model", amount.value.lower()


def _models(amount: Amount, about: Asides) -> tuple[str, str]:
    """Read how many models or jobs there are, which says nothing where they are named."""
    if size_of(amount.value.lower()) and amount.value[-1:] == "B":
        return _size(amount, about)  # 32b models
    return (NOTHING if parse_count(amount.value, "models") == about.work.models else ""), amount.value


_MOST = frozenset(("max", "maximum", "longest", "most", "up"))
_FAR = 3
_LONG = 64
"""Tokens from which a number may be a length."""
_ROLES = {"reward-model": frozenset(("reward", "judge", "rm")), "critic": frozenset(("critic", "value"))}
_MADE = {"image": "images", "video": "clips", "audio": "clips"}
_OF = 2
"""Words on from a number up to which a word names what it is: replies of 150."""
_DRAWN = 2048
"""Prompts of a step at most where nothing says what they are of; a data set has more."""
_GROUP = 128
"""Answers to a prompt at most; samples to learn from are more."""
_SAME = 0.1
"""Share by which a size may differ from that of the model that it tells of."""
_EVENLY = 86400.0
"""Seconds from which a time has busy and quiet hours."""
_DEVICES = ("gpu", "device", "card")
"""Of which a batch has so many each."""
_APART = ("money", "size", "time")
_ALIKE = ("adapters", "users", "epochs", "repeats", "steps", "gpus", "frames")
_READ: Mapping[str, Callable[[Amount, Asides], tuple[str, str]]] = {
    "tokens": tokens_of, "time": time_asked, **dict.fromkeys((
        "requests", "documents", "images", "clips", "pages", "recordings"), _asked), "samples": _talks,
    "money": _money, "power": _power, "rate": _rate, "share": _share, "size": _size,
    "rollouts": _rollouts,
    "users": _users, "context": context, "models": _models, "streams": lambda amount, about: (
        "concurrency", amount.value)}
