"""Files as people write them: keys of a block at the top, of a workload in its job, a horizon as its length alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from planner.catalog.price import Term
from planner.catalog.recipes import UsualRequests
from planner.errors import InputError, UnknownName
from planner.scenario.budget_words import with_quarters
from planner.scenario.flags import NAMES
from planner.scenario.headings import USUAL, read_headings
from planner.scenario.job_words import (
    JOB,
    JOB_WORDS,
    OF_MANY,
    after_dates,
    in_a_stretch,
    in_words_of_jobs,
    with_horizon,
    with_jobs_listed,
)
from planner.scenario.limits import Buy, Rent
from planner.scenario.scenario import SCENARIOS
from planner.scenario.serving import LOADS
from planner.scenario.sourcing_words import BOUGHT, TERMS, with_sources
from planner.scenario.words import named
from planner.yaml_io import Document

TOP = frozenset({"name", "workload", "workloads", "hardware", "sourcing", "limits", "jobs", "horizon"})
"""Keys at the top of a file that are its own."""
KNOWN = TOP | {name for kind in SCENARIOS.values() for name in kind.model_fields}
"""What a file of one question may have at its top, once its keys are in their blocks."""
KEPT = "sourcing.buy.years"
_PLACES = ("on", "gpus", "gpu", "nodes", "hardware")
"""Keys that name hardware, which people put under rent too."""
PRICES = ("offers", "prices", "price_list", "gpu_prices", "contracts", "contract", "my_prices")
OWN_PRICES = (
    "prices of your own are a catalog of yours: in DIR/prices/mine.yaml write name: mine, source: our contract, as_of: "
    "2026-11, kind: quoted, and offers: [{instance: ours, node: dgx-h100, region: any, term: on-demand, price: 15.60 "
    "USD/h}], where node is a node type (planner catalog list nodes) and price that of the whole node; then --catalogs "
    "DIR --provider mine. Of one kind of GPU, --price 2.20 (sourcing.rent.price, USD of a GPU and hour) is enough")
"""What to write for prices in a question."""
_ALLOWED: Mapping[bool, dict[str, object] | None] = {True: {}, False: None}
"""What `buy: true` and `rent: false` say."""
_BLOCKS = {"rent": "sourcing.rent", "buy": "sourcing.buy", "nodes": "hardware.candidates", "gpu": "hardware.candidates"}
"""Keys of blocks that no flag is called by."""


def in_blocks(document: Document, usual: UsualRequests) -> object:
    """Return what a file holds with every key in its block: `own` under sourcing, the `model` of a job in its workload.

    Raises InputError where a block has the key too, and for a key that nobody knows.
    """
    data = document.data
    if isinstance(data, list) and data and all(isinstance(job, dict) for job in data):
        data = {"jobs": data}
    if not isinstance(data, dict):
        return data
    try:
        return _in_blocks(with_jobs_listed(data), usual)
    except InputError as error:
        if error.file:
            raise
        told = InputError(error.problem, file=document.file or None, line=document.line((error.key or "").split(".")),
                          key=error.key)
        raise (error.told_as(told) if isinstance(error, UnknownName) else told) from None


def _in_blocks(data: dict[Any, Any], usual: UsualRequests) -> dict[Any, Any]:
    if (offered := next((key for key in data if str(key) in PRICES), None)) is not None:
        raise InputError(f"{offered}: {OWN_PRICES}")
    data = with_quarters(data) if "jobs" in data else data
    data = read_headings(_rented_on(with_sources(data)), TOP | _BLOCKS.keys(), usual)
    many = dict(OF_MANY) if "jobs" in data else {}
    blocks = _moved(data, {name: path for name, path in (NAMES | _BLOCKS | many).items() if "." in path}, frozenset())
    sourcing = blocks.get("sourcing")
    if isinstance(sourcing, dict):
        blocks["sourcing"] = _with_bought_terms({
            key: _ALLOWED[value] if key in ("rent", "buy") and isinstance(value, bool) else value
            for key, value in sourcing.items()}, serves=_serves(blocks.get("workload")))
    jobs = blocks.get("jobs")
    if isinstance(jobs, list):
        blocks["jobs"] = after_dates([_job(job, usual, at) for at, job in enumerate(jobs)])
    if "jobs" in blocks and isinstance(blocks.get("horizon"), str | int):
        blocks["horizon"] = in_a_stretch(blocks["horizon"])
    if "jobs" in blocks:
        return with_horizon(blocks)
    for key in blocks:
        if isinstance(key, str) and key not in KNOWN:
            unknown = UnknownName("key", key, (*NAMES, *KNOWN), unlike=USUAL)
            unknown.key = key
            raise unknown
    return blocks


def _rented_on(data: dict[Any, Any]) -> dict[Any, Any]:
    """Return a file with the hardware that it names under rent at the top."""
    sourcing = data.get("sourcing")
    rent = sourcing.get("rent") if isinstance(sourcing, dict) else data.get("rent")
    on = next((key for key in _PLACES if isinstance(rent, dict) and key in rent), None)
    if on is None or any(key in data for key in (*_PLACES, "hardware")):
        return data
    assert isinstance(rent, dict)
    left = {key: value for key, value in rent.items() if key != on}
    told = {"sourcing": {**sourcing, "rent": left}} if isinstance(sourcing, dict) else {"rent": left}
    return {**data, **told, "on": rent[on]}


def _serves(work: object) -> bool:
    return isinstance(work, dict) and any(load in work for load in LOADS if load != "documents")


def _with_bought_terms(sourcing: dict[Any, Any], *, serves: bool) -> dict[Any, Any]:
    """Return where hardware comes from with the buying that terms of rent name beside these."""
    rent = sourcing.get("rent")
    terms = rent.get("terms") if isinstance(rent, dict) else None
    listed = [part.strip() for part in terms.split(",")] if isinstance(terms, str) else terms
    if not isinstance(listed, list) or BOUGHT not in listed:
        return sourcing
    assert isinstance(rent, dict)
    rented = [term for term in listed if term != BOUGHT]
    share = {"utilization": 1.0} if serves else {}
    return {**sourcing, "rent": {**rent, "terms": rented} if rented else None,
            "buy": share if sourcing.get("buy") is None else sourcing["buy"]}


def is_inline(reference: object) -> bool:
    """Say whether a reference is what a file holds itself: {model: llama-3.1-8b, tokens: 1T}."""
    return isinstance(reference, str) and reference.lstrip().startswith("{")


def with_bought(overrides: Mapping[str, object], labels: Mapping[str, str]) -> dict[str, object]:
    """Return overrides whose terms name buying, which is no way to rent, with that asked for beside these.

    How long nodes are kept asks for buying too, beside renting as usual. Raises InputError for a term that is none.
    """
    given = overrides.get(TERMS)
    if given is None and KEPT in overrides:
        return {TERMS: list(Rent().terms), **overrides}
    terms = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
    if isinstance(terms, list | tuple):
        known = [*get_args(Term), BOUGHT]
        for term in terms:
            if named(TERMS, term) not in known:
                raise InputError(f"{labels.get(TERMS, TERMS)}: expected {', '.join(map(repr, known[:-1]))} or "
                                 f"{BOUGHT!r}, got {term!r}")
    if not isinstance(terms, list | tuple) or BOUGHT not in terms:
        return dict(overrides)
    rented = [term for term in terms if term != BOUGHT]
    serves = any(f"workload.{load}" in overrides for load in LOADS if load != "documents")
    return {"sourcing.buy.utilization": 1.0 if serves else Buy().utilization} | {
        path: value for path, value in overrides.items() if path != TERMS} | ({TERMS: rented} if rented else {})


def _job(job: object, usual: UsualRequests, at: int) -> object:
    if not isinstance(job, dict):
        return job
    work = {name: path for name, path in NAMES.items() if path.startswith("workload.")}
    job = read_headings(job, JOB | JOB_WORDS.keys(), usual, known=[name.replace("_", "-") for name in work])
    moved = _moved(job, work, JOB)
    return in_words_of_jobs(moved, at)


def _moved(data: Mapping[Any, Any], paths: Mapping[str, str], kept: frozenset[str]) -> dict[Any, Any]:
    """Return a mapping with the keys of `paths`, other than those kept, in the blocks that these name."""
    blocks: dict[Any, Any] = {}
    for key, value in data.items():
        path = paths.get(str(key).replace("-", "_"))
        if path is None or key in kept:
            mine = blocks.get(key, {})
            blocks[key] = {**(value or {}), **mine} if mine else value
            continue
        block, _, inner = path.partition(".")
        there = {} if data.get(block) is None else data[block]
        if not isinstance(there, dict):  # is refused where it stands
            blocks[key] = value
            continue
        if inner in there:
            raise InputError(f"{key} is given twice: alone, and under {block}")
        first, _, last = inner.partition(".")
        mine = blocks[block] = blocks.get(block) or dict(there)
        if last:
            beside = mine.get(first)
            mine[first] = {**(beside if isinstance(beside, dict) else {}), last: value}
        else:
            mine[first] = value
    return blocks
