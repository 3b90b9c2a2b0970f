"""The jobs of a portfolio as a form: put into its file, changed, taken out; and what is wrong while it is written."""

import json

import pytest

from planner.catalog.load import Catalog
from planner.scenario.load import load_question, shipped
from planner.web.answering import Answered
from planner.web.jobs import changed
from planner.web.reading import wrong_with
from planner.web.refusing import Refusal
from planner.yaml_io import parse

RUN = {"kind": "training", "model": "llama-3.1-8b", "tokens": "60 G"}
ONE = "jobs:\n- {name: base, workload: {model: llama-3.1-8b, tokens: 60 G}, deadline: 60 d}\n"


def made(**said):
    told = changed(said, ())
    assert isinstance(told, Answered), told
    return json.loads(told.text)


@pytest.mark.parametrize("name", shipped("portfolio"))
def test_a_job_that_the_form_has_and_puts_back_is_the_same_job(name):
    catalog, file = Catalog(), made(scenario=name)
    question, _ = load_question(parse(file["yaml"], ""), {}, catalog)
    for at, job in enumerate(file["jobs"]):
        again = made(yaml=file["yaml"], put={"kind": job["kind"], **job["fields"]}, at=at)
        assert load_question(parse(again["yaml"], ""), {}, catalog)[0] == question, job
        assert again["jobs"][at] == job


def test_jobs_are_added_changed_and_removed_and_the_time_that_is_planned_is_said():
    empty = made()
    assert (empty["yaml"], empty["jobs"]) == ("", [])
    first = made(yaml=empty["yaml"], put=RUN | {"name": "base", "deadline": "2027-03-01"})
    both = made(yaml=first["yaml"], put=RUN | {"method": "lora", "after": "base", "count": "3", "may_pause": "true"})
    assert [(job["kind"], job["work"]) for job in both["jobs"]] == [
        ("training", "llama-3.1-8b, tokens 60 G"), ("training", "llama-3.1-8b, lora, tokens 60 G")]
    assert both["jobs"][1]["fields"].items() >= {"name": "llama-3.1-8b", "after": "base", "count": "3",
                                                 "may_pause": "true"}.items()
    later = made(yaml=both["yaml"], horizon={"start": "2027-02-01", "length": "20 weeks"})
    assert later["horizon"] == {"start": "2027-02-01", "length": "20 weeks"}
    moved = made(yaml=later["yaml"], job="base", day="2027-03-08")
    assert moved["jobs"][0]["fields"]["deadline"] == "2027-03-08"
    left = made(yaml=moved["yaml"], remove=1)
    assert [job["fields"]["name"] for job in left["jobs"]] == ["base"]
    assert "jobs" not in parse(made(yaml=left["yaml"], remove=0)["yaml"], "").data


@pytest.mark.parametrize(("put", "field", "message"), [
    ({"kind": "training", "model": "llama-3.1-8b"}, "tokens", "tokens: required, but missing: a job"),
    ({"kind": "serving", "model": "llama-3.1-8b"}, "rate", "rate: required, but missing"),
    (RUN | {"tokens": "many"}, "tokens", "tokens: 'many' is not a token count"),
    (RUN | {"model": "lama-8b"}, "model", "model: unknown model 'lama-8b'; did you mean"),
    (RUN | {"deadline": "2029-01-01"}, "deadline", "deadline 2029-01-01 is outside the horizon"),
    (RUN | {"count": "x"}, "count", "count: expected a whole number, got 'x'"),
    (RUN | {"after": "chat"}, "after", "after: 'chat' is not a job: base"),
    (RUN | {"name": "base"}, "name", "name: 'base' is given twice"),
    ({"kind": "serving", "model": "llama-3.1-8b", "rate": "1", "every": "30 d"}, "every", "every applies to a job")])
def test_what_is_wrong_with_a_job_is_told_at_its_field(put, field, message):
    told = changed({"yaml": ONE, "put": put}, ())
    assert isinstance(told, Refusal)
    assert (told.field, told.message[:len(message)]) == (field, message)


@pytest.mark.parametrize(("said", "message"), [
    ({"yaml": "- 1\n"}, "expected keys and values at the top level"), ({"put": "x"}, "put: expected keys and values"),
    ({"yaml": ONE, "remove": 9}, "remove: expected the place of a job, a whole number below 1, got 9"),
    ({"yaml": ONE, "put": RUN, "at": "first"}, "at: expected the place"), ({"horizon": 3}, "horizon: expected keys"),
    ({"yaml": "a: &a [1]"}, "anchors and aliases are not allowed"), ({"yaml": 5}, "yaml: expected the text")])
def test_a_request_that_makes_no_sense_is_refused(said, message):
    told = changed(said, ())
    assert isinstance(told, Refusal)
    assert message in told.message


def test_what_is_wrong_elsewhere_keeps_no_job_out():
    assert len(made(yaml="jobs: [{name: a, workload: {model: gpt2}}]\n", put=RUN)["jobs"]) == 2


WRITTEN = "# of mine\nworkload:\n  model: gpt2\n  tokens: 1 G\n  flavor: 3\n"


@pytest.mark.parametrize(("verb", "question", "wrong"), [
    ("plan", {"model": "gpt2", "tokens": "1 G", "yaml": "workload: {flavor: 3}\n"},
     [(None, 5, "question.yaml:5: workload: unknown key 'flavor'")]),
    ("plan", {"yaml": "jobs: [\n"}, [(None, 1, "question.yaml:1: YAML syntax")]),
    ("plan", {"model": "llama", "tokens": "many"},
     [("tokens", None, "tokens: 'many' is not a token count"), ("model", None, "model: unknown model 'llama'")]),
    ("plan", {"yaml": "jobs: {a: {model: gpt2, tokens: 1 G}}\n"}, []),
    ("compare", {"on": "8xh100", "years": "3"}, []), ("plan", {"model": "qwen2.5-7b"}, []),
    ("plan", {"from_": "vllm serve Qwen/Qwen2.5-7B-Instruct"}, [])])
def test_what_is_wrong_is_known_before_anything_is_asked_by_the_lines_that_were_written(verb, question, wrong):
    told = wrong_with({"verb": verb, "question": question, "written": WRITTEN if "flavor" in str(question) else
                       question.get("yaml", "")}, ())
    found = [told, *told.also] if isinstance(told, Refusal) else []
    assert [(one.field, one.line) for one in found] == [(field, line) for field, line, _ in wrong]
    assert all(one.message.startswith(said) for one, (*_, said) in zip(found, wrong, strict=True))
