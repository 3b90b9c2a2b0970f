"""Settings of recompute that the trainer does not act on for a model are not planned with."""

import pytest

from planner.ask.estimate import estimating
from planner.catalog.load import Catalog
from planner.errors import InputError

CATALOG = Catalog()


def estimate(model, **layout):
    ask = estimating(None, {"workload.model": model, "workload.method": "lora"}, CATALOG, node="h100-sxm-1x", labels={},
                     layout=layout)
    return ask.answer().assignment


@pytest.mark.parametrize(("model", "layout", "expected"), [
    ("sana-1.6b", {"recompute": "full"}, "expected none"),
    ("krea-2", {"recompute": "mixed"}, "expected none or full"),
    ("hidream-i1-full", {"recompute": "mixed"}, "expected none or full"),
    ("kandinsky5-t2v-lite", {"recompute": "full", "offload_activations": "1"}, "offload_activations=1.*expected 0"),
    ("sdxl-turbo", {"recompute": "full", "offload_checkpoints": "1"}, "offload_checkpoints=1.*expected 0")])
def test_what_changes_nothing_is_refused(model, layout, expected):
    with pytest.raises(InputError, match=expected):
        estimate(model, **layout)


def test_what_acts_is_taken():
    assert estimate("sdxl", recompute="full").layout.recompute == "full"
    assert estimate("hidream-i1-full", recompute="full").layout.recompute == "full"
    assert estimate("sana-1.6b").layout.recompute == "none"


def test_recompute_that_another_page_measured_is_planned_with():
    lean, whole = (estimate("krea-2", recompute=how, offload_parameters="0", offload_activations="0").memory
                   for how in ("full", "none"))
    assert lean.peak_bytes < 0.6 * whole.peak_bytes
