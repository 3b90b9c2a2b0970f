"""Whatever is wrong with a file: exit 2, one line with file, line and key, no traceback, within a second."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOOD = """\
name: test
workload:
  model: llama-3.1-70b
  tokens: 15 T
  global_batch: 2048 sequences
  precision: [bf16]
hardware:
  candidates: [dgx-h100, dgx-h200]
sourcing:
  rent:
    terms: [on-demand]
limits:
  deadline: 60 d
objective: cost
"""
LINE = {line.split(":")[0].strip(): number for number, line in enumerate(GOOD.splitlines(), 1)}


def changed(key: str, text: str) -> str:
    """Return the good scenario with the line of `key` replaced, indented as it was."""
    lines = GOOD.splitlines()
    old = lines[LINE[key] - 1]
    lines[LINE[key] - 1] = old[:len(old) - len(old.lstrip())] + text
    return "\n".join(lines) + "\n"


SCENARIOS = [
    ("rent", "buy: {utilization: 1e-300}\n  rent:", "sourcing.buy.utilization"),
    # the line of the good file that is replaced, what replaces it, what the message must say
    ("model", "model: llama-3.1-70", "workload.model: unknown model 'llama-3.1-70'; did you mean"),
    ("model", "model: gpt-5", "workload.model: 'gpt-5' is a model whose weights are not published"),
    ("model", "model: {a: 1}", "workload.model: a model is named (llama-3.1-8b), or is a Hugging Face id, a size, "
     "or the path of a config.json"),
    ("model", "model:", "workload.model: expected text, got nothing"),
    ("model", "modle: llama-3.1-70b", "workload: unknown key 'modle'; did you mean model"),
    ("tokens", "tokens: 15 X", "workload.tokens: unknown unit 'X'"),
    ("tokens", "tokens: -15 T", "workload.tokens: '-15 T' is not a token count: it must be above zero"),
    ("tokens", "tokens: 0", "workload.tokens: token count must be above zero"),
    ("tokens", "tokens: .nan", "workload.tokens: '.nan' is not a token count"),
    ("tokens", "tokens: .inf", "workload.tokens: '.inf' is not a token count"),
    ("tokens", "tokens: 1e999", "workload.tokens:"),
    ("tokens", "tokens: true", "workload.tokens: true or false"),
    ("tokens", "tokens: 1.5", "workload.tokens:"),
    ("tokens", "tokens: {a: 1}", "workload.tokens:"),
    ("tokens", "tokens: " + "9" * 5000, "workload.tokens:"),
    ("global_batch", "global_batch: many", "workload.global_batch: 'many' is not a global batch"),
    ("global_batch", "global_batch: 16 Q tokens", "workload.global_batch: unknown unit 'Q tokens' in '16 Q tokens'"),
    ("precision", "precision: [int8]", "workload.precision"),
    ("precision", "precision: {bf16: 1}", "workload.precision: expected a list"),
    ("precision", "precision: []", "workload.precision:"),
    ("candidates", "candidates: [dgx-h100, dgx-h300]", "candidates.1: unknown node or GPU 'dgx-h300'; did"),
    ("candidates", "candidates: [9xrtx-3070]", "hardware.candidates.0: unknown hardware"),
    ("candidates", "candidates: [H1000]", "hardware.candidates.0: unknown node or GPU 'H1000'"),
    ("candidates", "candidates: []", "hardware.candidates:"),
    ("candidates", "candidates: [[dgx-h100]]", "hardware.candidates.0: expected text"),
    ("terms", "terms: [monthly]", "sourcing.rent.terms.0: expected 'on-demand'"),
    ("terms", "providers: [nobody]", "sourcing.rent.providers.0: unknown provider 'nobody'"),
    ("terms", "regions: [mars]", "sourcing.rent.regions.0: unknown region 'mars'"),
    ("deadline", "deadline: 60", "limits.deadline: duration needs a unit, got 60: write for example '60 d'"),
    ("deadline", "deadline: 60 dayz", "limits.deadline: unknown unit 'dayz' in '60 dayz': did you mean '60 day"),
    ("deadline", "deadline: -1 d", "limits.deadline: '-1 d' is not a duration: it must be above zero"),
    ("deadline", "deadline: nan d", "limits.deadline: 'nan d' is not a duration"),
    ("deadline", "deadlin: 60 d", "limits: unknown key 'deadlin'; did you mean deadline?"),
    ("deadline", "budget: 12 SEK", "limits.budget: unknown unit 'SEK' in '12 SEK'"),
    ("deadline", "budget: 80G", "limits.budget: unknown unit 'G' in '80G'"),
    ("deadline", "gpus: 0", "limits.gpus: number of GPUs must be above zero"),
    ("deadline", "max_nodes: 2.5", "limits.max_nodes: number of nodes must be a whole number, got 2.5"),
    ("objective", "objective: beauty", "objective: expected 'cost', 'time', 'gpus' or 'energy', got 'beauty'"),
    ("objective", "objectiv: cost", "unknown key 'objectiv'; did you mean objective?"),
    ("objective", "confidence: 1.5", "confidence: expected less than 1, got 1.5"),
    ("objective", "confidence: .nan", "confidence: '.nan' is not a share"),
    ("objective", "limits: {}", "duplicate key 'limits'"),
    ("objective", "a: &a [x, x]", "anchors and aliases are not allowed"),
    ("objective", "a: !!python/object/apply:os.system [id]", "tag"),
    ("objective", "a: " + "[" * 3000, "nested deeper than 30 levels"),
    ("objective", "a: " + "{a: " * 3000 + "}" * 3000, "nested deeper than 30 levels"),
    ("objective", "---\na: 1", "more than one document"),
    ("objective", "\tobjective: cost", "YAML syntax"),
    ("objective", "objective: 'cost", "YAML syntax"),
    ("objective", "objective: [cost", "YAML syntax"),
    ("objective", "name: \x07", "unacceptable character"),
    ("objective", "? [a, b]\n: c", "a key must be text"),
]
WHOLE_FILES = [
    ("empty", b"", None, "the file is empty"),
    ("comment", b"# nothing here\n", None, "the file is empty"),
    ("list", b"- a\n- b\n", 1, "expected keys and values at the top level"),
    ("text", b"hello\n", 1, "expected keys and values at the top level, got 'hello'"),
    ("binary", b"name: x\n\x80\x81\xff\n", 2, "not a text file"),
    ("utf-16", "name: x\n".encode("utf-16"), 1, "not a text file"),
    ("zip", b"PK\x03\x04\x14\x00\x00\x00", 1, "unacceptable character"),
    ("huge", b"name: " + b"x" * (5 << 20), None, "file is larger than 4 MiB"),
    ("many", b"- 1\n" * 200_000, 100_000, "more than 100,000 values"),
    ("brackets", b"[" * 3000, 1, "nested deeper than 30 levels"),
    ("bomb", b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", 1, "anchors and aliases are not allowed"),
    ("no workload", b"name: x\nhardware: {candidates: [dgx-h100]}\n", 1, "workload: required, but missing"),
    ("workload is text", b"workload: train\n", 1, "workload: expected keys and values below it, got 'train'"),
    ("no model", b"name: x\nworkload:\n  tokens: 1 T\n", 2, "workload.model: required, but missing"),
    ("json, cut off", b'{"name": "x",\n "workload": {\n', 2, "YAML syntax"),
]


def assert_one_clear_line(ran, path, line, message):
    where = f"{path}:{line}: " if line else f"{path}: "
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"Error: {where}"), ran.err
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert len(ran.err) < 1000 + len(str(path))
    assert "Traceback" not in ran.err
    assert ran.seconds < 1


@pytest.mark.parametrize(("key", "text", "message"), SCENARIOS, ids=[text[:24] for _, text, _ in SCENARIOS])
def test_a_wrong_line_is_named(planner, tmp_path, key, text, message):
    path = tmp_path / "scenario.yaml"
    path.write_text(changed(key, text))
    assert_one_clear_line(planner("plan", path), path, LINE[key], message)


@pytest.mark.parametrize(("content", "line", "message"),
[w[1:] for w in WHOLE_FILES], ids=[w[0] for w in WHOLE_FILES])
def test_a_wrong_file_is_named(planner, tmp_path, content, line, message):
    path = tmp_path / "scenario.yaml"
    path.write_bytes(content)
    assert_one_clear_line(planner("plan", path, "--json"), path, line, message)


def test_what_is_no_file(planner, tmp_path):
    assert_one_clear_line(planner("plan", tmp_path), tmp_path, None, "cannot read: Is a directory")
    absent = tmp_path / "absent.yaml"
    assert_one_clear_line(planner("plan", absent), absent, None, "cannot read: no such file")
    ran = planner("plan", "llama-3.1-70b-pretrian")
    assert ran.code == 2
    assert "unknown scenario" in ran.err
    assert "did you mean llama-3.1-70b-pretrain" in ran.err


@pytest.mark.parametrize("content", [GOOD.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + GOOD.encode(),
                                     GOOD.rstrip().encode()], ids=["CRLF", "BOM", "no last newline"])
def test_harmless_encodings_are_read(planner, tmp_path, content):
    path = tmp_path / "scenario.yaml"
    path.write_bytes(content)
    ran = planner("plan", path, "--show-scenario")
    assert (ran.code, ran.err) == (0, "")
    assert "deadline: 60 d" in ran.out


@pytest.mark.parametrize(("flags", "message"), [
    (["--deadline", "3"], "--deadline: '3' has no unit"),
    (["--deadline", "nan d"], "--deadline: 'nan d' is not"),
    (["--budget", "80G"], "--budget: unknown unit 'G'"),
    (["--gpus", "-8"], "--gpus: '-8' is not a number of GPUs"),
    (["--gpus", "many"], "--gpus: 'many' is not a number of GPUs"),
    (["--max-nodes", "1.5"], "--max-nodes: number of nodes must be a whole number"),
    (["--tokens", "-1T"], "--tokens: '-1T' is not a token count"),
    (["--seq-len", "8 x"], "--seq-len: unknown unit"),
    (["--global-batch", "x"], "--global-batch: 'x' is not"),
    (["--model", "gpt-5"], "--model: 'gpt-5' is a model whose weights are not published"),
    (["--on", "dgx-h300"], "--on: unknown node or GPU 'dgx-h300'"), (["--on", ","], "--on:"),
    (["--terms", "spot,monthly"], "--terms: expected 'on-demand'"),
    (["--stack", "x"], "--stack: unknown stack 'x'"),
    (["--provider", "aws,x"], "--provider: unknown provider 'x'"),
    (["--precision", "int8"], "--precision: 'int8'"),
    (["--catalogs", "/nowhere"], "/nowhere: no such catalog folder"),
])
def test_a_wrong_flag_is_named(planner, flags, message):
    ran = planner("plan", "llama-3.1-70b-pretrain", *flags)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"Error: {message}")
    assert ran.err.count("\n") == 1


GPU = (ROOT / "catalogs/gpus/h100-sxm.yaml").read_text()


@pytest.mark.parametrize(("key", "value", "message"), [
    ("memory", "80G", "memory: unknown unit 'G' in '80G'"),
    ("memory", "80", "memory: GPU memory needs a unit, got 80"),
    ("memory_bandwidth", "3350 Gb/s", "memory_bandwidth: unknown unit 'Gb/s'"),
    ("memory_bandwidth", "3.35 TB", "memory_bandwidth: unknown unit 'TB'"),
    ("power", "-700 W", "power: '-700 W' is not a power: it must be above zero"),
    ("vendor", "nvdia", "vendor: expected 'nvidia' or 'amd', got 'nvdia'"),
    ("multiprocessors", "0", "multiprocessors: expected greater than 0, got 0"),
    ("name", "h100", "name: expected 'h100-sxm' as the file is called, got 'h100'"),
    ("as_of", "yesterday", "as_of:"),
])
def test_a_wrong_catalog_file_is_named(planner, tmp_path, key, value, message):
    path = tmp_path / "gpus" / "h100-sxm.yaml"
    path.parent.mkdir()
    lines = [f"{key}: {value}" if old.startswith(f"{key}:") else old for old in GPU.splitlines()]
    path.write_text("\n".join(lines))
    ran = planner("catalog", "check", "--catalogs", tmp_path)
    line = None if key == "name" else next(n for n, text in enumerate(lines, 1) if text.startswith(f"{key}:"))
    assert ran.code == 2
    assert ran.err.startswith(f"Error: {path}:{line}: " if line else f"Error: {path}: ")
    assert message in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(("key", "text"), [("deadline", "deadline: 60"), ("objective", "a: " + "[" * 3000),
                                           ("objective", "a: !!python/object/apply:os.system [id]"),
                                           ("model", "model: gpt-5")])
def test_a_real_process_says_the_same(tmp_path, key, text):
    path = tmp_path / "scenario.yaml"
    path.write_text(changed(key, text))
    done = subprocess.run([sys.executable, "-m", "planner", "plan", path], cwd=ROOT, check=False,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: {path}:{LINE[key]}: ")
    assert done.stderr.count("\n") == 1
