"""Each figure of an entry at the least and the most that its field declares: an estimate, or one clear line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.calibration import ArchitectureRates
from planner.catalog.load import CALIBRATION, KINDS, data_root
from planner.yaml_io import dump, read
from tests.fuzz.mutation import paths
from tests.fuzz.running import folder, fuzzing, run
from tests.ranges import numbers

ENTRIES = [("gpus", "h100-sxm"), ("nodes", "dgx-h100"), ("fabrics", "nvlink4-nvswitch"), ("fabrics", "ib-ndr"),
           ("models", "llama-3.1-8b"), ("stacks", "megatron-core"), ("calibration", "gpu-hopper"),
           ("calibration", "kernels"), ("calibration", "reliability"), ("engines", "vllm"), ("speeds", "vllm"),
           ("calibration", "serving")]
TRAINED = ("--model", "llama-3.1-8b", "--node", "dgx-h100", "--layout", "tp=2,dp=4", "--global-batch", "64",
           "--seq-len", "4096")
SERVED = ("--model", "llama-3.1-8b", "--node", "dgx-h100", "--layout", "tp=2", "--concurrency", "16", "--input", "1000",
          "--output", "100")


def inside(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


@pytest.mark.parametrize(("kind", "name"), ENTRIES, ids=[name for _, name in ENTRIES])
def test_an_estimate_with_a_figure_at_the_end_of_its_range(kind: str, name: str) -> None:
    entry = read(data_root("catalogs") / kind / f"{name}.yaml").data
    model = KINDS.get(kind) or CALIBRATION.get(name, ArchitectureRates)
    ends: dict[str, set[float]] = {}
    for field, least, most in numbers(model):
        ends.setdefault(field.rsplit(".", maxsplit=1)[-1], set()).update((least, most))
    places = [path for path in paths(entry) if not isinstance(inside(entry, path), dict | list)
              and "facts" not in path and any(key in ends for key in path)]

    @fuzzing(4)
    @given(st.sampled_from(places).flatmap(lambda path: st.tuples(
        st.just(path), st.sampled_from(sorted(ends[next(key for key in reversed(path) if key in ends)])))))
    def estimated(drawn: tuple[tuple[Any, ...], float]) -> None:
        path, value = drawn
        changed = read(data_root("catalogs") / kind / f"{name}.yaml").data
        was = inside(changed, path)
        unit = was.split()[-1] if isinstance(was, str) and " " in was else ""
        base = {"GB": 1e9, "GiB": 2**30, "TB/s": 1e12, "GB/s": 1e9, "Gbit/s": 1.25e8, "TFLOP/s": 1e12, "us": 1e-6,
                "ms": 1e-3, "kW": 1e3, "min": 60, "h": 3600, "MB": 1e6, "MiB": 2**20, "TB": 1e12}.get(unit, 1)
        inside(changed, path[:-1])[path[-1]] = f"{value / base!r} {unit}" if unit else value
        with folder() as place:
            (place / kind).mkdir()
            (place / kind / f"{name}.yaml").write_text(dump(changed), encoding="utf-8")
            flags = SERVED if kind in ("engines", "speeds") or name == "serving" else TRAINED
            assert run("estimate", "-q", "--catalogs", place, *flags)[0] in (0, 2)

    estimated()
