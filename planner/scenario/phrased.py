"""Values that people tell by another name and kind than the planner's: requests a day, p99 latency, days at most."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from planner.catalog.recipes import UsualRequests
from planner.errors import InputError
from planner.scenario.flag_names import DAILY_USERS, EACH_USER, SIZES
from planner.scenario.said import duration_of, own_name, rate_of
from planner.units import SECONDS
from planner.units.reading import MONEY, parse_count

LATENCIES = ("ttft", "tpot", "e2e")
TIMED = (*LATENCIES, "think", "deadline", "startup")
"""Values that are a time, whose name may end with its unit: --ttft-ms 500."""
PACES = ("tps", "tokens-per-second", "tok-s", "tokens-per-sec", "tokens-per-s")
"""Flags of how fast a user's answer comes, where somebody is there to read it."""
PEAKS = ("peak-factor", "peak-ratio", "peak-to-average", "peak-to-mean", "peak-multiplier", "burst-factor")
"""Flags of how many times the mean the busiest moment is."""
REPEATS = ("repeats", "num-repeats", "dataset-repeats", "image-repeats")
"""How often a pass takes each sample, as trainers of images have it."""
HELD = ("beta", "kl", "kl-coef", "kl-coefficient", "kl-loss-coef")
"""Flags of how strongly a policy is held to its reference, which is not there at 0."""
_MORNING = 8
_CROWD = 500.0
"""Tokens a second from which they are of many users."""
_EACH_USER = re.compile(r"(?:requests|queries|messages|calls)-per-(?:user|person)-(?:per|an?)-(hour|minute|min|day)")
_EACH = ("-per-user", "-user")
_TIMES = {"hour": "hour", "hourly": "hour", "month": "month", "monthly": "month", "day": "day", "daily": "day"}
_PERCENTILE = re.compile(r"(?:^|-)(p\d{2}(?:\.\d)?)(?=-|$)", re.ASCII)
"""Part of a flag's name that says at which percentile a latency is meant: --p99-latency."""


class Phrased(NamedTuple):
    """The planner's name, with dashes, and the value that is meant."""

    name: str
    value: str
    takes: tuple[str, ...] = ()
    """Other names whose values are in it, and are not given by themselves any more."""
    note: str = ""
    """What was assumed, in words."""


class _Told(NamedTuple):
    said: str
    value: str
    beside: Mapping[str, str]
    known: Collection[str]
    usual: UsualRequests


def phrased(said: str, value: str, beside: Mapping[str, str], known: Collection[str], usual: UsualRequests
            ) -> Phrased | None:
    """Return what is meant by a name, with dashes, that is none of the `known`; none where it is nothing of the kind.

    beside: the other values that are given, by the planner's names or as they are called.

    Raises InputError for a number that is none.
    """
    told = _Told(said, value, beside, known, usual)
    return next(filter(None, (rule(told) for rule in _RULES)), None)


def _at_percentile(told: _Told) -> Phrased | None:
    """Read --p99-latency and --ttft-p95-ms."""
    at = _PERCENTILE.search(told.said)
    inner = told.said.replace(at[0], "", 1).strip("-") if at is not None else ""
    if at is None or not inner:
        return None
    timed = _with_unit(told._replace(said=inner))
    latency = timed.name if timed else own_name(inner, LATENCIES)
    return Phrased(latency, f"{timed.value if timed else told.value} at {at[1]}") if (
        latency in LATENCIES and latency in told.known) else None


def _thinking(told: _Told) -> Phrased | None:
    """Read --think-time 20, which is of seconds, as users think neither hours nor milliseconds."""
    own = own_name(told.said, ("think",))
    plain = told.value.replace(".", "", 1).isdigit()
    return Phrased("think", f"{told.value} s") if own and plain and "think" in told.known else None


def _duration(told: _Told) -> Phrased | None:
    """Read --max-days 14."""
    unit = duration_of(told.said)
    return Phrased("deadline", f"{told.value} {unit}") if unit and "deadline" in told.known else None


