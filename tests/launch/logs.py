"""Logs of runs as each stack writes them: seconds of a step, tokens/s of a GPU, GiB held, and sequences of a step."""

import json


def megatron(step, tokens, held, sequences):
    return "".join(
        f" [2026-11-23 03:00:00] iteration {n:8}/     100 | consumed samples: {n * sequences:12} | elapsed time per "
        f"iteration (ms): {1e3 * step * (3 if n == 1 else 1):.1f} | throughput per GPU (TFLOP/s/GPU): 401.2 | lm loss: "
        f"1.0E+01 |\n" for n in range(1, 21)) + (
        f"[Rank 0] (after 20 iterations) memory (MB) | allocated: 9 | max allocated: 10 | reserved: 11 | max reserved: "
        f"{held * 1024:.1f}[Rank 1] (after 20 iterations) memory (MB) | allocated: 9\n")


def torchtitan(step, tokens, held, sequences):
    return "".join(f"[titan] 2026-11-23 - root - INFO - \x1b[31mstep: {n:2}  \x1b[32mloss: 12.1  \x1b[33mmemory: "
                   f"{held:5.2f}GiB(54.60%)  \x1b[34mtps: {round(tokens):,}  \x1b[36mtflops: 400.1  mfu: 41%\x1b[39m\n"
                   for n in range(1, 21))


def deepspeed(step, tokens, held, sequences):
    return "".join(f"[2026-11-23] [INFO] [timer.py:264:stop] epoch=0/micro_step={n}/global_step={n}, "
                   f"RunningAvgSamplesPerSec=1.0, CurrSamplesPerSec={sequences / step:.6f}, MemAllocated=9GB, "
                   f"MaxMemAllocated={held:.2f}GB\n" for n in range(1, 21))


def trainer(step, tokens, held, sequences):
    return json.dumps({"global_step": 20, "log_history": [
        {"loss": 2.0, "step": 1}, {"train_runtime": 20 * step, "train_steps_per_second": 1 / step, "step": 20}]})


def trainer_printed(step, tokens, held, sequences):
    return ("{'loss': 2.0, 'epoch': 0.1}\n{'train_runtime': 1.0, 'train_steps_per_second': "
            f"'{1 / step:.6g}', 'epoch': 1.0}}\n")


def trainer_counting(step, tokens, held, sequences):
    """As Transformers 5 prints where tokens are counted: seconds since the start, of which the first step has 40."""
    lines = [f"{{'loss': '12.{n}', 'learning_rate': '1e-05', 'num_input_tokens_seen': {n * 4096}, 'train_runtime': "
             f"'{40 + n * step:.8g}', 'train_tokens_per_second': '1206'}}\r {n}/20 [00:03<00:10,  1.21it/s]\n"
             for n in range(2, 21, 2)]
    return "".join(lines) + (f"{{'train_runtime': '{40 + 20 * step:.8g}', 'train_steps_per_second': "
                             f"'{20 / (40 + 20 * step):.6g}', 'train_loss': '12.22', 'epoch': '0.0625'}}\n")


def trainer_cut(step, tokens, held, sequences):
    """Killed, with an entry every fifth step, beside the bar as tqdm draws it."""
    return "".join(f" {n * 5}%|▌  | {n}/300 [00:40<12:51, 40.6s/it]\r {n}%|▌  | {n}/300 [00:40<12:51]"
                   f"{{'loss': '1.{n}', 'num_input_tokens_seen': '{n * 900}', 'train_runtime': '{9 + n * step:.8g}'}}\n"
                   f" {n}%|▌  | {n}/300 [00:40<12:51, 40.6s/it]" for n in range(5, 31, 5))


def trainer_piped(step, tokens, held, sequences):
    """The same without the bar: packed samples tell the steps by their tokens."""
    return "".join(f"{{'loss': 12.1, 'num_input_tokens_seen': {n * sequences * 8192}, 'train_runtime': "
                   f"{9 + n * step:.8g}, 'epoch': 0.1}}\n" for n in range(5, 31, 5))


def trainer_state(step, tokens, held, sequences):
    return json.dumps({"global_step": 20, "log_history": [
        *({"loss": 2.0, "step": n, "train_runtime": 40 + n * step} for n in range(5, 21, 5)),
        {"train_runtime": 40 + 20 * step, "train_steps_per_second": 20 / (40 + 20 * step), "step": 20}]})


def swift_lines(step, tokens, held, sequences):
    """Cut off before its end; speeds are of the whole run, whose first step has 40 s more."""
    return "".join(json.dumps({"loss": 2.0, "learning_rate": 1e-5, "epoch": 0.1, "global_step/max_steps": f"{n}/100",
                               "elapsed_time": "1m 2s", "remaining_time": "4m 8s", "memory(GiB)": held,
                               "train_speed(s/it)": round((40 + n * step) / n, 6)}) + "\n" for n in range(1, 21))


