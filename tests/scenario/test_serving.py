"""What a service may be asked for: every key with good and with bad values, and what is said of the bad."""

import math
import re
from typing import get_args

import pytest

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.physics.serving.formats import format_named
from planner.scenario.demand import Arrivals, Level
from planner.scenario.lengths import Length
from planner.scenario.scenario import ServingScenario
from planner.scenario.serving import Quantization, Serving
from planner.scenario.speculative import Speculative
from planner.yaml_io import Document, validate

GOOD = {"model": "m", "rate": "20 requests/s", "input": 2000, "output": 300}
OPEN = {"model": "m", "input": 2000, "output": 300}
TRACE = {"model": "m", "trace": "t.csv"}
DAY = [0.5] * 24


def read(data):
    return validate(Document(data, "", {}), Serving)


@pytest.mark.parametrize(("key", "given", "expected"), [
    ("rate", "20 requests/s", 20.0), ("rate", "300 requests/min", 5.0), ("rate", "3600 requests/h", 1.0),
    ("rate", "1 request/s", 1.0), ("rate", 20, 20.0), ("rate", "20", 20.0), ("rate", "2.5e1", 25.0),
    ("input", 2000, Length("mean", 2000, 0)), ("input", "2000", Length("mean", 2000, 0)),
    ("input", "2000 tokens", Length("mean", 2000, 0)), ("input", "8k", Length("mean", 8000, 0)),
    ("output", {"mean": 300, "cv": 0.8}, Length("mean", 300, 0.8)),
    ("output", "mean 300 cv 0.8", Length("mean", 300, 0.8)),
    ("output", "{p50: 1k, p95: 6k}", Length("p50", 1000, 6000)),
    ("output", {"mean": "300 tokens", "cv": 0}, Length("mean", 300, 0)),
    ("output", {"p50": 100, "p95": 600}, Length("p50", 100, 600)),
    ("arrivals", "poisson", Arrivals(1.0)), ("arrivals", {"cv": 2}, Arrivals(2.0)),
    ("output", {"mean": 4000, "max": 16384},
     Length("p50", pytest.approx(3536.85, abs=.1), pytest.approx(7998.47, abs=.1))),
    ("arrivals", "2", Arrivals(2.0)), ("arrivals", 0.5, Arrivals(0.5)), ("arrivals", "{cv: 2}", Arrivals(2.0)),

    ("ttft", "2 s", Level(2.0)), ("ttft", "2s at p99", Level(2.0, 99.0)), ("ttft", "2 s at P99.9", Level(2.0, 99.9)),
    ("ttft", "under 1 s", Level(1.0)), ("ttft", "at most 1 s", Level(1.0)), ("ttft", "< 1 s", Level(1.0)),
    ("tpot", "50 ms at p50", Level(0.05, 50.0)), ("tpot", "50ms at mean", Level(0.05, "mean")),
    ("quantization", ["bf16", "fp8"], ("bf16", "fp8")), ("kv_cache", "fp8", "fp8"), ("kv_cache", "auto", "auto"),
    ("engine", "sglang", "sglang"), ("engine_version", "0.10", "0.10"),
    ("prefix_hits", "30%", 0.3), ("prefix_hits", 0.3, 0.3), ("prefix_hits", "0.3", 0.3),
    ("speculative", {"tokens": 3, "acceptance": "70%"}, Speculative(tokens=3, acceptance=0.7)),
    ("speculative", 3, Speculative(tokens=3)), ("speculative", "3", Speculative(tokens=3)),
    ("headroom", "20 %", 0.2), ("spare_replicas", 1, 1), ("day", [*DAY[1:], 1], (*DAY[1:], 1.0)),
    ("day", "22:00-6:00", tuple(float(hour >= 22 or hour < 6) for hour in range(24))),
    ("max_model_len", 8192, 8192), ("max_model_len", "8k", 8000),
    ("disaggregated", "no", "no"), ("disaggregated", "allowed", "allowed"), ("disaggregated", "only", "only"),
    ("name", "chat", "chat"),
])
def test_a_value_is_read_and_written_back(key, given, expected):
    service = read({**GOOD, key: given})
    assert getattr(service, key) == expected
    assert read(service.model_dump(mode="json", exclude_none=True)) == service


