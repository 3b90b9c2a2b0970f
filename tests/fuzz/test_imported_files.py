"""Other people's files with anything in them: a catalog entry that is read back, rows skipped, or one clear line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.evidence.reading import read_evidence
from tests.fuzz.mutation import SCALARS, garbled, mutated
from tests.fuzz.running import folder, fuzzing, run
from tests.test_import_hf import CONFIGS

ODD = st.sampled_from(["4k", "8", 1e308, -1e308, float("nan"), float("inf"), 10**27, 10**12, 10**9, 10**8, 0, -1, True,
                       [], {}, "9" * 50, "", None, 0.5, "1e5", "\x1b[31m", "x" * 300])
AWS = ("InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
       "AvailabilityZone,Arch")
SKYPILOT = [[*f"{instance},{gpu},{count},192.0,2048.0".split(","),
             json.dumps({"Gpus": [{"Name": gpu, "MemoryInfo": {"SizeInMiB": mib}}]}), price, "17.0", "us-east-1",
             "us-east-1a", "x86_64"]
            for instance, gpu, count, mib, price in (("p5.48xlarge", "H100", "8.0", 81920, "55.04"),
                                                     ("p4d.24xlarge", "A100", "8.0", 40960, "21.96"),
                                                     ("g6.xlarge", "L4", "1.0", 23034, "0.8"))]
HUNT = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags"
GPUHUNT = [["8H100.80S.176V", "FIN-01", "19.12", "176", "1480", "8", "H100", "80", "False", "", "nvidia", ""],
           ["1A100.22V", "FIN-01", "1.29", "22", "120", "1", "A100", "80", "True", "", "nvidia", ""]]
CELLS = ["", "0", "-1", "nan", "inf", "1e999", "9" * 400, "1e-9", "1,000", "²", "True", "H100", "8", "80", "1e5",
         "'", '"', "{}", '{"Gpus": [{"MemoryInfo": {"SizeInMiB": ' + "9" * 400 + "}}]}", "{'Gpus': 1}", "[" * 900,
         "x" * 300, "\x1b[31mred", "a\nb", "../../etc", "~", "1000000", "0.00001"]
EVIDENCE = Path(__file__).parents[1] / "evidence"
KINDS = ("train_throughput", "train_memory", "moe_training", "train_runs", "serve_throughput", "serve_memory")
FIGURES = ["", "0", "1", "2", "3", "7", "64", "4096", "100000", "999999999", "1e-9", "1e12", "0.5", "-1", "nan", "int4",
           "q8_0", "FP8", "²", "9" * 400, "mla", "bf16", "lora", "VPP=0", "DP attention 99999999999", "0x0Gb",
           "prefill 0x(TP0 DP0 EP0) decode 0x(TP0 DP0 EP0)", "exl2-0bpw", "deepseek-v3", "vllm", "yes", "h100-sxm"]


@st.composite
def configs(draw: st.DrawFn) -> Any:
    """A config with a value or two that no config has."""
    config = dict(CONFIGS[draw(st.sampled_from(sorted(CONFIGS)))])
    for key in draw(st.lists(st.sampled_from(sorted(config)), min_size=1, max_size=2)):
        config[key] = draw(st.one_of(ODD, SCALARS))
    return draw(mutated(config, most=1)) if draw(st.booleans()) else config


@st.composite
def tables(draw: st.DrawFn, header: str, rows: list[list[str]], cells: list[str], most: int = 2) -> str:
    """A CSV in some cells of which stands what no such file has."""
    rows = [list(row) for row in rows]
    for _ in range(draw(st.integers(1, most))):
        row = draw(st.sampled_from(rows))
        row[draw(st.integers(0, len(row) - 1))] = draw(st.sampled_from(cells))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header.split(","), *rows])
    return text.getvalue()


@fuzzing(40)
@given(configs())
def test_a_mutated_config_is_refused_or_becomes_a_model_that_is_read(config: Any) -> None:
    with folder() as place:
        path = place / "config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        code, _ = run("catalog", "import", "hf", path, "-o", place / "own", "-q")
        assert code in (0, 2)
        if code == 0:
            (written,) = (place / "own" / "models").iterdir()
            assert run("catalog", "show", f"models/{written.stem}", "--catalogs", place / "own")[0] == 0


@fuzzing(12)
@given(st.sampled_from(sorted(CONFIGS)).flatmap(lambda name: garbled(json.dumps(CONFIGS[name], indent=1))))
def test_a_garbled_config_is_read_or_refused(text: str) -> None:
    with folder() as place:
        (place / "config.json").write_bytes(text.encode("utf-8", "surrogatepass"))
        assert run("catalog", "import", "hf", place / "config.json")[0] in (0, 2)


def imported(kind: str, text: str) -> None:
    """Import a price file; what is written is read."""
    with folder() as place:
        path = place / ("vms.csv" if kind == "skypilot" else "verda.csv")
        path.write_text(text, encoding="utf-8")
        code, _ = run("catalog", "import", kind, path, "-o", place / "own", "--provider", "own", "-q")
        assert code in (0, 2)
        if code == 0:
            assert run("catalog", "show", "prices/own", "--catalogs", place / "own")[0] == 0


@fuzzing(12)
@given(tables(AWS, SKYPILOT, CELLS))
def test_a_mutated_price_file_of_skypilot_is_read_or_refused(text: str) -> None:
    imported("skypilot", text)


@fuzzing(12)
@given(tables(HUNT, GPUHUNT, CELLS))
def test_a_mutated_price_file_of_gpuhunt_is_read_or_refused(text: str) -> None:
    imported("gpuhunt", text)


@fuzzing(8)
@given(st.sampled_from([(AWS, SKYPILOT), (HUNT, GPUHUNT)]).flatmap(lambda file: tables(*file, CELLS)).flatmap(garbled))
def test_a_garbled_price_file_is_read_or_refused(text: str) -> None:
    imported("skypilot" if text.startswith("InstanceType") else "gpuhunt", text)


@st.composite
def evidence(draw: st.DrawFn) -> str:
    """A few rows of an evidence file with other figures in some cells."""
    with (EVIDENCE / f"{draw(st.sampled_from(KINDS))}.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    first = draw(st.integers(0, len(rows) - 6))
    return draw(tables(",".join(header), rows[first:first + 6], FIGURES, most=9))


@fuzzing(6)
@given(evidence())
def test_every_row_of_mutated_evidence_is_judged_or_skipped(text: str) -> None:
    with folder() as place:
        path = place / "runs.csv"
        path.write_text(text, encoding="utf-8")
        code, out = run("validate", path, "--json")
        assert code == 0
        found = json.loads(out)
        named = {row["id"] for row in (*found["rows"], *found["skipped"])}
        assert {row.id for row in read_evidence(path).rows} <= named
