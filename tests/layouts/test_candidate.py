"""How hardware is called: the node, its network where that is not the usual one, and nodes that never meet."""

from __future__ import annotations

from dataclasses import replace

from planner.catalog.load import Catalog
from planner.money.rent import usual_candidate


def test_a_label_tells_networks_and_single_nodes_apart() -> None:
    catalog = Catalog()
    usual = usual_candidate(catalog.node("dgx-h100"), catalog)
    other = replace(usual, fabric=catalog.fabric("roce-400"))
    labels = [c.label for c in (usual, other, replace(usual, clustered=False), replace(other, clustered=False))]
    assert labels == ["dgx-h100", "dgx-h100 (roce-400)", "dgx-h100 (single nodes)", "dgx-h100 (single nodes)"]
