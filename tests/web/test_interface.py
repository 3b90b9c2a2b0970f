"""The JSON API: the bytes of `--json`, errors that name the field, jobs, and what a stranger may not ask."""

import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import httpx
import jsonschema
import pytest

from planner.cli.main import main
from planner.scenario.flags import NAMES
from planner.web.question import OPTIONS
from tests.processes import PATIENCE

ROOT = Path(__file__).parents[2]
SMALL = {"model": "gpt2", "tokens": "1 G", "on": "h100-sxm-1x", "max_gpus": 1, "stack": "fsdp2"}
FLAGS = ["--model", "gpt2", "--tokens", "1 G", "--on", "h100-sxm-1x", "--max-gpus", "1", "--stack", "fsdp2"]
HELD = {"model": "llama-3.1-8b", "node": "dgx-h100", "layout": "tp=8"}


@pytest.mark.parametrize(("verb", "body", "argv"), [
    ("plan", SMALL, FLAGS), ("compare", SMALL, FLAGS), ("explain", SMALL | {"why_not": ["a100"]},
                                                        [*FLAGS, "--why-not", "a100"]),
    ("estimate", HELD, ["--model", "llama-3.1-8b", "--node", "dgx-h100", "--layout", "tp=8"]),
    ("estimate", {"model": "llama-3.1-8b", "node": "l40s-1x", "concurrency": 8, "input": 500, "output": 100},
     ["--model", "llama-3.1-8b", "--node", "l40s-1x", "--concurrency", "8", "--input", "500", "--output", "100"]),
    ("plan", SMALL | {"budget": "0.01 USD"}, [*FLAGS, "--budget", "0.01 USD"]),
    ("compare", {"on": "8xh100", "years": "3"}, ["--on", "8xh100", "--years", "3"]),
    ("plan", {"on": "8xh100", "terms": "on-demand,buy"}, ["--on", "8xh100", "--terms", "on-demand,buy"]),
    ("plan", {"model": "qwen2.5-7b", "method": "grpo", "on": "dgx-h100", "gpus": 8},
     ["--model", "qwen2.5-7b", "--method", "grpo", "--on", "dgx-h100", "--gpus", "8"]),
    ("plan", {"scenario": "sdxl-lora-on-4090"}, ["sdxl-lora-on-4090"]),
    ("plan", {"scenario": "llava-from-scratch"}, ["llava-from-scratch"]),
])
def test_answers_are_the_bytes_of_the_command_line(web, capsys, verb, body, argv):
    answer = web.post(f"/api/{verb}", json=body)
    code = main([verb, *argv, "--json", "-q"])
    assert answer.status_code == 200
    assert answer.headers["planner-exit-code"] == str(code)
    assert answer.text == capsys.readouterr().out


def test_text_of_a_file_and_a_mapping_ask_the_same(web):
    block = {"workload": {"model": "gpt2", "tokens": "1 G"}, "hardware": {"candidates": ["h100-sxm-1x"]},
             "limits": {"max_gpus": 1}}
    mapping = web.post("/api/plan", json={"scenario": block, "stack": "fsdp2"})
    text = web.post("/api/plan", json={"yaml": json.dumps(block), "stack": "fsdp2"})
    assert mapping.status_code == 200
    assert mapping.text == text.text