def _pace(told: _Told) -> Phrased | None:
    """Read --min-tps 25 beside a load."""
    # no plural of --tp
    said = told.said.removeprefix("min-").removeprefix("target-").removeprefix("output-")
    if "tpot" in told.known and said.endswith(_EACH) and said.removesuffix("-user").removesuffix("-per") in PACES:
        return Phrased("tpot", f"{told.value} tokens/s")
    paced = said in PACES
    loaded = set(told.beside) & {"users", "concurrency", "rate"}
    return Phrased("tpot", f"{told.value} tokens/s") if paced and loaded else None


def _throughput(told: _Told) -> Phrased | None:
    """Read --tokens-per-second 5000 without a load, which nobody reads as fast: what all requests write together."""
    said = told.said.removeprefix("min-").removeprefix("target-").removeprefix("total-").removeprefix("output-")
    if said not in PACES or "rate" not in told.known or {"users", "concurrency", "rate", "documents"} & set(
            told.beside) or number(told.said, told.value) < _CROWD:
        return None
    output = parse_count(told.beside["output"], "output") if "output" in told.beside else told.usual.output
    rate = f"{number(told.said, told.value) / output:.6g}"
    return Phrased("rate", rate, (), f"{told.said} {told.value} is read as --rate {rate}: answers of {output:,} tokens")


def _factor(told: _Told) -> Phrased | None:
    """Read how many times as much: --peak-factor 3, --repeats 8."""
    said, value = told.said, told.value
    if said in PEAKS and "headroom" in told.known:
        return Phrased("headroom", f"{100 * (number(said, value.rstrip('xX')) - 1):.9g}%")
    if said in REPEATS and "epochs" in told.known:
        passes = number("epochs", told.beside.get("epochs", "1"))
        return Phrased("epochs", f"{number(said, value) * passes:.9g}", ("epochs",))
    return None


def _unheld(told: _Told) -> Phrased | None:
    """Read --beta 0, by which trainers leave the reference out."""
    held = told.said in HELD and "reference" in told.known and number(told.said, told.value) == 0.0
    return Phrased("reference", "none") if held else None


def _money_in_a_time(told: _Told) -> Phrased | None:
    """Read --max-cost-per-hour 100 and --monthly-budget 5k."""
    words = [word for word in told.said.split("-") if word not in ("max", "usd", "total", "per", "in")]
    time = next((_TIMES[word] for word in words if word in _TIMES), None)
    money = time and set(words) - _TIMES.keys() <= {"budget", "cost", "price", "spend", "dollars"}
    if not money or "budget" not in told.known or not (len(words) > 1 or "usd" in told.said):
        return None
    plain = told.value.strip().lstrip("$")
    return Phrased("budget", f"{plain} USD/{time}" if plain[-1:].isalnum() and "/" not in plain else told.value)


def _by_parameters(told: _Told) -> Phrased | None:
    """Read --tokens-per-param 20."""
    meant = told.said in ("tokens-per-param", "tokens-per-parameter", "tpp") and "tokens" in told.known
    return Phrased("tokens", f"{told.value} per parameter", ("tokens",)) if meant else None


def _size(told: _Told) -> Phrased | None:
    """Read --params 7B where no model is named."""
    return Phrased("model", told.value) if told.said in SIZES and "model" not in told.beside else None


def _with_unit(told: _Told) -> Phrased | None:
    """Read a name that ends with the unit of its value: --ttft-ms 500, --budget-usd 5000."""
    front, dash, unit = told.said.rpartition("-")
    own = own_name(front, told.known) if dash and told.value.strip()[-1:].isdigit() else None
    timed = own in TIMED and SECONDS.factor(unit)
    return Phrased(own, f"{told.value} {unit}") if own and (
        timed or (own in ("budget", "electricity") and MONEY.factor(unit))) else None


