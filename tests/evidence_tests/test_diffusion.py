"""Published runs of diffusion models: what is read of them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import planner

COLUMNS = ("id,source,as_of,kind,stack,model,component,params_b,gpu,gpus,method,resolution,frames,batch,steps,"
           "precision,quantization,optimizer,offload,checkpointing,lora_rank,compile,parallel,latency_s,step_time_s,throughput,"
           "throughput_unit,tflops_per_gpu,peak_mem_gib,weights_mem_gb,fits,notes,gpu_printed,printed_unit")


def row(name: str, **cells: str) -> str:
    usual = {"id": name, "kind": "training", "stack": "SimpleTuner", "model": "Z-Image Turbo", "gpu": "l40s",
             "gpus": "1", "method": "lora", "resolution": "1024x1024", "batch": "1", "precision": "bf16",
             "optimizer": "optimi-lion",
             "checkpointing": "layer", "lora_rank": "64", "step_time_s": "0.49", "peak_mem_gib": "12.84", "fits": "yes",
             "notes": "example z-image-turbo.peft-lora; printed 0.49 / 12.84"} | cells
    return ",".join(usual.get(column, "") for column in COLUMNS.split(","))


def test_rows_are_held_against_predictions_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("\n".join([
        COLUMNS, row("z"), row("out", gpu="rtx-4060", precision="bf16", checkpointing="none", fits="no", step_time_s="",
                               peak_mem_gib=""),
        row("kind", kind="component training"), row("model", model="Unheard Of"),
        row("adapter", method="x.lycoris-lokr"), row("kronecker", model="SDXL", method="sdxl.lycoris-lokr"),
        row("spilled", checkpointing="activation-offload", peak_mem_gib="13.19"),
        row("modes", checkpointing="every full moon"), row("other", stack="kohya")]))
    validation = planner.validate(file)
    held = {(entry.id, entry.quantity): entry for entry in validation.rows}
    assert held["z", "peak_mem_gib"].error == pytest.approx(0, abs=0.08)
    # the data of the example decides, not the resolution that is printed
    assert "resolution=512x512" in held["z", "peak_mem_gib"].assumed
    assert (held["z", "fits"].predicted, held["out", "fits"].predicted) == ("fits", "does not fit")
    assert held["spilled", "peak_mem_gib"].error == pytest.approx(0, abs=0.1)
    assert "kronecker" in {entry.id for entry in validation.rows}
    assert {skipped.id for skipped in validation.skipped} == {"kind", "model", "adapter", "modes"}
    assert "stack=simpletuner" in held["other", "peak_mem_gib"].assumed


def test_an_example_says_what_it_trains_and_what_of_it_is_not_modeled(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("\n".join([
        COLUMNS,
        # a name that no table has, of an example whose flavor the trainer chooses
        row("named", model="Something New", notes="example flux2.peft-lora; printed", peak_mem_gib="30"),
        row("teacher", model="Anima", notes="example anima-anyflow-stage1.peft-lora; printed"),
        row("songs", model="ACE Step 1.5", notes="example ace_step-v1-5.peft-lora; printed"),
        row("compiled", model="Cosmos 3", method="cosmos3-edge-image-24g.lycoris-lokr",
            notes="example cosmos3-edge-image-24g.lycoris-lokr; printed")]))
    validation = planner.validate(file)
    assert {(entry.id, entry.quantity) for entry in validation.rows} == {
        ("named", "peak_mem_gib"), ("named", "step_time_s"), ("named", "fits"), ("compiled", "peak_mem_gib"),
        ("compiled", "fits")}
    reasons = {skipped.id: skipped.reason for skipped in validation.skipped}
    assert "distillation" in reasons["teacher"]
    assert "80 GB" in reasons["songs"]


def test_runs_of_other_stacks_are_predicted_with_a_wide_interval() -> None:
    """MLPerf's training on 4 to 512 GPUs, of which no row took part in the fit, and a run that is half as fast."""
    rows = planner.validate(Path(__file__).parents[1] / "evidence/diffusion.csv").rows
    entries = [entry for entry in rows if entry.id.startswith(("mlp-v", "mos-"))]
    mlperf = sorted(abs(entry.error or 0.0) for entry in entries if entry.id.startswith("mlp-v"))
    assert len(mlperf) >= 36
    assert mlperf[len(mlperf) // 2] < 0.12
    assert mlperf[int(0.9 * len(mlperf))] < 0.2
    assert all("stack=simpletuner" in entry.assumed for entry in entries)
    assert all(low <= entry.measured <= high for entry in entries  # type: ignore[operator]
               for low, high in [entry.interval90 or (0.0, 0.0)])


def test_a_setting_acts_in_runs_of_the_page_that_measured_it(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    krea = {"model": "Krea 2", "gpu": "h100-sxm", "notes": "", "step_time_s": "", "fits": "yes"}
    file.write_text("\n".join([
        COLUMNS, row("page", source="SimpleTuner:KREA2.md#L243", batch="8", peak_mem_gib="67.88", **krea),
        row("int8", source="SimpleTuner:KREA2.md#L249", batch="8", peak_mem_gib="58.84", precision="int8-torchao",
            **krea),
        row("table", source="SimpleTuner:SEGMENTED_CHECKPOINTING.md#L478", peak_mem_gib="40.06",
            **krea | {"resolution": "512x512"})]))
    held = {entry.id: entry for entry in planner.validate(file).rows if entry.quantity == "peak_mem_gib"}
    assert {name: held[name].error for name in ("page", "int8", "table")} == pytest.approx(
        {"page": 0, "int8": 0, "table": 0}, abs=0.1)
