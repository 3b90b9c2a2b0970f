"""Layers of stages by what they recompute, as a plan states them."""

import numpy as np
import pytest

from planner.catalog.load import Catalog
from planner.evidence.skipping import SkippedError
from planner.evidence.stages import stated_layers

DENSE, MIXTURE = (Catalog().model(name) for name in ("llama-3.1-8b", "deepseek-v3"))


def test_stages_are_read():
    assert np.array_equal(stated_layers("12/0/4 16/0/0", 2, DENSE), [[12, 0, 4], [16, 0, 0]])


def test_layers_before_a_mixture_are_apart():
    lead = MIXTURE.leading_layers
    assert lead > 0
    assert stated_layers(f"{lead}/0/{MIXTURE.layers - lead}", 1, MIXTURE).tolist() == [[0, 0, MIXTURE.layers - lead]]
    assert stated_layers(f"0/0/{MIXTURE.layers}", 1, MIXTURE).tolist() == [[0, 0, MIXTURE.layers - lead]]


@pytest.mark.parametrize("text", ["12/0/4", "12/0/4 16/0/1", "12/4 16/0/0", "mixed", "", "12/0/4 16/0/0 0/0/0"])
def test_what_is_no_such_list_is_skipped(text):
    with pytest.raises(SkippedError, match="recompute_layers"):
        stated_layers(text, 2, DENSE)
