"""Every number that is read has a range, declared with its field; outside it the error says which."""

from __future__ import annotations

import pytest

from planner.catalog.calibration import ArchitectureRates
from planner.catalog.load import CALIBRATION, KINDS, data_root
from planner.scenario.scenario import Scenario, ServingScenario
from planner.yaml_io import dump, read
from tests.fuzz.running import folder, run
from tests.ranges import numbers

READ = [*dict.fromkeys([*KINDS.values(), *CALIBRATION.values(), ArchitectureRates, Scenario, ServingScenario])]


@pytest.mark.parametrize("model", READ, ids=lambda model: model.__name__)
def test_every_number_has_a_least_and_a_most(model):
    assert [name for name, least, most in numbers(model) if least is None or most is None] == []


def test_numbers_are_found_wherever_they_are():
    found = {name for model in READ for name, _, _ in numbers(model)}
    assert {"Cpu.sockets", "Gpu.peak", "Curve.sizes", "Mamba2.heads", "Offer.price", "Nics.count", "Training.tokens",
            "Serving.rate", "Sourcing.own", "Release.fractions", "Constant.value"} <= found
    assert len(found) > 200


@pytest.mark.parametrize(("kind", "name", "path", "value", "said"), [
    ("nodes", "dgx-h100", "cpu.sockets", 1e18, "less than or equal to 10000"),
    ("nodes", "dgx-h100", "gpus", 10**9, "less than or equal to 576"),
    ("nodes", "dgx-h100", "power.load", "1e300 W", "0.001 W to 10 TW"),
    ("gpus", "h100-sxm", "memory", "1e30 GB", "1 MB to 1 PB"),
    ("gpus", "h100-sxm", "multiprocessors", 1e18, "less than or equal to"),
    ("fabrics", "ib-ndr", "latency", "1e-300 s", "0.000001 us to 36525 d"),
    ("models", "llama-3.1-8b", "blocks.0.attention.head_dim", 10**27, "less than or equal to"),
    ("stacks", "megatron-core", "live_layers", 1e9, "less than or equal to 100"),
    ("engines", "vllm", "block", 10**12, "less than or equal to"),
    ("calibration", "gpu-hopper", "gemm.bf16", 1e9, "less than or equal to 1.2"),
    ("calibration", "gpu-hopper", "gemm.bf16", 1e-300, "greater than or equal to 0.0001"),
    ("calibration", "gpu-hopper", "sustained.bf16", 2.0, "of the rate on paper, at most 1.2"),
    ("calibration", "gpu-hopper", "memory", 1e-300, "greater than or equal to 0.0001"),
    ("calibration", "kernels", "tile", 0, "greater than 0")])
def test_a_figure_outside_its_range_is_refused_with_the_bound(kind, name, path, value, said, capsys):
    entry = dict(read(data_root("catalogs") / kind / f"{name}.yaml").data)
    *parts, last = path.split(".")
    inner = entry
    for part in parts:
        inner = inner[int(part) if part.isdigit() else part]
    inner[last] = value
    with folder() as place:
        (place / kind).mkdir()
        (place / kind / f"{name}.yaml").write_text(dump(entry), encoding="utf-8")
        code, _, err = run_all("catalog", "check", "-q", "--catalogs", place)
    assert code == 2
    assert last in err
    assert said in err


def run_all(*argv):
    """Run `planner ARGV`; return exit code, stdout and stderr."""
    import contextlib
    import io

    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        from planner.cli.main import main
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = main([str(arg) for arg in argv])
    return code, out.getvalue(), err.getvalue()


def test_a_fitted_figure_outside_its_range_is_refused():
    from planner.catalog.fitted import Constant, Fitted
    from planner.catalog.load import Catalog
    from planner.errors import InputError

    stack = Catalog().stack("megatron-core")
    fitted = Fitted(name="fitted", source="a test", as_of="2026", kind="fitted", values={
        "stacks/megatron-core": {"elementwise": Constant(value=1e9, spread=0, rows=1)}})
    with pytest.raises(InputError, match=r"elementwise.*less than or equal to"):
        fitted.over(stack, "stacks", "megatron-core")


def test_a_scenario_outside_its_range_is_refused():
    for flags in (["--rate", "1e-30", "--input", "10", "--output", "10"], ["--tokens", "1M", "--seq-len", "1e12"],
                  ["--tokens", "1M", "--max-power", "1e20 W"], ["--tokens", "1M", "--budget", "1e-30 USD"]):
        assert run("plan", "--model", "gpt2", *flags, "--show-scenario")[0] == 2
