"""Files that a question names: uploaded, bounded, read as text, found by content and never by a path."""

import json
from pathlib import Path

import pytest

from planner import estimate
from planner.cli.main import main
from planner.errors import InputError
from planner.web import uploads
from planner.web.question import question_of
from planner.web.wording import as_command, as_python

SAMPLES = "".join(json.dumps({"text": "a sample of words " * size}) + "\n" for size in range(1, 40))
REQUESTS = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:{at // 60:02}:{at % 60:02}.0000000,{200 + at},{50 + at % 7}\n" for at in range(600))
LOG = "submit,duration,gpus\n" + "".join(f"{at * 600},{1800 + 60 * at},{1 + at % 4}\n" for at in range(60))


def put(web, name, text):
    answer = web.post("/api/files", params={"name": name}, content=text,
                      headers={"content-type": "application/octet-stream"})
    assert answer.status_code == 201
    return answer.json()["file"]


@pytest.mark.parametrize(("verb", "field", "name", "text", "values"), [
    ("plan", "dataset", "samples.jsonl", SAMPLES, {"model": "gpt2", "method": "full", "on": "l4-1x", "max_gpus": "1"}),
    ("plan", "requests", "trace.csv", REQUESTS, {"model": "llama-3.1-8b", "ttft": "2 s", "on": "l40s-1x"}),
    ("plan", "jobs", "log.csv", LOG, {"wait": "2 h at 95%", "on": "dgx-h100"}),
    ("plan", "replay", "trace.csv", REQUESTS, {"model": "llama-3.1-8b", "rate": "2", "input": "300", "output": "50",
                                               "ttft": "2 s", "on": "l40s-1x"})])
def test_an_uploaded_file_answers_as_on_the_command_line(web, capsys, tmp_path, verb, field, name, text, values):
    called = put(web, name, text)
    answer = web.post(f"/api/{verb}", json=values | {field: called})
    path = uploads.path_of(field, called)
    flags = [part for key, value in {**values, field: path}.items() for part in (f"--{key.replace('_', '-')}", value)]
    code = main([verb, *flags, "--json", "-q"])
    assert answer.status_code == 200, answer.text
    assert answer.text == capsys.readouterr().out
    assert answer.headers["planner-exit-code"] == str(code)
    assert f"--{field} {name}" in as_command(question_of(verb, values | {field: called}))
    if field in ("dataset", "requests"):
        written = web.get("/download/plan.yaml", params=values | {field: called}).text
        assert f": {name}\n" in written
    job = web.post("/api/jobs", json={"verb": verb, "question": values | {field: called}, "page": True}).json()["id"]
    assert 'class="answer"' in web.get(f"/api/jobs/{job}/page").text


def test_a_config_as_text_answers_as_on_the_command_line(web, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "base_model: NousResearch/Llama-2-7b-hf\nadapter: lora\nlora_r: 32\nsequence_len: 4096\n" \
           "sample_packing: true\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\nnum_epochs: 1\n"
    Path("config.txt").write_text(text)
    assert main(["estimate", "--from", "config.txt", "--node", "rtx-4090-1x", "--json", "-q"]) == 0
    answer = web.post("/api/estimate", json={"from_": text, "node": "rtx-4090-1x"})
    assert answer.text == capsys.readouterr().out
    page = web.get("/part/estimate", params={"from_": text, "node": "rtx-4090-1x"}).text
    assert "Read from the config" in page
    assert "lora_rank 32" in page
    assert web.post("/fields", json={"yaml": text}).json()["fields"] == {"from_": text}
    wrong = web.post("/api/estimate", json={"from_": "hello", "node": "l4-1x"}).json()["error"]
    assert wrong["field"] == "from_"
    words = web.get("/words/estimate", params={"from_": text, "node": "rtx-4090-1x"}).json()
    assert "--from config.txt" in words["command"]
    assert "lora_rank: 32" in words["yaml"]


@pytest.mark.parametrize(("what", "values"), [
    ("sequence", {"model": "gpt2", "method": "qlora", "node": "l4-1x"}),
    ("resolution", {"model": "flux.1-dev", "method": "inference", "node": "rtx-5080-1x"})])
def test_the_largest_that_fits_is_that_of_the_command_line(web, capsys, what, values):
    flags = [part for key, value in values.items() for part in (f"--{key}", value)]
    assert main(["estimate", *flags, "--max", what, "--json"]) == 0
    printed = capsys.readouterr()
    assert web.post("/api/estimate", json=values | {"largest": what}).text == printed.out
    page = web.get("/part/estimate", params=values | {"largest": what}).text
    assert printed.err.splitlines()[0][:60] in page
    assert estimate(**values, largest=what).memory.fits == "fits"
    asked = question_of("estimate", values | {"largest": what})
    assert f"--max {what}" in as_command(asked)
    assert f"largest='{what}'" in as_python(asked)


def test_what_is_wrong_in_an_upload_stands_at_its_field_without_the_path_of_the_server(web):
    called = put(web, "samples.jsonl", '{"text": "good"}\nbad\n')
    error = web.post("/api/plan", json={"model": "gpt2", "method": "full", "dataset": called}).json()["error"]
    assert (error["field"], error["file"], error["line"]) == ("dataset", "samples.jsonl", 2)
    assert error["message"].startswith("samples.jsonl:2: expected a JSON object")


@pytest.mark.parametrize("value", ["/etc/passwd", "samples.jsonl@" + "0" * 31, "../x@" + "0" * 32, ["/etc/passwd"],
                                   "x/../../etc/passwd@" + "0" * 32, "samples.jsonl@" + "0" * 32, {"a": "/etc/passwd"}])
def test_only_what_was_uploaded_is_opened(web, value):
    for body in ({"model": "gpt2", "dataset": value}, {"model": "gpt2", "tokens": "1 G", "tokenizer": value},
                 {"jobs": value, "wait": "1 h", "on": "l4-1x"},
                 {"scenario": {"workload": {"model": "gpt2", "dataset": value}}}):
        answer = web.post("/api/plan", json=body)
        assert answer.status_code == 400
        assert "root:" not in answer.text


def test_an_upload_is_bounded_and_text(web, monkeypatch):
    stream = {"content-type": "application/octet-stream"}
    post = lambda name, content, headers=stream: web.post("/api/files", params={"name": name}, content=content,  # noqa: E731
                                                          headers=headers)
    assert post("a.csv", b"x" * (17 << 20)).status_code == 413
    assert post("a.csv.gz", b"\x1f\x8b\x08\x00\xff\xff").status_code == 400
    assert post("a.parquet", b"PAR1").status_code == 400
    assert post("a.csv", b"x", {"content-type": "text/plain"}).status_code == 400
    assert post("a.csv", b"x", stream | {"origin": "http://evil.example"}).status_code == 403
    assert post("../../etc/pass wd", b"x").json()["file"].startswith("pass-wd@")
    assert post("...", b"x").json()["file"].startswith("file@")
    with monkeypatch.context() as full:
        full.setattr(uploads, "files_folder", lambda: Path("/proc/nowhere"))
        answer = post("a.csv", b"x")
        assert (answer.status_code, "nowhere" in answer.text) == (507, False)
        assert "the disk of the server is full" in answer.json()["error"]["message"]
    monkeypatch.setattr(uploads, "MOST_FILES", 2)
    names = [uploads.put("a.csv", str(at).encode()) for at in range(3)]
    with pytest.raises(InputError, match="upload it again"):
        uploads.path_of("dataset", names[0])
    assert Path(uploads.path_of("dataset", names[2])).read_text() == "2"


def test_a_shipped_trace_needs_no_upload(web):
    asked = {"yaml": "workload: {kind: serving, model: llama-3.1-8b, trace: traces/azure-llm-2023-conv.csv}\n",
             "node": "dgx-h100"}
    assert web.post("/api/estimate", json=asked).status_code == 200