def _daily(told: _Told) -> Phrased | None:
    """Read people who come in a time, and each ask some times: --daily-users 50k --requests-per-user 8."""
    time = DAILY_USERS.get(told.said)
    if time is None or "rate" not in told.known:
        return None
    if "rate" in told.beside:
        raise InputError(f"--{told.said}: with --rate {told.beside['rate']} beside it; leave one out, or say how often "
                         "each of them asks by --requests-per-user 8")
    takes = next((name for name in EACH_USER if name in told.beside), None)
    each = number(takes, told.beside[takes]) if takes else float(told.usual.daily)
    asked = f"{parse_count(told.value, told.said) * each:.9g}/{time}"
    assumed = "" if takes else (f"{told.usual.daily} requests of each are assumed: --requests-per-user says your own; ")
    return Phrased("rate", asked, (takes,) if takes else (), (
        f"{told.said} {told.value} is read as --rate {asked}: {assumed}they are spread evenly over the {time}, and "
        "--peak-factor 3 says that the busiest moment has three times as many"))


def _of_each_user(told: _Told) -> Phrased | None:
    """Read --users 1000 --requests-per-user-per-hour 12 as what all of them ask."""
    each = _EACH_USER.fullmatch(told.said)
    if each is None or "users" not in told.beside or "rate" not in told.known:
        return None
    rate = f"{number('users', told.beside['users']) * number(told.said, told.value):.9g}/{each[1]}"
    return Phrased("rate", rate, ("users",), f"{told.value} {told.said.replace('-', ' ')} of {told.beside['users']} "
                   f"users are --rate {rate}")


def _rate(told: _Told) -> Phrased | None:
    """Read --requests-per-day 50k, and --tokens-per-day 2G by the tokens of a request."""
    if (peak := told.said.removeprefix("peak-")) != told.said and (own_name(peak, ("rate",)) or rate_of(peak)):
        return _peak(told, peak)
    rate = rate_of(told.said)
    if rate is None or "rate" not in told.known:
        return None
    tokens = rate[0] in ("token", "tokens")
    many = f"{_requests(told):.9g}" if tokens else told.value
    plain = tokens or rate[0].startswith("request")
    return Phrased("rate", f"{many}/{rate[1]}" if plain else f"{many} {rate[0]}/{rate[1]}")


def _hours(told: _Told) -> Phrased | None:
    """Read for how many hours of a day anybody asks, from eight in the morning: --hours-per-day 10."""
    if told.said not in ("hours-per-day", "hours-a-day", "daily-hours") or "day" not in told.known or not (
            {"rate", "users", "concurrency"} & set(told.beside)):
        return None
    hours = number(told.said, told.value.lower().removesuffix("h"))
    if not 1 <= hours <= 24 or hours % 1:
        raise InputError(f"--{told.said}: expected whole hours from 1 to 24, got {told.value!r}")
    factors = ["1" if (hour - _MORNING) % 24 < hours else "0" for hour in range(24)]
    return Phrased("day", ",".join(factors), (), f"{told.said} {told.value} is read as --day with so many hours from "
                   f"{_MORNING}h on, and nobody in the others")


def _peak(told: _Told, of: str) -> Phrased | None:
    """Read the rate of the busiest moment, beside the mean or alone: --peak-rps 40 --avg-rps 12."""
    if "headroom" not in told.known:
        return None
    mean = told.beside.get("rate")
    plain = mean is not None and mean.replace(".", "").isdigit() and told.value.replace(".", "").isdigit()
    if mean is not None and plain and own_name(of, ("rate",)):
        return Phrased("headroom", f"{100 * max(0.0, number(told.said, told.value) / number('rate', mean) - 1):.9g}%")
    return _rate(told._replace(said=of)) or Phrased("rate", told.value) if mean is None else None


_RULES: tuple[Callable[[_Told], Phrased | None], ...] = (
    _at_percentile, _hours, _thinking, _duration, _pace, _throughput, _of_each_user, _factor, _unheld, _money_in_a_time,
    _by_parameters, _size, _daily, _rate, _with_unit)


def number(flag: str, text: str) -> float:
    """Return a plain number, also 5k. Raises InputError."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return float(parse_count(text, flag))
    except (InputError, ValueError):
        raise InputError(f"--{flag}: expected a number, such as 3, got {text!r}") from None


def _requests(told: _Told) -> float:
    """Return the requests whose prompts and answers are so many tokens; lengths left open are the usual ones."""
    lengths = {"input": told.usual.input, "output": told.usual.output}
    total = sum(parse_count(told.beside[side], side) if side in told.beside else length
                for side, length in lengths.items())
    return parse_count(told.value, told.said) / total