@pytest.mark.parametrize(("verb", "body", "said"), [
    ("plan", {"model": "nope", "tokens": "1 T"}, {"field": "model", "key": "workload.model"}),
    ("plan", {"model": "gpt2", "tokens": "1 Q"}, {"field": "tokens", "key": "workload.tokens"}),
    ("plan", {"model": "gpt2", "tokens": "1 G", "deadline": "soon"}, {"field": "deadline", "key": "limits.deadline"}),
    ("estimate", {"model": "gpt2", "node": "dgx-h100", "tpot": "3 apples", "rate": 1, "input": 1, "output": 1},
     {"field": "tpot", "key": "workload.tpot"}),
    ("estimate", {"model": "gpt2", "node": "nowhere"}, {"field": "node"}),
    ("estimate", {"model": "gpt2"}, {"field": "node"}),
    ("plan", {"model": "qwen2.5-0.5b", "method": "grpo", "steps": 9, "samples_per_prompt": 1},
     {"field": "samples_per_prompt", "key": "workload.samples_per_prompt"}),
    ("plan", {"model": "gpt2", "method": "dpo", "tokens": "1 G", "samples": "1k"}, {"field": "samples"}),
    ("plan", {"yaml": "workload: {model: gpt2, tokens: 1 G}\nlimits:\n  dedline: 3 d\n"},
     {"key": "limits.dedline", "file": "question.yaml", "line": 3}),
    ("plan", {"yaml": "workload: {model: gpt2\n"}, {"file": "question.yaml"}),
    ("plan", {"modle": "gpt2"}, {"field": "modle"}),
    ("plan", {"model": "gpt2", "nodes": "2"}, {"field": "nodes"}),
    ("plan", ["gpt2"], {}), ("plan", {"scenario": 3}, {}),
])
def test_errors_name_field_key_and_line_in_the_words_of_the_command(web, verb, body, said):
    answer = web.post(f"/api/{verb}", json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["exit_code"]) == (400, 2)
    assert error["message"]
    assert {name: error[name] for name in said} == said


@pytest.mark.parametrize(("verb", "asked", "same"), [
    ("estimate", {"model": "gpt2", "method": "lora", "node": "l4-1x", "nodes": "2"}, {"nodes": 2}),
    ("plan", {"model": "gpt2", "on": "l4-1x", "requests": "10k", "input": "200", "output": "50"},
     {"requests": None, "documents": 10_000}),
    ("plan", {"model": "gpt2", "method": "lora", "on": "l4-1x", "dataset": "1k"}, {"dataset": None, "samples": 1000})])
def test_a_count_is_text_or_a_number_and_stands_where_people_put_it(web, verb, asked, same):
    told = [web.post(f"/api/{verb}", json=body) for body in (asked, asked | same)]
    assert [one.status_code for one in told] == [200, 200], told[0].text[:300]
    assert told[0].text == told[1].text


def test_every_field_that_is_wrong_is_told_at_once_and_none_that_is_wrong_only_without_another(web):
    wrong = {"model": "lama-3.1-8b", "tokens": "many", "deadline": "soon", "on": "h1000", "precision": "fp99"}
    for verb, body, fields in (("plan", wrong, {*wrong}), ("compare", wrong | {"model": "gpt2"}, {*wrong} - {"model"}),
                               ("plan", {"model": "gpt2", "samples": "bad", "epochs": "3"}, {"samples"}),
                               ("plan", {"model": "gpt2", "rate": 1, "users": 3}, {"users"}),
                               ("estimate", {"model": "gpt2", "node": "dgx-x", "seq_len": "2 q"}, {"node", "seq_len"})):
        error = web.post(f"/api/{verb}", json=body).json()["error"]
        told = [error, *error.get("also", ())]
        assert len(told) == len(fields)
        assert {one["field"] for one in told} == fields
        alone = [web.post(f"/api/{verb}", json={**body, **dict.fromkeys(fields - {one["field"], "model"})}).json()[
            "error"]["message"] for one in told if "model" not in fields]
        assert alone == [one["message"] for one in told if "model" not in fields]


@pytest.mark.parametrize("body", [
    {"model": "gpt2", "dataset": "/etc/passwd"}, {"model": "gpt2", "tokenizer": "/etc/passwd", "tokens": "1 G"},
    {"model": "llama-3.1-8b", "requests": "/etc/passwd"}, {"model": "llama-3.1-8b", "trace": "azure.csv"},
    {"scenario": "/etc/passwd"}, {"scenario": "scenarios/llama-3.1-70b-pretrain.yaml"},
    {"scenario": {"workload": {"model": "gpt2", "dataset": "x.jsonl"}}},
    {"scenario": {"jobs": [{"name": "a", "workload": {"kind": "serving", "trace": "/dev/zero"}}]}},
    {"yaml": "workload: {model: gpt2, dataset: /etc/passwd}"}, {"yaml": "a: &a [1]\nb: *a"},
    {"yaml": "!!python/object/apply:os.system ['true']"}, {"yaml": "a: " + "[" * 100},
    {"model": "gpt2", "tokens": "1 G", "catalogs": "/tmp"}, {"model": "gpt2", "tokens": "1 G", "workers": 64},
    {"model": "gpt2", "tokens": "1 G", "replay": "/etc/passwd"}, {"model": "gpt2", "tokens": "1 G", "from_": "/x"},
])
def test_no_file_is_opened_for_a_stranger(web, body):
    answer = web.post("/api/plan", json=body)
    assert answer.status_code == 400
    assert "root:" not in answer.text