def factory_lines(step, tokens, held, sequences):
    return "".join(json.dumps({"current_steps": n, "total_steps": 100, "loss": 2.0, "lr": 1e-5, "epoch": 0.1,
                               "percentage": n, "elapsed_time": "0:01:02", "remaining_time": "0:09:00", "throughput":
                               round(n * 1e6 / (40 + n * step), 2), "total_tokens": n * 10**6}) + "\n"
                   for n in range(5, 101, 5))


def titan_validated(step, tokens, held, sequences):
    """With validation between steps, at twice the speed."""
    lines = torchtitan(step, tokens, held, sequences).splitlines(keepends=True)
    checked = lines[0].replace("step:", "validate step:").replace(f"{round(tokens):,}", f"{round(2 * tokens):,}")
    return "".join(line + checked for line in lines)


def factory_clock(step, tokens, held, sequences):
    """As LLaMA-Factory writes it where tokens are not counted, from two processes, with evaluations between."""
    def line(n):
        at = round(40 + n * step) + 900 * (n // 50)
        days, rest = divmod(at, 86_400)
        shown = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
        return json.dumps({"current_steps": n, "total_steps": 100, "loss": 2.0, "lr": 1e-5, "percentage": n,
                           "elapsed_time": f"{days} day, {shown}" if days else shown}) + "\n"
    return "".join(2 * line(n) for n in range(1, 101))


def swift_inverse(step, tokens, held, sequences):
    return "".join(json.dumps({"loss": 2.0, "global_step/max_steps": f"{n}/100", "elapsed_time": "1m 2s",
                               "memory(GiB)": held, "train_speed(iter/s)": n / (40 + n * step)}) + "\n"
                   for n in range(1, 21))


def swift_printed(step, tokens, held, sequences):
    """As it prints, with bars that end no line, and a summary of the whole."""
    bars = [f"Train:   3%|▎         | {n}/30 [00:09<04:49,  9.97s/it]" for n in range(31)]
    return "".join(f"{bars[n - 1]}{bars[n]}     {{'loss': '2.383', 'global_step/max_steps': '{n}/30', 'elapsed_time': "
                   f"'10s', 'memory(GiB)': '{held}', 'train_speed(s/it)': '{(40 + n * step) / n:.6g}'}}\n"
                   for n in range(1, 31)) + "{'train_runtime': '95.76', 'train_steps_per_second': '0.313'}\n"


def trainer_bar(step, tokens, held, sequences):
    """Killed before its summary: the progress bar alone has a clock."""
    def bar(n):
        at = round(40 + n * step)
        return f"\r  3%|▎  | {n}/300 [{at // 3600}:{at // 60 % 60:02}:{at % 60:02}<04:49,  9.97s/it]"
    return "".join(f"{bar(n)}{{'loss': 2.3, 'epoch': 0.1}}\n{bar(n)}" for n in range(5, 150, 5))


def trainer_slow(step, tokens, held, sequences):
    """So slow that the rate of steps has one digit: what it took is told beside it."""
    return json.dumps({"log_history": [{"loss": 2.0, "step": 1}, {
        "train_runtime": 20 * step, "train_steps_per_second": round(1 / step, 3), "step": 20}]})


def trainer_results(step, tokens, held, sequences):
    return json.dumps({"epoch": 1.0, "train_loss": 2.0, "train_runtime": 20 * step, "train_steps_per_second": round(
        1 / step, 3), "train_samples_per_second": round(sequences / step, 3)})


def primus(step, tokens, held, sequences):
    """The mean of late iterations beside each, and ranks that share a line."""
    ranks = "".join(f"[Rank {n}] (after 1 iterations) memory (MB) | allocated: 9.5 | max allocated: 10 | reserved: 11 "
                    f"| max reserved: {peak * 1024:.1f}" for n, peak in enumerate((held - 1, held, held - 2)))
    return f"{ranks}\n" + "".join(
        f"[rank-7/8] : iteration {n:8}/     100 | elapsed time per iteration (ms): {1e3 * step:.1f}/{1e6:.1f} | lm "
        f"loss: 1.0E+01 |\n" for n in range(1, 21))


def titan_words(step, tokens, held, sequences):
    return torchtitan(step, tokens, held, sequences).replace("tps:", "wps:")


LOGS = {
    "clock.jsonl": factory_clock, "inverse.jsonl": swift_inverse, "swift.log": swift_printed, "bar.log": trainer_bar,
    "slow.json": trainer_slow, "all_results.json": trainer_results, "primus.log": primus, "words.log": titan_words,
    "logging.jsonl": swift_lines, "trainer_log.jsonl": factory_lines, "checked.log": titan_validated,
    "cut.log": trainer_cut, "piped.log": trainer_piped, "printed.log": trainer_printed,
    "counting.log": trainer_counting, "state.json": trainer_state, "train.log": megatron, "titan.log": torchtitan,
    "ds.log": deepspeed, "trainer_state.json": trainer}
CLOCKS = (factory_clock, trainer_bar)
"""Which show whole seconds."""
STACKS = {**dict.fromkeys(LOGS, "deepspeed"), **dict.fromkeys(("train.log", "primus.log"), "megatron-core"),
          **dict.fromkeys(("checked.log", "words.log", "titan.log"), "fsdp2")}
