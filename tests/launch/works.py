"""Assignments for the tests of launch files: estimates of a dense model and of a mixture, and what changes one axis."""

from dataclasses import replace
from functools import cache

from planner.ask.estimate import estimating
from planner.catalog.load import Catalog
from planner.launch.given import Given, estimated
from planner.launch.work import Work, work_of

CATALOG = Catalog()
DENSE = {"model": "llama-3.1-8b", "seq_len": "8192", "global_batch": "64"}
MIXTURE = {"model": "mixtral-8x7b", "seq_len": "4096", "global_batch": "64"}
NAMES = {"model": "workload.model", "seq_len": "workload.sequence_length", "global_batch": "workload.global_batch",
         "method": "workload.method", "optimizer": "workload.optimizer", "precision": "workload.precision",
         "stack": "workload.stack", "loss": "workload.loss", "gpus": "limits.gpus",
         **{name: f"workload.{name}" for name in ("tuning", "lora_rank", "lora_targets")}}


def words(text: str) -> dict[str, str]:
    return dict(part.split("=") for part in text.split(",")) if text else {}


@cache
def placed(layout: str, node: str = "dgx-h100", **asked: str):
    """Return the estimate of a layout."""
    return given(layout, node, **asked).placed


@cache
def given(layout: str, node: str = "dgx-h100", **asked: str) -> Given:
    """Return the estimate of a layout, with the question that it answers."""
    values = {NAMES[name]: value for name, value in {**DENSE, **asked}.items()}
    ask = estimating(None, values, CATALOG, node=node, layout=words(layout), labels={})
    found = ask.answer().assignment
    return estimated(found)


def rented(one, spot=False):
    """Return an assignment as rented from the first offer of its node at AWS."""
    prices = next(prices for prices in CATALOG.price_lists if prices.name == "aws")
    offer = next(offer for offer in prices.offers if offer.node == one.node and (offer.term == "spot") == spot)
    label = f"{prices.name} {offer.instance} ({offer.region}, {offer.term})"
    return one.model_copy(update={"offer": label, "sourcing": "rent"})


def work(target: str, layout: str, node: str = "dgx-h100", **asked: str) -> Work:
    """Return what the emitter of a target reads of a layout."""
    one = given(layout, node, **asked)
    return work_of(one.placed, one.asked, CATALOG, target)


def changed(base: Work, *, asked=None, offload=None, placed_as=None, **layout) -> Work:
    """Return the work with parts of its layout, its question or its assignment changed, unchecked."""
    if offload:
        layout["offload"] = base.layout.offload.model_copy(update=offload)
    split = base.placed.model_copy(update={"layout": base.layout.model_copy(update=layout), **(placed_as or {})})
    return replace(base, placed=split, asked=base.asked.model_copy(update=asked or {}))