def test_a_request_has_a_size_a_kind_and_a_place_it_comes_from(web):
    assert web.post("/api/plan", content=b"x" * (2 << 20), headers={"content-type": "application/json"}
                    ).status_code == 413
    assert web.post("/api/plan", content=iter([b"x" * (1 << 20)] * 2), headers={"content-type": "application/json"}
                    ).status_code == 413
    assert web.post("/api/plan", data={"model": "gpt2"}).status_code == 400
    assert web.post("/api/plan", content=b"{" * 100_000, headers={"content-type": "application/json"}
                    ).status_code == 400
    assert web.post("/api/plan", json=SMALL, headers={"origin": "http://evil.example"}).status_code == 403
    assert web.get("/api/openapi.json", headers={"host": "evil.example"}).status_code == 403
    assert web.get("/api/jobs/none").status_code == 404
    policy = web.get("/api/openapi.json").headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_who_begins_a_request_and_does_not_end_it_is_cut_off(web, monkeypatch):
    """Three hundred of them held their connections for as long as they wanted."""
    monkeypatch.setattr("planner.web.connection.MOST_HEAD_SECONDS", 0.2)
    monkeypatch.setattr("planner.web.guard.MOST_BODY_SECONDS", 0.2)
    head = (b"POST /api/plan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 9\r\n")
    for sent, said in ((b"", b""), (head, b""), (head + b"\r\n{", b"HTTP/1.1 408")):
        with socket.create_connection((web.base_url.host, web.base_url.port), PATIENCE) as held:
            held.sendall(sent)
            assert held.recv(1000)[:12] == said


def test_a_job_tells_how_it_stands_and_keeps_its_answer(web):
    begun = web.post("/api/jobs", json={"verb": "plan", "question": SMALL | {"tokens": "2 G"}})
    assert begun.status_code == 202
    job = begun.json()
    with web.stream("GET", job["events"]) as lines:
        told = [line for line in lines.iter_lines() if line]
    assert told[-2] == "event: ended"
    assert json.loads(told[-1].removeprefix("data: "))["state"] == "done"
    assert json.loads(web.get(job["answer"]).text)["status"] == "optimal"
    again = web.post("/api/jobs", json={"verb": "plan", "question": SMALL | {"tokens": "2 G"}}).json()
    assert again["state"] == "done", "what was answered is not searched again"
    assert web.get(again["answer"]).text == web.get(job["answer"]).text


def test_a_search_tells_how_far_it_is_and_is_canceled_with_the_best_that_it_has(web):
    question = {"model": "deepseek-v3", "tokens": "14 T", "time_limit": "120 s"}
    job = web.post("/api/jobs", json={"verb": "plan", "question": question}).json()
    until = time.monotonic() + 60
    while "progress" not in (stands := web.get(f"/api/jobs/{job['id']}").json()) and time.monotonic() < until:
        time.sleep(0.05)
    assert stands["progress"]["objective"] == "cost_usd"
    assert web.delete(f"/api/jobs/{job['id']}").status_code == 202
    ended = web.get(job["answer"])
    assert ended.status_code in (200, 409)
    assert ended.status_code == 409 or ended.headers["planner-exit-code"] == "130"
    assert web.post("/api/estimate", json=HELD).status_code == 200


