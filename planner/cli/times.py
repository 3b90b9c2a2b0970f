"""What a time of a sentence is: how long a run or a user may wait, a length of what is made or heard, how often."""

from __future__ import annotations

from planner.cli.about import NOTHING, Asides
from planner.cli.amounts import Amount, seconds_of, time_of
from planner.cli.phrases import PHRASES
from planner.errors import InputError
from planner.scenario.flag_names import LEFT_OUT
from planner.units import SECONDS

_SOURCED = {"rent", "buys", "rents"}
_FAILS = frozenset(word for word, asks in PHRASES.items() if asks == "fails") | {"mtbf", "lost"}
_SAVES = frozenset(word for word, asks in PHRASES.items() if asks == "saves") | {"saving", "writing"}
"""Words beside a time that something takes which no question has."""
_WHOLE = frozenset(("whole", "entire", "full", "complete", "e2e", "end-to-end", "round-trip", "total"))


def time_asked(amount: Amount, about: Asides) -> tuple[str, str]:
    """Return the flag of a time, and its value; no flag where it is none."""
    value, seconds = time_of(amount), seconds_of(amount)
    if "sound" in amount.beside:
        return _sounds(amount, about)
    if not amount.per and about.asks & _SOURCED and {"every", "each"} & amount.near.keys() and (
            time := next((word for word in ("week", "day", "month") if word in amount.near), "")):
        amount = amount._replace(per=time)  # every week 20 hours
    flag = None if amount.per else _how_often(amount, about)
    if flag is None and amount.per:
        return _of_a_time(amount, about)
    flag = about.placed("time", amount, seconds) if flag is None else flag
    if flag == "e2e" and _WHOLE.isdisjoint(amount.near):
        about.assumed.append(f"{value} are read as those of the whole answer: --ttft '{value}' asks for its first "
                             "token")
    if flag == "frames" or (amount.of_each and about.work.makes == "video"):
        frames = round(seconds * about.work.frames_per_second) + 1
        about.assumed.append(f"{value} are {frames} frames, {about.work.frames_per_second} a second")
        return "frames", str(frames)
    if flag == "audio" or (amount.of_each and (about.work.makes == "audio" or about.work.hears)):
        return "audio", f"{seconds:g}s"
    if flag != "years":
        return flag, value
    years = f"{seconds / (SECONDS.factor('y') or 1.0):.6g}"
    if value.split()[0] != years:
        about.assumed.append(f"{value} are {years} years")
    return flag, years


def _sounds(amount: Amount, about: Asides) -> tuple[str, str]:
    """Read hours of sound that are made, as pieces of the length that the model makes. Raises InputError for others."""
    value, length = time_of(amount), about.work.seconds
    if not length:
        raise InputError(f"{value} of sound: " + (
            "say in how many pieces of which length a model hears it, as in '1200 recordings of 5 minutes'"
            if about.work.models else "name the model that hears it, such as whisper-large-v3"))
    many = max(1, round(seconds_of(amount) / length))
    about.assumed.append(f"{value} of sound are {many:,} pieces of {length:g} s, as long as the model makes them "
                         "unless --audio says so")
    return ("rate", f"{many} clips/{amount.per}") if amount.per else ("samples", str(many))


def _of_a_time(amount: Amount, about: Asides) -> tuple[str, str]:
    """Read a time of each of something: 50 ms per token, busy 6 hours a day."""
    value = time_of(amount)
    if amount.per in ("token", "tokens", "tok"):
        return "tpot", value
    if amount.per in ("request", "prompt", "call", "image", "picture", "clip", "video") and about.serves:
        return "e2e", value
    whole = SECONDS.factor(amount.per) or 0.0
    if seconds_of(amount) > whole or not about.asks & _SOURCED:
        return "", value
    share = f"{100 * seconds_of(amount) / whole:.4g}%"
    about.assumed.append(f"{amount.text} are {share} of the time")
    return "utilization", share


def _how_often(amount: Amount, about: Asides) -> str | None:
    """Return what a time is by which something comes again: how often nodes fail or are saved is no key, and how often
    a model is tuned leaves each time to be done by the next; none of a time that nothing comes again in.
    """
    again = "every" in amount.beside
    for ask, words, key in (("fails", _FAILS, "mtbf"), ("saves", _SAVES, "checkpoint-interval")):
        if ask in about.asks and (again or not words.isdisjoint(amount.near)):
            about.assumed.append(f"{'every ' if again else ''}{amount.text} is left out: {LEFT_OUT[key]}")
            return NOTHING
    if again and about.tunes:
        about.assumed.append(f"every {amount.text}: each is planned to be done by the next")
        return "deadline"
    return "" if again else None
