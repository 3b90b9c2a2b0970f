"""The bill of a network, and the parts that it is made of."""


import pytest

from planner.catalog.checking import check
from planner.catalog.load import Catalog
from planner.errors import InputError, MissingFact
from planner.money.fabric import design
from planner.money.fabric_bill import Parts, bill, parts_of
from tests.money.test_fabric import CATALOG, QM9700, rails


def test_bill_of_127_nodes():
    """48 switches at 35,000; 1,016 links of a node at 1,320 and 1,024 between switches at 1,240, ends included."""
    lines = bill(rails(127), parts_of(CATALOG.fabric("ib-ndr"), CATALOG))
    assert [(line.name, line.count, line.unit_usd, line.usd) for line in lines] == [
        ("leaf switch qm9700", 32, 35000, 1120000), ("spine switch qm9700", 16, 35000, 560000),
        ("node-leaf cable ndr-node-link", 1016, 1320, 1341120),
        ("leaf-spine cable ndr-trunk-link", 1024, 1240, 1269760)]
    assert [line.kind for line in lines] == ["quoted"] * 4
    assert all(line.source and line.as_of for line in lines)


def test_bill_counts_adapters_and_transceivers_where_they_are_bought():
    planned, parts = rails(128), parts_of(CATALOG.fabric("ib-ndr"), CATALOG, with_nics=True)
    fiber = CATALOG.part("fiber-400g").model_copy(update={"price": 100.0})
    lines = {line.name: line for line in bill(planned, Parts(QM9700, fiber, fiber, parts.nic, parts.optic))}
    assert lines["NIC connectx-7"].usd == 1024 * 1200
    assert lines["node-leaf transceiver osfp-transceiver"].count == planned.optics.node_leaf
    assert lines["leaf-spine transceiver osfp-transceiver"].usd == 1024 * 750
    with pytest.raises(MissingFact, match="fiber-400g has no transceivers"):
        bill(planned, Parts(QM9700, fiber, fiber))


def test_every_switch_and_cable_of_the_design_is_on_the_bill():
    planned = rails(512)
    lines = bill(planned, parts_of(CATALOG.fabric("ib-ndr"), CATALOG))
    assert sum(line.count for line in lines if "switch" in line.name) == planned.switches
    assert sum(line.count for line in lines if "cable" in line.name) == planned.cables.total
    assert all(line.usd == line.count * line.unit_usd for line in lines)


@pytest.mark.parametrize(("fabric", "missing"), [("ib-xdr", "q3400 has no price")])
def test_a_price_that_is_not_known_is_missing(fabric, missing):
    parts = parts_of(CATALOG.fabric(fabric), CATALOG)
    with pytest.raises(MissingFact, match=missing):
        bill(design(16, 8, parts.switch, rail_optimized=True), parts)


@pytest.mark.parametrize(("change", "message"), [
    ("role: switch", "a switch has ports"), ("role: nic\nports: 64", "a switch has ports"),
    ("role: nic\nends: true", "ends belong to a cable")])
def test_a_part_states_what_its_role_has(tmp_path, change, message):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "x.yaml").write_text(
        f"name: x\nsource: a test\nas_of: 2026-11\nkind: assumed\nport_rate: 400 Gbit/s\n{change}\n")
    with pytest.raises(InputError, match=message):
        Catalog([tmp_path]).part("x")


def test_catalog_check_resolves_the_parts_of_fabrics(tmp_path):
    (tmp_path / "fabrics").mkdir()
    (tmp_path / "fabrics" / "ours.yaml").write_text(
        "name: ours\nsource: a test\nas_of: 2026-11\nkind: assumed\nlevel: scale-out\ntopology: fat-tree\n"
        "efficiency: 0.9\nlatency: 5 us\n"
        "parts: {switch: qm9701, node_cable: dac-400g, trunk_cable: ndr-trunk-link}\n")
    with pytest.raises(InputError, match=r"ours\.yaml: unknown part 'qm9701'; did you mean qm9700"):
        list(check(Catalog([tmp_path])))


def test_parts_of_a_fabric_are_stated_and_play_their_role():
    with pytest.raises(MissingFact, match="efa-v2 has no parts"):
        parts_of(CATALOG.fabric("efa-v2"), CATALOG)
    with pytest.raises(MissingFact, match=r"ib-xdr has no parts\.nic"):
        parts_of(CATALOG.fabric("ib-xdr"), CATALOG, with_nics=True)
    ndr = CATALOG.fabric("ib-ndr")
    wrong = ndr.model_copy(update={"parts": ndr.parts.model_copy(update={"switch": "dac-400g"})})
    with pytest.raises(InputError, match="dac-400g is of role cable, expected switch"):
        parts_of(wrong, CATALOG)
