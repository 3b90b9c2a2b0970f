"""Numbers with what they count, brought to what a question counts: words to tokens, hours of sound to pieces.

What each user asks becomes what all of them ask.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from planner.cli.named_work import NamedWork
from planner.cli.phrases import EACH, OF_TOKENS, noun_of
from planner.units import SECONDS, parse
from planner.units.reading import TOKENS, parse_count

IN_ALL = {"documents", "pages", "images", "clips", "recordings"}
"""Things that are made or answered in all, by a time and not each within it."""
TOGETHER = {"concurrent", "simultaneous", "parallel", "once", "concurrently", "simultaneously", "live"}
"""Words of what goes on at one time."""
ASKED = {*IN_ALL, "requests", "samples", "rollouts"}
"""What a user may ask for."""
TALKS = {"requests", "samples"}
"""What has turns."""
OF_EACH = {"of", "each", "apiece", "long", "average", "avg", "averaging", "mean", "length"}
"""Words beside a number that is how much each of something is."""
_MANY = 10**7
"""Tokens from which no request has so many."""
_SECOND = ("s", "sec", "second")
_TRANSACTIONS = 1000.0
"""Things done in a second at most that are no tokens."""
_QUERIES = ("query", "request", "call", "search")
"""What documents are of each of."""
WHO = ("user", "person", "head")


class Amount(NamedTuple):
    """A number with what it counts."""

    value: str
    """With its scale: 10k."""
    noun: str
    per: str
    """In which time, or for whom."""
    beside: frozenset[str]
    """Words around it."""
    text: str
    """As it stands in the sentence."""
    near: Mapping[str, int] = {}
    """Words of its part of the sentence up to the next number, and how far off each stands."""
    places: frozenset[int] = frozenset()
    """Of its own words in the sentence."""

    @property
    def kind(self) -> str:
        """What kind of thing is counted; empty where that is not known."""
        return noun_of(self.noun) or ""

    @property
    def number(self) -> float:
        """How many of what it counts, which need not be whole: 2.5, 37.5 requests a second. Raises ValueError."""
        return parse(self.value, TOKENS, self.noun or "number", "15 T")

    @property
    def of_each(self) -> bool:
        """Whether it is how much each of something is: of 512 tokens, 30 seconds each, five second clips."""
        return not self.per and bool(self.beside & OF_EACH)


def seconds_of(amount: Amount) -> float:
    """Return the seconds of a time."""
    return parse(time_of(amount), SECONDS, "time", "3 years")


def time_of(amount: Amount) -> str:
    """Return a time as it is written, its scale written out: 50k hours are 50000 hours."""
    scaled = amount.value[-1:].isalpha()
    return f"{parse_count(amount.value, 'time') if scaled else amount.value} {amount.noun}"


def in_tokens(amount: Amount, work: NamedWork, assumed: list[str]) -> Amount:
    """Return words, and pages of which each thing has some, as the tokens that they are."""
    pages = amount.kind == "pages" and amount.of_each
    if amount.kind != "words" and not pages:
        return amount
    words = work.text.words_per_page if pages else 1.0
    tokens = round(parse_count(amount.value, amount.noun) * words * work.text.tokens_per_word)
    assumed.append(f"{amount.value} {amount.noun} read as {tokens:,} tokens, {work.text.tokens_per_word:g} a word"
                   + (f" and {words:g} words a page" if pages else ""))
    return amount._replace(value=str(tokens), noun="tokens")


def heard(amounts: Sequence[Amount], work: NamedWork, assumed: list[str], put: Callable[..., None],
          *, tunes: bool) -> Sequence[Amount]:
    """Return numbers of sound as windows of the length that the model reads at once, which are its requests.

    An hour of sound is so many; a stream that is heard as it comes gives one in each of its lengths.
    """
    window = work.hears
    length = next((seconds_of(each) for each in amounts
                   if each.kind == "time" and each.of_each and "sound" not in each.beside), window)
    read: list[Amount] = []
    for amount in amounts:
        live = amount.kind == "streams" or (
            amount.kind in ("requests", "users", "recordings") and not amount.per and amount.beside & TOGETHER)
        if amount.kind == "time" and "sound" in amount.beside:  # 1,000 hours of audio
            many = math.ceil(seconds_of(amount) / window)
            assumed.append(f"{amount.value} {amount.noun} of sound are {many:,} pieces of {window:g} s, as much as the "
                           "model reads at once")
            read.append(Amount(str(many), "requests" if amount.per else "documents", amount.per, amount.beside,
                               amount.text, places=amount.places))
        elif live:
            rate = parse_count(amount.value, amount.noun) / window
            assumed.append(f"{amount.value} {amount.noun} are {rate:.4g} requests/s: each gives a piece of {window:g} "
                           f"s, as much as the model reads at once, every {window:g} s; whoever wants words sooner "
                           "sends pieces more often")
            read.append(Amount(f"{rate:.4g}", "requests", "s", frozenset(), amount.text, places=amount.places))
        elif amount.kind == "time" and amount.of_each:
            continue
        elif amount.kind in (*IN_ALL, "requests", "samples", "recordings"):
            pieces = max(1, math.ceil(length / window))
            if pieces > 1:
                assumed.append(f"{amount.text} of {length:g} s ({length / 60:g} minutes) are {pieces} pieces each of "
                               f"{window:g} s, as much as the model reads at once")
            noun = "documents" if not amount.per else "requests"
            read.append(amount._replace(value=f"{parse_count(amount.value, amount.noun) * pieces}", noun=noun))
        else:
            read.append(amount)
    if 0 < length < window or tunes:
        put("audio", f"{min(length, window):g}s")
    return read


def comes_in(amount: Amount) -> str:
    """Return in which time so many come, a day or a month; empty for those who are there at once."""
    time = "day" if "daily" in amount.beside else "month" if "monthly" in amount.beside else amount.per
    return {"day": "daily", "month": "monthly"}.get(time, "")


def of_each_user(amounts: Sequence[Amount], work: NamedWork, assumed: list[str]) -> Sequence[Amount]:
    """Return amounts with what each user asks in a time as what all of them ask: 50 users, one image a minute each.

    What is asked in turns is asked as often. Of those who come in a day, or who ask some times in one, each asks so
    often.
    """
    turned = next((amount for amount in amounts if amount.kind == "turns"), None)
    if turned is not None and any(amount.kind in TALKS for amount in amounts):
        turns = parse_count(turned.value, "turns")
        assumed.append(f"{turned.text} are as many requests")
        amounts = [_times(amount, turns) if amount.kind in TALKS else amount for amount in amounts
                   if amount.kind != "turns"]
    amounts = _of_each_request(_come(amounts, assumed) if work.embeds else amounts, assumed, embeds=work.embeds)
    users = [amount for amount in amounts if amount.kind == "users" and not amount.per]
    each = [amount for amount in amounts if amount.per and (SECONDS.factor(amount.per) or amount.per in WHO)
            and ({"each", *EACH} & amount.beside or amount.per in WHO) and amount.kind in ASKED]
    if len(users) != 1 or len(each) != 1:
        return amounts
    rest = [amount for amount in amounts if amount not in (users[0], each[0])]
    time = comes_in(users[0]) or {"day": "daily", "month": "monthly"}.get(each[0].per, "")
    if not time and each[0].per in WHO:
        return amounts
    if time and {"daily": "day", "monthly": "month"}[time] in (each[0].per, *WHO) and not work.makes:
        who = users[0]._replace(per="", beside=users[0].beside - {"daily", "monthly"} | {time})
        assumed.append(f"{each[0].text} of each of {users[0].text}")
        return [*rest, who, each[0]._replace(noun="requests", per="", beside=frozenset(("each", "comes")))]
    whole = parse_count(users[0].value, "users") * parse_count(each[0].value, each[0].noun)
    assumed.append(f"{each[0].text} of each of {users[0].text} are {whole:g} {each[0].noun} a {each[0].per}")
    return [*rest, each[0]._replace(value=f"{whole:g}", places=users[0].places | each[0].places)]


def _come(amounts: Sequence[Amount], assumed: list[str]) -> Sequence[Amount]:
    """Return what a model that writes nothing does in a second, its transactions, as requests and no tokens: 40 tps."""
    paces = [amount for amount in amounts if amount.kind == "tokens" and amount.per in _SECOND and (
        amount.number < _TRANSACTIONS)]
    assumed += [f"{amount.text} of a model that writes nothing is how many requests come a second" for amount in paces]
    return [amount._replace(noun="requests") if amount in paces else amount for amount in amounts]


def _of_each_request(amounts: Sequence[Amount], assumed: list[str], *, embeds: bool) -> Sequence[Amount]:
    """Return documents of each query with how many queries come as what comes of them: 100 docs per query, 50 a s."""
    each = [amount for amount in amounts if amount.kind == "documents" and (
        amount.per in _QUERIES or (embeds and not amount.per and amount.number > 1))]
    rates = [amount for amount in amounts if amount.kind in ("requests", "rate") and (
        amount.kind == "rate" or SECONDS.factor(amount.per))]
    if len(each) != 1 or len(rates) != 1:
        return amounts
    whole = rates[0].number * each[0].number
    assumed.append(f"{each[0].text}, {rates[0].text} are {whole:g} documents in that time, each read as a request")
    return [*(amount for amount in amounts if amount not in (each[0], rates[0])), rates[0]._replace(
        value=f"{whole:g}", places=rates[0].places | each[0].places)]


def _side(amount: Amount) -> str:
    """Return whether tokens are read or written, by the nearest word that says so; empty where none does."""
    near = [(far, side) for side in ("input", "output") for word, far in amount.near.items() if word in OF_TOKENS[side]]
    return min(near)[1] if near else ""


def both_sides(amounts: Sequence[Amount], work: NamedWork, assumed: list[str]) -> Sequence[Amount]:
    """Return tokens that are read and that are written in a time as requests of the usual prompt: 3B in, 300M out a
    day.
    """
    large = [amount for amount in amounts if amount.kind in ("tokens", "") and (
        amount.number >= _MANY)]
    read, written = ([amount for amount in large if _side(amount) == side] for side in ("input", "output"))
    time = next((each.per for each in (*read, *written) if SECONDS.factor(each.per)), "")
    if not time or len(read) != 1 or len(written) != 1 or read == written:
        return amounts
    whole, answers = (parse_count(each[0].value, "tokens") for each in (read, written))
    many, length = whole / work.usual.input, max(1, round(work.usual.input * answers / whole))
    assumed.append(f"{read[0].text} and {written[0].text} are {many:,.0f} requests a {time} of {work.usual.input:,} "
                   f"tokens each, the usual prompt, with answers of {length:,}: --input says how long yours are")
    rest = [amount for amount in amounts if amount not in (read[0], written[0])]
    return [*rest, read[0]._replace(value=f"{many:.0f}", noun="requests", per=time, beside=frozenset()),
            Amount(str(work.usual.input), "tokens", "", frozenset(("input",)), "", places=read[0].places),
            Amount(str(length), "tokens", "", frozenset(("output",)), "", places=written[0].places)]


def _times(amount: Amount, turns: int) -> Amount:
    return amount if turns == 1 else amount._replace(value=f"{parse_count(amount.value, amount.noun) * turns}")
