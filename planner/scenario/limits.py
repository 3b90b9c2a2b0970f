"""What the plan must respect and what it should minimize."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, field_validator, model_validator

from planner.catalog.price import Term
from planner.errors import About
from planner.scenario.demand import Confidence
from planner.units import (
    DAY,
    SECONDS,
    YEAR,
    Gpus,
    Money,
    MoneyPerGpuHour,
    MoneyPerKwh,
    Nodes,
    Quantity,
    Seconds,
    Watts,
    exact,
    parse,
    trimmed,
)
from planner.units.reading import MONEY_PER_HOUR
from planner.yaml_io import Frozen, absent, empty

MOST = 10**7
"""Largest GPU or node count a limit may name; no cluster comes near."""
Objective = Literal["cost", "time", "gpus", "energy"]
ServingObjective = Literal[Objective, "rate", "users"]
"""Rate is maximized: the largest that the limits admit."""
BudgetPerHour = Annotated[float, Quantity(MONEY_PER_HOUR, "budget for a service", "500 USD/h", "USD/h",
                                          least="0.00001 USD/h", most="1,000,000,000 USD/h")]


CENTURY = 36525 * DAY
"""Seconds of the longest deadline."""


class Deadline(NamedTuple):
    """Seconds a job may take: as predicted, or with `confidence` (0.5 to 1) by the residuals of comparable runs."""

    seconds: float
    confidence: float | None = None

    def __str__(self) -> str:
        """Write the deadline as it is read."""
        text = exact(self.seconds, SECONDS, "d", "h", "min", "s", "ms", "us")
        return text if self.confidence is None else f"{text} at {self.confidence * 100:g}%"


COUNTED = re.compile(r"(\d{1,9}) ?x ?(\S.*)", re.IGNORECASE | re.ASCII)
"""A number of something, as in 8xh100."""
_AT = re.compile(r"(.*?) ?(?:@|\b(?:at|with)\b) ?(\d+(?:\.\d+)?) ?%(?: confidence| probability)?", re.ASCII)


def _deadline(value: object) -> Deadline:
    if isinstance(value, Deadline):
        return value
    match = _AT.fullmatch(trimmed(value, "deadline")) if isinstance(value, str) else None
    if match is None:
        return Deadline(_within_a_century(parse(value, SECONDS, "duration", "60 d")))
    confidence = float(match.group(2)) / 100
    if not 0.5 <= confidence < 1:
        raise ValueError(f"{value!r}: the confidence must be at least 50% and below 100%")
    return Deadline(_within_a_century(parse(match.group(1), SECONDS, "duration", "60 d")), confidence)


def _within_a_century(seconds: float) -> float:
    if seconds > CENTURY:
        raise ValueError("a deadline is at most 100 years")
    return seconds


class Limits(Frozen):
    """Upper bounds; none means no bound. `gpus` fixes the count, `max_gpus` and `max_nodes` cap it."""

    hourly: ClassVar[bool] = False
    """Whether the budget is of an hour, as the cost of what does not end."""
    deadline: Annotated[Deadline, PlainValidator(_deadline, json_schema_input_type=str),
                        PlainSerializer(str, return_type=str)] | None = None
    """Longest duration: 60 d, or 60 d at 90%."""
    budget: Money | None = None
    """Highest cost: 12 MUSD."""
    gpus: Annotated[Gpus, Field(gt=0, le=MOST)] | None = None
    """Exactly this many; for a service, at most this many."""
    max_gpus: Annotated[Gpus, Field(gt=0, le=MOST)] | None = None
    """Most GPUs."""
    max_nodes: Annotated[Nodes, Field(gt=0, le=MOST)] | None = None
    """Most nodes, spares not counted."""
    max_power: Watts | None = None
    """Maximum power of all nodes under load: 2 MW."""

    @property
    def confidence(self) -> float | None:
        """Confidence of the deadline; none where it is of the duration as computed, or none is given."""
        return self.deadline.confidence if self.deadline else None


class ServingLimits(Limits):
    """The same for services, which run until they are stopped: no deadline, and the budget is in USD per hour."""

    hourly: ClassVar[bool] = True
    budget: BudgetPerHour | None = None
    """Highest cost of an hour: 500 USD/h."""
    one_provider: bool | None = None
    """Whether all nodes come from one provider; what is owned and what is bought count as one each."""
    homogeneous: bool | None = None
    """Whether all replicas run on one type of node."""

    @field_validator("deadline", mode="before")
    @classmethod
    def _services_do_not_end(cls, value: object) -> object:
        if value is not None:
            raise ValueError("a service has no deadline, it runs until it is stopped; its latencies are ttft, tpot and "
                             "e2e")
        return value


class Rent(Frozen):
    """Which offers may be rented."""

    terms: tuple[Term, ...] = Field(default=("on-demand",), min_length=1)
    """Ways to pay."""
    providers: tuple[str, ...] = ()
    """Only these; empty means all."""
    regions: tuple[str, ...] = ()
    """Only these; empty means all."""
    instances: tuple[str, ...] = Field(default=(), exclude_if=empty)
    """Only these, as providers call them; empty means all, or where hardware is named as instances, those."""
    price: MoneyPerGpuHour | None = Field(default=None, exclude_if=absent)
    """What you pay for a GPU and hour in a whole node, in place of what the offers of the catalog ask."""

    @model_validator(mode="after")
    def _one_price_is_of_one_offer(self) -> Rent:
        if self.price is None:
            return self
        for name, said in (("regions", self.regions), ("instances", self.instances), ("terms", self.terms[1:]),
                           ("providers", self.providers[1:])):
            if said:
                raise About("price", f"price is what you pay, wherever it is: with it, {name} has no effect beyond one "
                                     "provider and one term: leave it out")
        return self


_ENTRY = {"node": "type gpu name hardware machine", "nodes": "count number quantity amount how_many machines",
          "from": "available_from since from_date", "until": "available_until gone_from until_date"}
"""Keys of what is owned, with what people call them."""


def owned_entry(entry: Mapping[Any, object]) -> dict[Any, object]:
    """Return one kind of nodes that are owned, as a block states it, under the planner's keys."""
    meant = {said: key for key, called in _ENTRY.items() if key not in entry for said in called.split()}
    return {meant.get(str(key).lower(), key): value for key, value in entry.items()}