def test_the_openapi_document_has_every_verb_and_value(web):
    document = web.get("/api/openapi.json").json()
    text = json.dumps(document)
    assert "$defs" not in text
    names = set(re.findall(r"#/components/schemas/([^\"]+)", text))
    assert names <= document["components"]["schemas"].keys()
    for verb, options in OPTIONS.items():
        asked = document["paths"][f"/api/{verb}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert {*NAMES, *options} <= asked["properties"].keys()


@pytest.mark.parametrize(("method", "path", "asked"), [
    ("POST", "/api/plan", SMALL), ("POST", "/api/plan", {"model": "gpt9"}), ("POST", "/api/plan", {"on": "8xh100"}),
    ("POST", "/api/compare", SMALL), ("POST", "/api/explain", SMALL), ("POST", "/api/estimate", HELD),
    ("POST", "/api/estimate", {"model": "llama-3.1-8b", "node": "l40s-1x", "concurrency": 8}),
    ("POST", "/api/estimate", {"model": "qwen2.5-7b", "method": "grpo", "node": "dgx-h100"}),
    ("POST", "/api/estimate", {"model": "sdxl", "method": "lora", "node": "rtx-4090-1x"}),
    ("POST", "/api/jobs", {"verb": "plan", "question": SMALL}), ("POST", "/api/jobs", {}),
    ("GET", "/api/jobs/{id}", None), ("GET", "/api/jobs/{id}/answer", None), ("DELETE", "/api/jobs/{id}", None),
    ("GET", "/api/jobs/none", None)])
def test_what_the_server_sends_is_what_its_openapi_document_says(web, method, path, asked):
    document = web.get("/api/openapi.json").json()
    job = web.post("/api/jobs", json={"verb": "plan", "question": SMALL}).json()["id"]
    sent = web.request(method, path.replace("{id}", job), json=asked)
    said = document["paths"][path.replace("none", "{id}")][method.lower()]["responses"][str(sent.status_code)]
    schema = said["content"]["application/json"]["schema"] | {"components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(sent.json())
    assert ("planner-exit-code" in said.get("headers", {})) == ("planner-exit-code" in sent.headers)


@pytest.fixture
def other_host(tmp_path):
    """Yield the port and the token that `planner web --host 0.0.0.0` prints."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    argv = [sys.executable, "-u", "-m", "planner", "web", "--host", "0.0.0.0", "--port", "0"]
    with subprocess.Popen(argv, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as server:
        try:
            yield re.search(r"http://0\.0\.0\.0:(\d+)/\?token=(\S+)", server.stdout.readline()).groups()
        finally:
            server.terminate()


def test_another_host_asks_with_the_token_that_was_printed(other_host):
    port, token = other_host
    at = f"http://127.0.0.1:{port}/api/openapi.json"
    assert [httpx.get(at, headers=headers, timeout=PATIENCE).status_code for headers in (
        {}, {"authorization": "Bearer no"}, {"cookie": "planner_token=no"}, {"authorization": f"Bearer {token}"},
        {"cookie": f"planner_token={token}"})] == [401, 401, 401, 200, 200]
    moved = httpx.get(f"{at}?token={token}", timeout=PATIENCE)
    assert moved.status_code == 303
    assert token not in moved.headers["location"]
    assert "httponly" in moved.headers["set-cookie"].lower()


def test_a_port_that_is_taken_is_an_error_of_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["web", "--port", str(taken.getsockname()[1])]) == 2
    assert re.fullmatch(r"Error: cannot listen on 127\.0\.0\.1 port \d+: .*; choose another --port or --host\n",
                        capsys.readouterr().err)


def test_a_long_question_is_an_address_too_and_a_file_of_no_such_kind_is_refused_before_it_is_made(web):
    written = "workload: {model: gpt2, tokens: 1 G}\nhardware: {candidates: [h100-sxm-1x]}\n# " + "of mine " * 60_000
    address = f"/words/plan?{urlencode({'yaml': written})}"
    with urlopen(f"{web.base_url}{address}", timeout=PATIENCE) as response:  # httpx makes none that is so long
        assert json.load(response)["yaml"] == written
    told = web.get("/download/estimate.zip", params={"model": "gpt2"})
    assert (told.status_code, told.json()["error"]["message"]) == (
        400, "zip: an answer of estimate is not written as such a file")
