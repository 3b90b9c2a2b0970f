"""Price files of SkyPilot and gpuhunt with the traps of their schemas: what becomes an offer, what is skipped."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.importers import gpuhunt
from planner.catalog.importers.gpu_names import GpuNames
from planner.catalog.importers.gpuhunt import read_gpuhunt
from planner.catalog.importers.quotes import Imported
from planner.catalog.importers.skypilot import _memory, read_skypilot
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.yaml_io import parse

CATALOG = Catalog()
AWS = ("InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone,"
       "Arch")
GCP = "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice"
RUNPOD = ("InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Region,SpotPrice,Price,AvailabilityZone,"
          "GpuInfo")
VERDA = "InstanceType,UpstreamCloudId,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,Price,SpotPrice"
HUNT = ("instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags,"
        "cpu_arch,provider_data")
OLD_HUNT = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size"
Offers = dict[tuple[str, str, str], dict[str, Any]]


def info(name: str, count: int, mib: float) -> str:
    """GpuInfo as most clouds have it: a Python literal."""
    return (f"\"{{'Gpus': [{{'Name': '{name}', 'Manufacturer': 'NVIDIA', 'Count': {count}.0, "
            f"'MemoryInfo': {{'SizeInMiB': {mib}}}}}], 'TotalGpuMemoryInMiB': {mib}}}\"")


def aws(instance: str, gpu: str, count: float, mib: int, prices: str, zone: str = "us-east-1a") -> str:
    return f"{instance},{gpu},{count},192.0,2048.0,{info(gpu, 8, mib)},{prices},{zone[:-1]},{zone},x86_64"


P5 = aws("p5.48xlarge", "H100", 8.0, 81920, "55.04,17.0")


def saved(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def skypilot(folder: Path, cloud: str, *lines: str) -> Imported:
    return read_skypilot(saved(folder, f"{cloud}/vms.csv", *lines), CATALOG, "2026-11", "")


def hunted(folder: Path, provider: str, *lines: str) -> Imported:
    (imported,) = read_gpuhunt(saved(folder, f"{provider}.csv", *lines), CATALOG, "2026-11", "")
    return imported


def offers(imported: Imported) -> Offers:
    assert imported.prices is not None
    return {(o.instance, o.region, o.term): o.model_dump(mode="json", exclude_defaults=True)
            for o in imported.prices.offers}


def reasons(imported: Imported) -> dict[int, str]:
    return {skip.line: skip.reason for skip in imported.skipped}


def test_prices_are_of_whole_instances_and_known_instances_bring_their_network(tmp_path: Path) -> None:
    imported = skypilot(tmp_path, "aws", AWS, P5)
    assert offers(imported) == {
        ("p5.48xlarge", "us-east-1", term): {
            "instance": "p5.48xlarge", "node": "dgx-h100", "region": "us-east-1", "term": term, "price": price,
            "host": {"memory": "2048 GiB", "vcpus": 192}, "nics": {"count": 32, "bandwidth": "12.5 GB/s"},
            "fabric": "efa-v2"}
        for term, price in (("on-demand", "55.04 USD/h"), ("spot", "17 USD/h"))}
    assert imported.prices is not None
    assert (imported.prices.name, imported.prices.as_of, imported.prices.kind) == ("aws", "2026-11", "quoted")
    assert imported.prices.source.startswith("aws/vms.csv of a SkyPilot catalog")


def test_an_empty_price_is_no_offer_and_a_price_of_zero_is_skipped(tmp_path: Path) -> None:
    imported = skypilot(tmp_path, "aws", AWS, aws("p5e.48xlarge", "H200", 8.0, 144384, ",15.14"),
                        aws("p5.48xlarge", "H100", 8.0, 81920, "55.04,0.0"),
                        aws("p5en.48xlarge", "H200", 8.0, 144384, ","))
    assert set(offers(imported)) == {("p5e.48xlarge", "us-east-1", "spot"), ("p5.48xlarge", "us-east-1", "on-demand")}
    assert reasons(imported) == {3: "a price of zero", 4: "no price"}


def test_zones_come_to_the_median_that_was_quoted(tmp_path: Path) -> None:
    rows = [aws("p5.48xlarge", "H100", 8.0, 81920, f"55.04,{spot}", f"us-east-1{zone}")
            for zone, spot in zip("abcd", (30, 10, 55.04, 20), strict=True)]
    found = offers(skypilot(tmp_path, "aws", AWS, *rows))
    assert found["p5.48xlarge", "us-east-1", "spot"]["price"] == "20 USD/h"
    assert found["p5.48xlarge", "us-east-1", "spot"]["note"] == "median of 4 rows, 10 to 55.04 USD/h"
    assert "note" not in found["p5.48xlarge", "us-east-1", "on-demand"]


@pytest.mark.parametrize(("row", "reason"), [
    (aws("m5.large", "", 0, 0, "0.096,0.04"), "no GPU"),
    (aws("g3.4xlarge", "M60", 1.0, 8192, "1.14,0.5"), "the GPU is not in the catalog"),
    (aws("g6f.large", "L4", 0.125, 2861, "0.2,0.1"), "a fraction of a GPU"),
    (aws("new.48xlarge", "H100", 8.0, 81920, "50.0,"), "the GPU could be several"),
    (aws("new.48xlarge", "A100", 8.0, 40960, "50.0,"), "the GPU could be several"),
    (aws("new.48xlarge", "MI250", 4.0, 131072, "50.0,"), "no such GPU in the catalog has this memory and form"),
    (aws("new.48xlarge", "MI250", 8.0, 0, "50.0,"), "no such GPU in the catalog has this memory and form"),
    (aws("new.48xlarge", "H100-SXM", 8.0, 40960, "50.0,"), "no such GPU in the catalog has this memory and form"),
    (aws("new.48xlarge", "H100-SXM-PCIe", 8.0, 81920, "9.0,"), "no such GPU in the catalog has this memory and form"),
    (aws("new.48xlarge", "H100-NVL", 8.0, 96256, "50.0,"), "the node type could be several"),
    (aws("new.24xlarge", "B200", 3.0, 183359, "50.0,"), "no node type has this number of its GPU"),
    (aws("p5.48xlarge", "H100", 4.0, 81920, "27.52,"), "the catalog knows the instance with other GPUs"),
    (aws("p5.48xlarge", "H200", 8.0, 144384, "55.04,"), "the catalog knows the instance with other GPUs"),
    (aws("p5.48xlarge", "H100", 8.0, 81920, "55.04,", "-"), "no region"),
    (aws("x" * 300, "B200", 8.0, 183359, "50.0,"), "a name of more than 200 characters"),
    (aws("trn1.32xlarge", "Trainium", 16.0, 0, "21.5,"), "the GPU is not in the catalog"),
    (aws("g4.xlarge", "RTX6000", 1.0, 24576, "1.0,"), "the GPU is not in the catalog"),
])
def test_what_is_not_told_is_skipped_with_its_reason(row: str, reason: str, tmp_path: Path) -> None:
    imported = skypilot(tmp_path, "aws", AWS, P5, row)
    assert reasons(imported) == {3: reason}
    assert len(offers(imported)) == 2
    assert imported.rows == 2


@pytest.mark.parametrize(("instance", "gpu", "count", "mib", "node"), [
    ("gpu_8x_h100_sxm5", "H100", 8, 81920, "dgx-h100"),
    ("gpu-h100-sxm_8gpu-128vcpu-1600gb", "H100", 8, 0, "dgx-h100"),
    ("8x_H100-SXM_SECURE", "H100-SXM", 8, 80, "dgx-h100"),
    ("1x_A100-80GB-PCIe", "A100-80GB", 1, 80, "a100-pcie-80gb-1x"),
    ("gpu_8x_a100_80gb_sxm4", "A100-80GB", 8, 81920, "dgx-a100"),
    ("gpu_8x_b200_sxm6", "B200", 8, 184320, "dgx-b200"),
    ("h100nvl.8 NVLink", "H100-NVL", 8, 96256, "h100-nvl-8x-nvlink"),
    ("any", "H100NVL", 1, 96256, "h100-nvl-1x"),
    ("gpu_1x_gh200", "GH200", 1, 98304, "gh200-96gb-1x"),
    ("2RTX6000ADA.20V", "RTX-6000-Ada", 2, 49152, "rtx-6000-ada-2x"),
    ("1RTXPRO6000.30V", "RTX-PRO-6000", 1, 98304, "rtx-pro-6000-1x"),
    ("pod", "Tesla-V100-SXM2-16GB", 8, 0, "v100-sxm2-16gb-8x"),
    ("g6.12xlarge", "L4", 4, 22888, "l4-4x"),
    ("g5.48xlarge", "A10G", 8, 24576, "a10g-8x"),
    ("gpu_4x_a6000", "A6000", 4, 49152, "rtx-a6000-4x"),
])
def test_gpus_and_node_types_are_told_by_name_memory_and_form(instance: str, gpu: str, count: int, mib: int, node: str,
                                                              tmp_path: Path) -> None:
    found = offers(skypilot(tmp_path, "somewhere", AWS, aws(instance, gpu, count, mib, "9.5,")))
    (offer,) = found.values()
    assert (offer["node"], offer["price"], offer["cluster"]) == (node, "9.5 USD/h", False)


def test_columns_are_read_by_name_and_info_may_be_json(tmp_path: Path) -> None:
    size = json.dumps({"Gpus": [{"Name": "V100", "Count": 1, "MemoryInfo": {"SizeInMiB": 16384}}]}).replace('"', '""')
    verda = skypilot(tmp_path, "verda", VERDA, f'1V100.6V,1V100.6V,6.0,23.0,V100,1.0,"{size}",FIN-01,0.1381,')
    assert offers(verda)["1V100.6V", "FIN-01", "on-demand"]["node"] == "v100-sxm2-16gb-1x"
    runpod = skypilot(tmp_path, "runpod", RUNPOD, f"3x_H100-SXM,H100-SXM,3.0,32,160,US,4.0,5.38,,{info('H100', 3, 80)}",
                      f"1x_H100-SXM,H100-SXM,1.0,16,80,US,2.0,2.69,,{info('H100', 1, 80)}")
    assert offers(runpod)["1x_H100-SXM", "US", "on-demand"]["price"] == "2.69 USD/h"
    assert offers(runpod)["1x_H100-SXM", "US", "spot"]["price"] == "2 USD/h"
    assert reasons(runpod) == {2: "no node type has this number of its GPU"}


def test_hosts_and_accelerators_of_one_zone_are_added_up(tmp_path: Path) -> None:
    imported = skypilot(
        tmp_path, "gcp", GCP,
        "a2-highgpu-8g,96.0,680.0,,,,us-central1,us-central1-a,5.91582,2.958",
        "a3-highgpu-8g,208.0,1872.0,,,,us-central1,us-central1-a,9.46006,2.88933",
        "a3-highgpu-8g,208.0,1872.0,,,,us-west1,us-west1-b,9.46006,2.88933",
        "g2-standard-48,48.0,192.0,,,,us-central1,us-central1-a,1.76,",
        "n1-standard-8,8.0,30.0,,,,us-central1,us-central1-a,0.38,0.08",
        f",,,A100,8.0,{info('A100', 8, 40960)},us-central1,us-central1-a,23.47,9.4",
        f",,,H100,8.0,{info('H100', 8, 81920)},us-central1,us-central1-a,78.53994,",
        f",,,H100-MEGA,8.0,{info('H100', 8, 81920)},us-central1,us-central1-a,70.0,",
        "a3-megagpu-8g,208.0,1872.0,,,,us-central1,us-central1-a,10.0,",
        f",,,L4,4,{info('L4', 4, 24576)},us-central1,us-central1-a,2.24,1.14",
        ",,,tpu-v6e-4,1,tpu-v6e-4,us-central1,us-central1-a,10.8,2.2")
    found = offers(imported)
    assert {key: (offer["node"], offer["price"]) for key, offer in found.items()} == {
        ("a2-highgpu-8g", "us-central1", "on-demand"): ("hgx-a100-40gb", "29.38582 USD/h"),
        ("a2-highgpu-8g", "us-central1", "spot"): ("hgx-a100-40gb", "12.358 USD/h"),
        ("a3-highgpu-8g", "us-central1", "on-demand"): ("dgx-h100", "88 USD/h"),
        ("a3-megagpu-8g", "us-central1", "on-demand"): ("dgx-h100", "80 USD/h"),
        ("g2-standard-48", "us-central1", "on-demand"): ("l4-4x", "4 USD/h")}
    assert found["a3-highgpu-8g", "us-central1", "on-demand"]["fabric"] == "ethernet-100"
    assert found["g2-standard-48", "us-central1", "on-demand"]["host"] == {"vcpus": 48, "memory": "192 GiB"}
    assert reasons(imported) == {4: "no GPU", 6: "no GPU", 12: "an accelerator whose host is not told"}


def test_gpuhunt_has_a_row_for_each_term(tmp_path: Path) -> None:
    imported = hunted(
        tmp_path, "lambdalabs", HUNT,
        "gpu_8x_h100_sxm5,us-west-1,31.92,208,1800.0,8,H100,80.0,False,22000.0,nvidia,,x86,{}",
        "gpu_8x_h100_sxm5,us-west-1,15.0,208,1800.0,8,H100,80.0,True,22000.0,nvidia,,x86,{}",
        "gpu_1x_gh200,us-east-3,1.49,64,432.0,1,GH200,96.0,False,4000.0,nvidia,lambda-arm,arm,\"{\"\"a\"\": 1}\"",
        "cpu_4x_general,us-east-1,0.2,4,16.0,0,,,False,512.0,,,x86,{}",
        "v5litepod-4,us-east-1,4.8,4,16.0,1,v5litepod-4,0.0,False,,google,,x86,{}",
        "gaudi,us-east-1,4.8,4,16.0,8,Gaudi2,96.0,False,,intel,,x86,{}",
        "mi325,us-east-1,4.8,4,16.0,8,MI325X,288.0,False,,amd,,x86,{}")
    assert imported.prices is not None
    # lambdalabs is another name of a list of the catalog, which the imported one then replaces
    assert imported.prices.name == "lambda"
    assert {key: offer["price"] for key, offer in offers(imported).items()} == {
        ("gpu_8x_h100_sxm5", "us-west-1", "on-demand"): "31.92 USD/h",
        ("gpu_8x_h100_sxm5", "us-west-1", "spot"): "15 USD/h",
        ("gpu_1x_gh200", "us-east-3", "on-demand"): "1.49 USD/h"}
    assert reasons(imported) == {5: "no GPU", 6: "neither an NVIDIA nor an AMD GPU",
                                 7: "neither an NVIDIA nor an AMD GPU",
                                 8: "no such GPU in the catalog has this memory and form"}


def test_old_catalogs_of_gpuhunt_have_fewer_columns(tmp_path: Path) -> None:
    imported = hunted(tmp_path, "runpod", OLD_HUNT,
                      "NVIDIA H100 80GB HBM3,EU-NL-1,21.52,128,1000.0,8,H100,80.0,False,",
                      "NVIDIA A100 80GB PCIe,EU-RO-1,1.64,16,100.0,1,A100,80.0,False,",
                      "NVIDIA H100 80GB HBM3,EU-NL-1,2.69,16,125.0,1,H100,80.0,False,",
                      "x,us,2.69,16,125.0,1,tpu-v2,,False,")
    assert imported.prices is not None
    assert [(o.node, o.price) for o in imported.prices.offers] == [
        ("a100-pcie-80gb-1x", 1.64), ("dgx-h100", 21.52), ("h100-sxm-1x", 2.69)]
    assert reasons(imported) == {5: "neither an NVIDIA nor an AMD GPU"}


def test_machines_of_google_are_known_by_their_type(tmp_path: Path) -> None:
    imported = hunted(tmp_path, "gcp", HUNT,
                      "a2-ultragpu-8g,us-central1,40.55,96,1360.0,8,A100,80.0,False,,nvidia,,x86,{}",
                      "a2-highgpu-8g,us-central1,29.39,96,680.0,8,A100,40.0,False,,nvidia,,x86,{}",
                      "a2-highgpu-4g,us-central1,29.39,96,680.0,4,A100,80.0,False,,nvidia,,x86,{}")
    assert [offer["node"] for offer in offers(imported).values()] == ["hgx-a100-40gb", "dgx-a100"]
    assert reasons(imported) == {4: "no such GPU in the catalog has this memory and form"}


def test_every_gpu_of_the_catalog_is_found_by_its_own_name() -> None:
    names = GpuNames(CATALOG)
    for name in CATALOG.names("gpus"):
        assert name in names.candidates(name, CATALOG.gpu(name).memory / 1e9, "")


def zipped(folder: Path, **files: str) -> Path:
    path = folder / "catalog.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.csv", text)
        archive.writestr("__MACOSX/._aws.csv", b"\xff\x00")
        archive.writestr("README", "no prices")
    return path


def hunt_row(instance: str, price: str = "31.92") -> str:
    return f"{HUNT}\n{instance},us,{price},208,1800.0,8,H100,80.0,False,,nvidia,,x86,{{}}\n"


def test_a_zip_has_a_list_for_each_provider(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = zipped(tmp_path / "20260818-42", aws=hunt_row("p5.48xlarge"), mine=hunt_row("h100-sxm"), none=hunt_row("?"))
    assert main(["catalog", "import", "gpuhunt", str(path)]) == 2
    assert "prices of 2 providers: write them with -o DIR, or choose one with --provider: aws, mine" in (
        capsys.readouterr().err)
    assert main(["catalog", "import", "gpuhunt", str(path), "-o", str(tmp_path / "out")]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "none: 0 offers of 0 instances from 1 row of" in captured.err
    assert sorted(p.name for p in (tmp_path / "out/prices").iterdir()) == ["aws.yaml", "mine.yaml"]
    assert {p.as_of for p in Catalog([tmp_path / "out"]).price_lists if p.name in ("aws", "mine")} == {"2026-08-18"}
    assert main(["catalog", "import", "gpuhunt", str(path), "--provider", "mine", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["schema"], shown["entries"][0]["name"], shown["skipped"]) == (
        "planner.catalog-import/1", "mine", {"mine": {}})
    assert main(["catalog", "import", "gpuhunt", str(path), "--provider", "azure"]) == 2
    assert "no azure.csv; it holds aws, mine, none" in capsys.readouterr().err


def test_an_imported_offer_is_checked_and_rented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, "mine/vms.csv", AWS, aws("big_sxm5", "H100", 8.0, 81920, "12.5,5.25"))
    argv = ["catalog", "import", "skypilot", str(path), "-v"]
    assert main([*argv, "-o", str(tmp_path / "catalog")]) == 0
    first = (tmp_path / "catalog/prices/mine.yaml").read_bytes()
    assert main([*argv, "-o", str(tmp_path / "catalog")]) == 0
    assert (tmp_path / "catalog/prices/mine.yaml").read_bytes() == first
    entry = parse(first, "mine.yaml").data
    assert entry["as_of"] == datetime.now(tz=UTC).strftime("%Y-%m")
    assert entry["note"].startswith("The file states no date")
    assert main(["catalog", "check", "--catalogs", str(tmp_path / "catalog")]) == 0
    capsys.readouterr()
    assert main(["plan", "-q", "--catalogs", str(tmp_path / "catalog"), "--model", "llama-3.1-8b", "--tokens", "1G",
                 "--on", "dgx-h100", "--provider", "mine", "--terms", "on-demand,spot", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["assignments"][0]["offer"] == "mine big_sxm5 (us-east-1, spot)"
    assert plan["assignments"][0]["usd_per_node_hour"] == 5.25


def test_the_date_and_the_name_can_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, "aws.csv", AWS, P5)
    assert main(["catalog", "import", "skypilot", str(path), "--provider", "aws-copy", "--as-of", "2026-03"]) == 0
    captured = capsys.readouterr()
    entry = parse(captured.out, "stdout").data
    assert (entry["name"], entry["as_of"]) == ("aws-copy", "2026-03")
    assert "states no date" not in entry["note"]
    assert "takes the place" not in captured.err
    # its file still says whose instances these are
    assert entry["offers"][0]["fabric"] == "efa-v2"
    assert main(["catalog", "import", "skypilot", str(path), "-q"]) == 0
    assert capsys.readouterr().err == ""
    for option in (["--provider", "A b"], ["--as-of", "March"]):
        assert main(["catalog", "import", "skypilot", str(path), *option]) == 2


@pytest.mark.parametrize(("lines", "problem"), [
    (["InstanceType,Price", "a,1"], ":1: expected a CSV with the columns InstanceType,"),
    (["<html>"], ":1: expected a CSV with the columns"),
    ([""], ":1: expected a CSV with the columns"),
    ([AWS + ",Price"], ":1: expected a CSV with the columns InstanceType, AcceleratorName, AcceleratorCount, Region, "
                       "Price, SpotPrice: a column comes twice"),
    ([AWS, P5, "p5.48xlarge,H100"], ":3: expected 11 values, as the header has columns, got 2"),
    ([AWS, P5.replace("55.04", "NaN")], ":2: Price: expected a number from 0 to a million, got 'NaN'"),
    ([AWS, P5.replace("17.0", "-1")], ":2: SpotPrice: expected a number"),
    ([AWS, P5.replace("17.0", "1e99")], ":2: SpotPrice: expected a number"),
    ([AWS, P5.replace("17.0", "1_7")], ":2: SpotPrice: expected a number"),
    ([AWS, P5.replace(",8.0,", ",eight,")], ":2: AcceleratorCount: expected a number"),
    ([AWS, 'p5,"H100'], ":2: not CSV: unexpected end of data"),
    ([AWS, "x" * 200_000], ":2: not CSV: field larger than field limit"),
    ([AWS, aws("m5.large", "", 0, 0, "0.096,0.04")], ": no row is an offer of a node type of the catalog"),
])
def test_a_wrong_file_is_refused_with_its_line(lines: list[str], problem: str, tmp_path: Path,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, "aws/vms.csv", *lines)
    assert main(["catalog", "import", "skypilot", "-q", str(path)]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert captured.err.startswith(f"Error: {path}{problem}")


@pytest.mark.parametrize(("raw", "name", "problem"), [
    (b"instance_name\xff", "aws.csv", "not a text file: the bytes are not UTF-8"),
    (b"no zip", "catalog.zip", "not a zip that can be read"),
    (hunt_row("p5.48xlarge").replace("False", "maybe").encode(), "aws.csv",
     "spot: expected True or False, got 'maybe'"),
    (hunt_row("p5.48xlarge", "inf").encode(), "aws.csv", "price: expected a number from 0 to a million, got 'inf'"),
    (None, "catalog.csv", "cannot read"), (None, "catalog.zip", "cannot read")])
def test_what_is_no_file_of_gpuhunt_is_refused(raw: bytes | None, name: str, problem: str, tmp_path: Path,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    if raw is not None:
        path.write_bytes(raw)
    assert main(["catalog", "import", "gpuhunt", str(path)]) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert str(path) in error


def test_a_zip_is_read_within_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(problem: str, **files: str) -> None:
        with pytest.raises(Exception, match=problem):
            gpuhunt.members(zipped(tmp_path, **files))

    refused("expected a zip with 1 to 100 CSV files, got 0")
    refused("expected a zip with 1 to 100 CSV files, got 101", **{f"p{i}": "" for i in range(101)})
    refused("two CSV files in the zip have the same provider", **{"a/aws": "", "b/aws": ""})
    monkeypatch.setattr(gpuhunt, "MAX_BYTES", 2**20)
    refused("unpacked, the CSV files are larger than 1 MiB", a=" " * 2**19, b=" " * (2**19 + 1))
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("aws.csv", HUNT)
    with pytest.raises(Exception, match="packed by deflate"):
        gpuhunt.members(path)
    path = zipped(tmp_path, aws=hunt_row("p5.48xlarge"))
    raw = bytearray(path.read_bytes())
    raw[60:70] = bytes(10)
    path.write_bytes(raw)
    with pytest.raises(Exception, match="not a zip that can be read"):
        gpuhunt.members(path)


@pytest.mark.parametrize("size", ["9" * 400, "1e400", "-1", "NaN", "Infinity", '"80"', "[]", "1e300", "true"])
def test_a_memory_that_is_no_size_of_a_gpu_says_nothing(size: str) -> None:
    assert _memory('{"Gpus": [{"MemoryInfo": {"SizeInMiB": ' + size + "}}]}") in (None, 80.0, 1.0)


def test_a_memory_of_400_digits_leaves_the_row(tmp_path: Path) -> None:
    row = aws("p5.48xlarge", "H100", 8.0, 10**400 - 1, "55.04,")
    assert skypilot(tmp_path, "aws", AWS, P5, row).prices is not None
