"""Estimates of images and clips for the tests of launch files, and what changes one axis of them."""

from dataclasses import replace
from functools import cache

from planner.ask.estimate import estimating
from planner.launch.given import Given, estimated
from tests.launch.works import CATALOG, words


@cache
def media_given(layout: str = "", node: str = "dgx-h100", **asked: str) -> Given:
    """Return the estimate of a layout, with the question that it answers."""
    values = {("limits." if name == "gpus" else "workload.") + name: value for name, value in asked.items()}
    ask = estimating(None, values, CATALOG, node=node, layout=words(layout), labels={})
    return estimated(ask.answer().assignment)


def changed(work, *, layout=None, made=None, asked=None, serving=None, **placed):
    """Return the work with parts of its layout, of what it makes, of its question or assignment changed, unchecked."""
    held = work.placed.layout.model_copy(update=layout or {})
    figures = work.placed.serving
    if figures is not None:
        figures = figures.model_copy(update={"made": figures.made.model_copy(update=made or {}), **(serving or {})})
        placed["serving"] = figures
    one = work.placed.model_copy(update={"layout": held, **placed})
    extra = {} if figures is None else {"serving": figures, "made": figures.made}
    return replace(work, placed=one, asked=work.asked.model_copy(update=asked or {}), **extra)
