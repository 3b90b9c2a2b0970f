"""An engine's page of /metrics under load: what is under way counts in the totals, and not in what was answered."""

import pytest

from planner.errors import InputError
from planner.evidence.engine_metrics import metrics_row
from planner.evidence.outputs import output_rows


def page(engine, **values):
    return "# HELP x y\n" + "".join(f'{engine}:{name}{{model_name="m"}} {value}\n' for name, value in values.items())


ANSWERED = {"request_success_total": 600, "num_requests_running": 64, "num_requests_waiting": 64,
            "prompt_tokens_total": 339_968, "generation_tokens_total": 165_293,
            "time_to_first_token_seconds_sum": 88.2, "time_to_first_token_seconds_count": 664}
"""Of a vLLM 0.25 server at 128 requests at once, 64 of which run: 512 tokens in, 256 out."""


def test_lengths_are_those_of_answered_requests_and_load_is_all_of_them(tmp_path):
    row = metrics_row(page("vllm", **ANSWERED, request_prompt_tokens_sum=307_200, request_prompt_tokens_count=600,
                           request_generation_tokens_sum=153_600, request_generation_tokens_count=600,
                           request_time_per_output_token_seconds_sum=6, request_time_per_output_token_seconds_count=600,
                           inter_token_latency_seconds_sum=9, inter_token_latency_seconds_count=600), tmp_path)
    assert (row["isl"], row["osl"], row["concurrency"], row["tpot_ms"]) == ("512", "256", "128", "10")


def test_older_names_are_read(tmp_path):
    row = metrics_row(page("vllm", **ANSWERED, time_per_output_token_seconds_sum=12,
                           time_per_output_token_seconds_count=600), tmp_path)
    assert (row["isl"], row["tpot_ms"]) == ("566.613", "20")
    row = metrics_row(page("sglang", prompt_tokens_total=8_128_902, generation_tokens_total=7_557_572,
                           num_running_reqs=162, num_queue_reqs=2826, e2e_request_latency_seconds_count=11_008,
                           time_to_first_token_seconds_sum=2_351_897.9, time_to_first_token_seconds_count=11_008,
                           time_per_output_token_seconds_sum=866_964.6,
                           time_per_output_token_seconds_count=7_400_757), tmp_path)
    assert (row["isl"], row["concurrency"], row["tpot_ms"]) == ("738.454", "2988", "117.145")


def test_a_load_test_of_which_all_requests_failed_is_refused(tmp_path):
    said = '{"completed": 0, "failed": 8, "total_input_tokens": 0, "total_output_tokens": 0, "output_throughput": 0.0}'
    with pytest.raises(InputError, match="no request of the load test was answered"):
        output_rows(said, tmp_path / "bench.json", {})
