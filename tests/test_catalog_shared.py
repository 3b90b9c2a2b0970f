"""Catalogs of the same folders share what they read, until a file changes."""

import pytest

from planner.catalog import shared
from planner.catalog.load import Catalog, data_root


@pytest.fixture
def mine(tmp_path):
    """Return a folder with a GPU of its own."""
    folder = tmp_path / "mine"
    (folder / "gpus").mkdir(parents=True)
    shipped = (data_root("catalogs") / "gpus" / "h100-sxm.yaml").read_text()
    (folder / "gpus" / "h100-sxm.yaml").write_text(shipped)
    return folder


def change(folder, name):
    path = folder / "gpus" / "h100-sxm.yaml"
    text = path.read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("memory_bandwidth:")]
    path.write_text(text.replace(line, f"memory_bandwidth: {name}"))


@pytest.mark.parametrize("settled", [-3600, 3600], ids=["files that rest", "files just written"])
def test_a_file_that_changes_is_read_again(mine, monkeypatch, settled):
    monkeypatch.setattr(shared, "SETTLED", settled)
    for bandwidth in (1, 2, 3, 3, 4):
        change(mine, f"{bandwidth} TB/s")
        assert Catalog([mine]).gpu("h100-sxm").memory_bandwidth == bandwidth * 1e12
        assert Catalog([mine]).gpu("h100-sxm").memory_bandwidth == bandwidth * 1e12
    (mine / "gpus" / "h100-sxm.yaml").rename(mine / "gpus" / "h100-other.yaml")
    assert Catalog([mine]).gpu("h100-sxm") == Catalog().gpu("h100-sxm")


def test_what_one_has_read_the_next_ones_have(mine, monkeypatch):
    monkeypatch.setattr(shared, "SETTLED", -3600)
    Catalog([mine])
    first = Catalog([mine])
    digest, read = first.digest, first.node("dgx-h100")
    monkeypatch.setattr("planner.catalog.load.read_entry", None)
    monkeypatch.setattr("planner.catalog.load.read_bytes", None)
    assert [Catalog([mine]).digest, Catalog([mine]).digest] == [digest, digest]
    assert Catalog([mine]).node("dgx-h100") is read


def test_what_is_changed_in_a_catalog_is_in_no_other(monkeypatch):
    monkeypatch.setattr(shared, "SETTLED", -3600)
    Catalog()
    before = Catalog().gpu("h100-sxm").memory_bandwidth
    assert Catalog().changed({("gpus", "h100-sxm"): {"memory_bandwidth": 1.0}}).gpu("h100-sxm").memory_bandwidth == 1
    assert Catalog().gpu("h100-sxm").memory_bandwidth == before


@pytest.mark.parametrize("folders", [("a", "b"), ("b", "a")])
def test_folders_of_another_order_are_others(tmp_path, monkeypatch, folders):
    monkeypatch.setattr(shared, "SETTLED", -3600)
    shipped = (data_root("catalogs") / "gpus" / "h100-sxm.yaml").read_text()
    for name in ("a", "b"):
        (tmp_path / name / "gpus").mkdir(parents=True)
        (tmp_path / name / "gpus" / "h100-sxm.yaml").write_text(shipped)
        change(tmp_path / name, "1 TB/s" if name == "a" else "2 TB/s")
    for _ in range(3):
        found = Catalog([tmp_path / name for name in folders]).gpu("h100-sxm").memory_bandwidth
        assert found == (2e12 if folders[-1] == "b" else 1e12)