def owned_in_words(value: object) -> object:
    """Return nodes by name from text such as `32xdgx-h100, 4x4090`, from a list of such, or of blocks with both."""
    if isinstance(value, Mapping) and value and all(str(key).isdecimal() for key in value):
        value = [f"{count}x{name}" for count, name in value.items()]  # {8: dgx-h100}
    blocks = [owned_entry(entry) for entry in (value if isinstance(value, list | tuple) else [value])
              if isinstance(entry, Mapping)]
    owned = dict[object, object]((block["node"], block["nodes"]) for block in blocks
                                 if block.keys() == {"node", "nodes"} and isinstance(block["node"], str))
    if blocks and len(owned) == len(blocks):
        return owned
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(isinstance(entry, str) for entry in listed):
        return value
    counts: dict[str, int] = {}
    for part in (part.strip() for entry in listed for part in entry.split(",")):
        counted = COUNTED.fullmatch(" ".join(part.split()))
        name, count = (counted.group(2), int(counted.group(1))) if counted else (part, 1)
        if not part or not count:
            raise ValueError(f"{part!r}: expected nodes or GPUs with their number, such as 32xdgx-h100 or 4x4090")
        counts[name] = counts.get(name, 0) + count
    if not counts:
        raise ValueError("expected nodes or GPUs with their number, such as 32xdgx-h100 or 4x4090")
    return counts


def _years(value: object) -> object:
    """Return years from a plain number, or from a duration with its unit."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return parse(value, SECONDS, "number of years", "3 years") / YEAR


Years = Annotated[float, BeforeValidator(_years, json_schema_input_type=float | str), Field(ge=0.08, le=20)]


class Buy(Frozen):
    """Allow buying nodes for the site; a job pays for its share of their productive time."""

    utilization: Confidence = Field(default=0.8, ge=0.001, le=1)
    """Share of time in which bought nodes work, for this job or others: 0.8 or 80%."""
    years: Years | None = Field(default=None, exclude_if=absent)
    """How long bought nodes are kept, in years: 3, or 3 years; as the site has it where not given."""


class Sourcing(Frozen):
    """Where hardware comes from."""

    rent: Rent | None = Rent()
    """On-demand by default; none if nodes are owned or bought and renting is not mentioned."""
    buy: Buy | None = None
    """None means buy nothing."""
    own: Annotated[dict[str, Annotated[Nodes, Field(gt=0, le=MOST)]],
                   BeforeValidator(owned_in_words, json_schema_input_type=dict[str, int] | str | list[str])] = Field(
        default_factory=dict)
    """Node types that you own, and how many, or GPUs: they cost their electricity. Also as 32xdgx-h100, 4x4090."""
    site: str = "us-average"
    """The site of owned and bought nodes."""
    electricity: MoneyPerKwh | None = Field(default=None, exclude_if=absent)
    """Price of a kWh for owned and bought nodes: 0.12 USD; as the site has it where not given."""
    price_age: Seconds | None = None
    """Warn about prices older than this."""

    @model_validator(mode="before")
    @classmethod
    def _owners_need_not_rent(cls, data: object) -> object:
        owns = isinstance(data, dict) and (data.get("own") or data.get("buy") is not None)
        return {**data, "rent": None} if isinstance(data, dict) and owns and "rent" not in data else data


class Hardware(Frozen):
    """Which nodes may be used."""

    candidates: tuple[str, ...] = Field(min_length=1)
    """Node types, GPUs, or GPUs with their count in a node (8xh100); any is every node type with an admitted offer."""