@pytest.mark.parametrize(("key", "given", "message"), [
    ("rate", "20 tokens/s", "'20 tokens/s' counts tokens, and a rate is of requests"),
    ("rate", 0, "it must be above zero"), ("rate", "-1", "it must be above zero"), ("rate", "x", "is not a rate"),
    ("rate", True, "true or false is not a value here"), ("rate", [20], "rate needs a unit, got [20]"),
    ("rate", 1e10, "a rate is 1e-06 to 1e+09 requests/s"), ("rate", "1e400", "it must be above zero and finite"),
    ("input", 0, "length must be above zero"), ("input", 2.5, "2.5 is not a length"), ("input", "x", "is not a length"),
    ("input", 10**8, "a length is 1 to 10,000,000 tokens, got 1e+08"), ("input", "2 s", "unknown unit 's'"),
    ("input", [1], "[1] is not a length in tokens: write 2000, {mean: 2000, cv: 0.8}, {mean: 2000, p95: 6000} or "
     "{p50: 1000, p95: 6000}"),
    ("input", {"mean": 100, "p95": 500}, "p95 of 500 tokens is too far above a mean of 100: at most 387"),
    ("input", {"mean": 100, "p95": 50}, "p95 is at least mean"),
    ("input", {"mean": 2000}, "a distribution of lengths has mean and cv, or p50 and p95, got mean"),
    ("input", {"p50": 10, "cv": 1}, "has mean and cv, or p50 and p95, got p50, cv"),
    ("input", {"mean": 2000, "cv": -1}, "cv, the standard deviation over the mean, is 0 to 10, got -1"),
    ("input", {"mean": 2000, "cv": "high"}, "cv must be a finite number, got 'high'"),
    ("input", {"mean": True, "cv": 1}, "mean must be a finite number, got True"),
    ("input", {"mean": 0.5, "cv": 1}, "a length is 1 to 10,000,000 tokens"),
    ("input", {"p50": 1000, "p95": 900}, "p95 is 1 to 1000 times p50, got p50 1000 and p95 900"),
    ("output", {"p50": 1, "p95": 5000}, "p95 is 1 to 1000 times p50"),
    ("arrivals", "bursty", "expected poisson, or the variation of the gaps such as {cv: 2}, got 'bursty'"),
    ("arrivals", {"cv": -1}, "is 0 to 20, got -1"), ("arrivals", {"cv": True}, "expected poisson"),
    ("ttft", "2", "'2' has no unit"), ("ttft", 2, "latency needs a unit, got 2: write for example '2 s'"),
    ("ttft", "0 s", "it must be above zero"), ("ttft", "2 d", "a latency is at most a day"),
    ("ttft", "2 s at p40", "the percentile must be p50 to p99.9, or mean"),
    ("tpot", "50 ms at p99.95", "the percentile must be p50 to p99.9, or mean"),
    ("tpot", "50 ms at 95%", "unknown unit 'ms at 95%'"), ("tpot", "50 token/x", "unknown unit 'token/x'"),
    ("quantization", ["int3"], "quantization.0: expected 'bf16', 'fp8'"), ("quantization", [], "quantization:"),
    ("quantization", "fp8", "quantization: expected a list"), ("quantization", ["fp8", "fp8"], "fp8 is given twice"),
    ("kv_cache", "int4", "kv_cache: expected 'auto', 'bf16', 'fp8', 'int8' or 'nvfp4', got 'int4'"),
    ("engine", 3, "engine: expected text, got 3"), ("engine_version", 0.19, 'put the version in quotes, "0.19"'),
    ("engine_version", "v1", "engine_version:"),
    ("prefix_hits", "100%", "prefix_hits: expected less than 1, got 1.0"), ("prefix_hits", 30, "less than 1, got 30"),
    ("prefix_hits", "some", "'some' is not a share: write for example '30%'"), ("prefix_hits", "-5%", "is not a share"),
    ("speculative", {"tokens": 0, "acceptance": 0.5}, "speculative.tokens: expected greater than 0"),
    ("speculative", {"tokens": 3, "acceptance": "170%"}, "speculative.acceptance: expected less than or equal to 1"),
    ("headroom", 20, "headroom: expected less than or equal to 10, got 20"),
    ("headroom", -0.1, "headroom: expected greater"),
    ("spare_replicas", 1.5, "spare_replicas: expected a whole number"),
    ("spare_replicas", -1, "spare_replicas: expected"),
    ("day", DAY[1:], "day:"), ("day", [0] * 24, "at least one of the 24 factors must be above zero"),
    ("day", [*DAY[1:], -1], "day.23: expected greater than or equal to 0"), ("day", 1, "day: expected a list"),
    ("day", "8h-8h", "two different hours"),
    ("max_model_len", 2299, "max_model_len 2,299 is below the 2,300 tokens of a mean request"),
    ("max_model_len", 0, "token count must be above zero"), ("max_model_len", 10**9, "max_model_len: expected"),
    ("disaggregated", "yes", "disaggregated: expected 'no', 'allowed' or 'only', got 'yes'"),
    ("disaggregated", False, "true or false is not a value here"),
    ("concurrency", 64, "rate and concurrency are given: a service has one of rate, users, concurrency"),
    ("trace", "t.csv", "rate and trace are given"), ("name", "", "name:"),
    ("kind", "training", "kind: expected 'serving'"),
    ("tokns", 1, "unknown key 'tokns'"), ("model", None, "model: expected text, got nothing"),
])
def test_a_wrong_value_is_named_with_what_was_expected(key, given, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read({**GOOD, key: given})


@pytest.mark.parametrize("data", [OPEN, {**OPEN, "concurrency": 64}, TRACE, {**TRACE, "headroom": "10%"}])
def test_a_service_has_a_rate_a_trace_a_concurrency_or_none_of_them(data):
    service = read(data)
    assert (service.rate, service.gap_cv) == (None, 1.0)
    assert read(service.model_dump(mode="json", exclude_none=True)) == service


@pytest.mark.parametrize(("data", "message"), [
    ({**TRACE, "input": 5}, "the trace has the lengths of its requests: leave input out"),
    ({**OPEN, "arrivals": "poisson"}, "arrivals applies to a rate: give rate"),
    ({**TRACE, "day": DAY}, "day applies to a rate"),
    ({**OPEN, "concurrency": 0}, "concurrency: number of users must be above zero"),
    ({**OPEN, "headroom": 0.1}, "headroom applies to a rate, a trace or users"),
    ({**GOOD, "think": "3 s"}, "think applies to users, but rate is given"),
    ({**OPEN, "users": 6, "disaggregated": "only"}, "disaggregated does nothing to users who wait"),
    ({**OPEN, "documents": "1M", "ttft": "1 s"}, "ttft does nothing to a batch of documents"),
    ({**GOOD, "e2e": "9 s", "disaggregated": "only"}, "e2e applies to replicas that answer whole requests"),
    ({**TRACE, "trace": ""}, "trace:"),
])
def test_values_that_do_not_go_together_are_refused(data, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read(data)


def test_every_quantization_has_its_bytes():
    assert all(format_named(Catalog().formats, name) for name in get_args(Quantization))


def test_a_level_without_percentile_is_of_the_95th():
    assert [read({**GOOD, "ttft": text}).ttft.percentile for text in ("2 s", "2 s at p50", "2 s at mean")] == [
        95.0, 50.0, None]
    assert [name for name, _ in read({**GOOD, "tpot": "50 ms"}).levels] == ["tpot"]


@pytest.mark.parametrize("length", [Length("mean", 2000, 0.8), Length("p50", 1000, 6000), Length("mean", 300, 0)])
def test_mean_cv_and_quantiles_are_of_one_lognormal_distribution(length):
    steps = 200_000
    middles = [length.quantile((i + 0.5) / steps) for i in range(steps)]
    mean = sum(middles) / steps
    assert mean == pytest.approx(length.mean, rel=2e-3)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in middles) / steps)
    assert deviation == pytest.approx(length.cv * mean, rel=0.04, abs=1e-6)
    assert length.quantile(0.5) == pytest.approx(length.median)


