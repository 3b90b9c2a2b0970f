"""Prefill and decode apart: each finds the other, and stages that a connector does not move are refused."""

import json
import os
import re
import subprocess

import pytest

from planner.errors import InputError
from planner.launch.axes import CannotExpress
from planner.launch.emitter import ServiceEmitter
from planner.launch.written import write_all
from tests.launch.emitters import emitters_of
from tests.launch.services import otherwise, served, serving
from tests.launch.test_services import apart, folder_of
from tests.launch.works import CATALOG

EMITTERS = emitters_of(ServiceEmitter)


def as_role(one, role):
    return one.model_copy(update={"serving": one.serving.model_copy(update={"role": role})})


def test_decode_finds_every_prefill_of_a_node(tmp_path):
    """The router of SGLang tells on which port each prefill waits for decode, and that is where it waits."""
    folder_of(apart("tp=1", gpus="4", engine="sglang"), tmp_path, "torchrun", "sglang")
    (tmp_path / "bin").mkdir()
    path = tmp_path / "bin" / "python3"
    path.write_text('#!/usr/bin/env bash\necho "$*"\n')
    path.chmod(0o755)
    ran = subprocess.run(["bash", "node.sh"], cwd=tmp_path, text=True, capture_output=True, check=False, env={
        **os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})
    assert ran.returncode == 0, ran.stderr
    opened = {}
    for log in tmp_path.glob("prefill-*.log"):
        port, waits = (re.search(rf"--{name} (\d+)", log.read_text()).group(1)
                       for name in ("port", "disaggregation-bootstrap-port"))
        opened[port] = waits
    told = dict(re.findall(r"--prefill http://127\.0\.0\.1:(\d+) (\d+)", (tmp_path / "router.log").read_text()))
    assert told == opened
    assert len(set(opened.values())) == len(opened) == 4


def test_vllm_is_told_who_prefills_and_who_decodes(tmp_path):
    files = folder_of(apart("tp=2"), tmp_path, "slurm")
    for role, told in (("prefill", "kv_producer"), ("decode", "kv_consumer")):
        (words,) = re.findall(r"--kv-transfer-config '(.*)'", files[f"{role}.sh"])
        assert json.loads(words)["kv_role"] == told


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_stages_that_vllm_does_not_move_are_refused_with_who_can(tmp_path, role):
    staged = as_role(serving("tp=2,pp=2"), role)
    other = as_role(serving("tp=2"), "decode" if role == "prefill" else "prefill")
    with pytest.raises(CannotExpress, match=f"pp: 2 of {role}") as refused:
        folder_of((staged, other), tmp_path, "slurm")
    assert refused.value.instead == {"pp": 1}
    with pytest.raises(InputError, match=r"pp: 2.*--for sglang or tensorrt-llm; it can with --layout pp=1$"):
        write_all(staged, CATALOG, tmp_path, "vllm")


def test_decode_of_sglang_has_the_stages_of_prefill_or_one():
    staged, alone = ({role: otherwise(served("sglang", layout), serving={"role": role})
                      for role in ("prefill", "decode")} for layout in ("tp=2,pp=2", "tp=2"))
    for prefill, decode in ((staged, staged), (staged, alone), (alone, alone)):
        assert EMITTERS["sglang"].emit([prefill["prefill"], decode["decode"]]).parts
    with pytest.raises(CannotExpress, match="pp: 2 of decode beside 1 of prefill"):
        EMITTERS["sglang"].emit([alone["prefill"], staged["decode"]])