def test_a_distribution_keeps_what_was_said_exactly():
    by_mean, by_median = Length("mean", 2000, 0.8), Length("p50", 1000, 6000)
    assert (by_mean.mean, by_mean.cv) == (2000, 0.8)
    assert by_median.median == 1000
    assert by_median.quantile(0.95) == pytest.approx(6000, rel=1e-12)
    again = Length("mean", by_median.mean, by_median.cv)
    assert again.quantile(0.95) == pytest.approx(6000, rel=1e-12)


SERVICE = {"kind": "serving", **GOOD}
POOL = {"hardware": {"candidates": ["dgx-h100"]}}


@pytest.mark.parametrize(("data", "message"), [
    ({"workload": SERVICE, "limits": {"deadline": "3 d"}}, "limits.deadline: a service has no deadline"),
    ({"workload": SERVICE, "limits": {"budget": "3 USD"}}, "write '3 USD/h' or '3 USD/month'"),
    ({"workload": SERVICE, "objective": "time"},
     "objective: expected 'cost', 'gpus', 'energy', 'rate' or 'users', got 'time'"),
    ({}, "workloads: at least one service is needed"), ({"workloads": []}, "workloads: at least one service is needed"),
    ({"workload": SERVICE, "workloads": [{**SERVICE, "name": "a"}]}, "workload and workloads are both given"),
    ({"workloads": [SERVICE]}, "workloads.0.name: required, but missing"),
    ({"workloads": [{**SERVICE, "name": "a"}] * 2}, "workloads.1.name: 'a' is given twice"),
    ({"workloads": [{**OPEN, "name": "a"}]}, "workloads.0: services that share a pool need a rate, users or a trace"),
    ({"workloads": [{**SERVICE, "name": "a", "rate": "x"}]}, "workloads.0.rate: 'x' is not a rate"),
])
def test_a_wrong_scenario_is_refused(data, message):
    with pytest.raises(InputError, match=re.escape(message)):
        validate(Document({**POOL, **data}, "", {}), ServingScenario)


def test_one_service_and_several_are_read_alike():
    one = validate(Document({**POOL, "workload": SERVICE, "limits": {"budget": "500 USD/h"}}, "", {}), ServingScenario)
    assert one.services == (read(SERVICE),)
    assert (one.limits.budget, one.services[0].label) == (500.0, "m")
    two = [{**SERVICE, "name": name} for name in ("chat", "code")]
    assert [s.label for s in validate(Document({**POOL, "workloads": two}, "", {}), ServingScenario).services] == [
        "chat", "code"]
