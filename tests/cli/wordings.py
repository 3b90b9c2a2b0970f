"""A grammar of questions: each says one thing in many ways, by clauses in any order, with words that say nothing.

A question is drawn by a seed as what it means, and as a sentence that says so. Numbers, units and names are written as
people write them; whatever way is drawn, the sentence must mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import NamedTuple

Meaning = dict[str, object]
"""What a question means: a key of `meanings`, with its value in base units."""

MODELS: Mapping[str, Sequence[str]] = {
    "llama-3.1-70b": ("llama 3.1 70b", "Llama-3.1-70B", "meta-llama/Llama-3.1-70B-Instruct", "llama3.1-70b",
                      "Llama 3.1 70B Instruct", "llama3.1 70b", "70B Llama 3.1", "llama3.1:70b", "Llama 3.1 (70B)",
                      "the 70B version of Llama 3.1", "Meta Llama 3.1 70B", "LLaMA 3.1 70b"),
    "llama-3.1-8b": ("llama 3.1 8b", "Llama-3.1-8B", "meta-llama/Llama-3.1-8B", "Meta-Llama-3.1-8B-Instruct",
                     "8B Llama 3.1", "llama-3.1-8b-instruct", "Llama 3.1 8 B", "llama3.1:8b"),
    "qwen2.5-7b": ("qwen2.5 7b", "Qwen2.5-7B", "Qwen/Qwen2.5-7B-Instruct", "qwen 2.5 7b", "Qwen 2.5-7B-Instruct",
                   "QWEN2.5 7B", "qwen2.5-7b-instruct", "Qwen2.5 (7B)", "7B Qwen2.5"),
    "qwen3-32b": ("qwen3 32b", "Qwen3-32B", "Qwen/Qwen3-32B", "qwen 3 32b", "qwen3:32b", "32B Qwen3"),
    "mistral-7b": ("mistral 7b", "Mistral-7B", "mistralai/Mistral-7B-v0.1", "Mistral 7B Instruct", "mistral-7b-v0.1"),
    "mixtral-8x7b": ("mixtral 8x7b", "Mixtral-8x7B", "mistralai/Mixtral-8x7B-Instruct-v0.1", "Mixtral 8x7B Instruct"),
    "gemma-2-9b": ("gemma 2 9b", "google/gemma-2-9b-it", "Gemma-2-9B", "gemma2 9b", "gemma2:9b", "Gemma 2 (9B)")}
SIZES = {"7b": ("a 7B model", "a 7b", "a 7B-parameter model", "a 7 billion parameter model",
                "a model with 7B parameters",
                "a 7B params model", "a model of 7 billion parameters", "a 7B LLM", "7B", "a dense 7B"),
         "13b": ("a 13B model", "a 13b", "a 13B-parameter model", "a 13 billion parameter LLM", "13B", "our 13B model",
                 "a 13B transformer", "a 13b param model")}
PICTURES = {"sdxl": ("SDXL", "sdxl", "stable diffusion xl", "Stable-Diffusion-XL"),
            "flux.1-dev": ("FLUX.1-dev", "flux dev", "Flux.1 dev", "flux-dev", "black-forest-labs/FLUX.1-dev")}
GPUS: Mapping[str, Sequence[str]] = {
    "h100-sxm": ("H100", "h100", "Nvidia H100", "H100 80GB", "H100-80GB", "H100 SXM", "h100 (80GB)", "H100 SXM5"),
    "a100-sxm-80gb": ("A100 80GB", "A100-80GB", "a100 80g", "A100 (80GB)", "80GB A100", "A100-80G", "A100 80 GB",
                      "NVIDIA A100 80GB", "A100 80gb SXM"),
    "a100-sxm-40gb": ("A100 40GB", "A100-40GB", "a100 40g", "A100 (40GB)", "40GB A100", "A100 40 GB"),
    "rtx-4090": ("4090", "RTX 4090", "rtx4090", "RTX-4090", "GeForce RTX 4090", "4090 24GB", "RTX 4090 (24GB)",
                 "24GB 4090", "24 GB RTX 4090"),
    "l40s": ("L40S", "l40s", "NVIDIA L40S", "L40S 48GB", "L40S (48 GB)"),
    "h200-sxm": ("H200", "h200", "NVIDIA H200", "H200 141GB", "H200 SXM"),
    "l4": ("L4", "l4", "nvidia L4", "L4 24GB")}
CALLED = {1: "one", 2: "two", 4: "four", 8: "eight", 16: "sixteen"}
HEADS = {"": ("",), "cost": ("how much does it cost to {}", "what would it cost to {}", "cheapest way to {}",
                             "cost to {}",
                             "What's the price to {}", "cheapest GPUs to {}", "what will it cost us to {}"),
         "duration": ("how long does it take to {}", "how long will it take to {}", "how many days to {}",
                      "How much time do I need to {}", "how many hours would it take to {}"),
         "gpus": ("how many GPUs do I need to {}", "How many gpus to {}", "number of GPUs needed to {}",
                  "what hardware do I need to {}", "which GPUs do I need to {}"),
         "want": ("I want to {}", "we need to {}", "I'd like to {}", "we are planning to {}", "trying to {}",
                  "I am going to {}", "My team wants to {}", "Looking to {}", "We're about to {}")}
FRONT = ("", "", "", "Hi, ", "hello! ", "quick question: ", "Hey folks, ", "Sorry if this was asked before, ",
         "newbie here: ", "Just curious, ", "Good morning, ", "Dear all, ", "Question: ", "so ", "OK so ",
         "I was wondering, ", "for my thesis, ", "Could you tell me ", "Can someone tell me ", "does anyone know ")
BACK = ("", "", "", "?", "?", "??", ".", " please", ", thanks!", " please?", ", any idea?", ". Thank you in advance!",
        ", any advice?", " - what do you recommend?", ", ideally", ", roughly", ". Cheers", ", if that is realistic?")


class Question(NamedTuple):
    """A question as it is said, and what it means."""

    text: str
    means: Meaning


class Drawing:
    """What is drawn of one question: its clauses, and what they mean."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.means: Meaning = {}
        self.clauses: list[str] = []

    def one(self, *ways: str) -> str:
        """Return one of the ways to say something."""
        return self.random.choice(ways)

    def says(self, key: str, value: object, *ways: str) -> str:
        """Note what is meant, and return one of the ways to say it."""
        self.means[key] = value
        return self.one(*ways)

    def adds(self, key: str, value: object, *ways: str) -> None:
        """Note a clause of its own."""
        self.clauses.append(self.says(key, value, *ways))

    def model(self, names: Mapping[str, Sequence[str]]) -> str:
        """Return a model as somebody calls it."""
        name = self.random.choice(list(names))
        return self.says("model", name, *names[name])

    def hardware(self, key: str, *kinds: str, counts: Sequence[int] = (1, 2, 4, 8), lead: str = "on ") -> None:
        """Add a clause of so many GPUs of one of the kinds."""
        gpu, count = self.random.choice(kinds), self.random.choice(counts)
        if gpu in ("rtx-4090", "l40s"):
            count = min(count, 8)
        self.clauses.append(self.one(lead, lead, "using " if lead == "on " else lead) + self.gpus(key, gpu, count))

    def gpus(self, key: str, gpu: str, count: int) -> str:
        """Return so many GPUs as somebody calls them."""
        name = self.one(*GPUS[gpu])
        plain = "(" not in name
        many = f"{name}s" if plain and not name.lower().endswith(("gb", "g", "sxm", "sxm5")) else name
        ways = [f"{count}x{name}", f"{count}x {name}", f"{count} x {name}", f"{count} {many}",
                f"{CALLED[count]} {many}",
                f"{count} {name} GPUs" if plain else f"{count}x {name}", f"{count}\N{MULTIPLICATION SIGN}{name}"]
        if plain:
            ways += [f"{name} x{count}", f"{name} x {count}", f"{count} * {name}"]
        if count == 1:
            ways = [f"a single {name}", f"one {name}", f"1x {name}", f"1 {name}", f"1x{name}",
                    f"a single {name} GPU" if plain else f"1 {name}"]
        if count == 8 and gpu == "h100-sxm":
            ways += ["a DGX H100", "one DGX H100", "one node of 8 H100", "a node with 8 H100s", "one 8xH100 node",
                     "an 8-GPU H100 node", "8 GPUs (H100)", "a server with 8x H100", "1 node with 8 H100 GPUs"]
        if count == 16 and gpu == "h100-sxm":
            ways += ["2 nodes of 8 H100", "two DGX H100", "2 nodes with 8 H100s each", "2x8 H100", "2 x 8xH100",
                     "two 8xH100 nodes", "2 nodes of 8xH100", "16 H100s (2 nodes)", "2 DGX H100 nodes"]
        return self.says(key, (gpu, count), *ways)

    def days(self) -> None:
        """Add a deadline."""
        days, *ways = self.random.choice((
            (30, "30 days", "30d", "thirty days", "30 d"), (14, "2 weeks", "two weeks", "14 days", "2w", "a fortnight"),
            (7, "a week", "one week", "7 days", "1 week", "seven days", "168 hours"), (2, "2 days", "48 hours", "48h")))
        time = self.one(*ways)
        self.adds("deadline", days * 86400.0, f"in {time}", f"within {time}", f"in under {time}",
                  f"in less than {time}",
                  f"in at most {time}", f"in no more than {time}", f"deadline {time}", f"deadline: {time}",
                  f"done in {time}", f"finished within {time}")

    def text_tokens(self) -> str:
        """Return how many tokens there are to train on."""
        value, *ways = self.random.choice((
            (1e12, "1T tokens", "1 trillion tokens", "1e12 tokens", "one trillion tokens", "1,000B tokens",
             "1 T tokens",
             "1000 billion tokens", "1.0T tokens"),
            (300e9, "300B tokens", "300 billion tokens", "300 B tokens", "0.3T tokens", "3e11 tokens", "300bn tokens"),
            (2e9, "2B tokens", "2 billion tokens", "2,000,000,000 tokens", "2bn tokens", "2000M tokens", "two billion "
             "tokens")))
        return self.says("tokens", value, *ways)

    def data(self) -> None:
        """Add what a model is tuned on: samples of a length, for so many epochs, or tokens."""
        if self.random.random() < 0.3:
            self.adds("tokens", 50e6, "on 50M tokens", "on 50 million tokens", "with 50M tokens", "on 5e7 tokens",
                      "on 50,000,000 tokens")
            return
        samples = self.says("samples", 20e3, "20k samples", "20,000 examples", "20000 rows", "20K training examples",
                            "a dataset of 20k samples", "20 thousand samples", "20k instruction pairs",
                            "20k rows of data",
                            "20,000 conversations", "20k training samples")
        each = self.says("mean_length", 600.0, "of 600 tokens", "of 600 tokens each", "with 600 tokens each",
                         "averaging 600 tokens", "of about 600 tokens", "(600 tokens each)", "of ~600 tokens",
                         "of average length 600 tokens",
                         "with an average of 600 tokens")
        self.clauses.append(self.one("on ", "with ", "using ") + f"{samples} {each}".replace(" ,", ","))
        if self.random.random() < 0.7:
            self.adds("epochs", 3.0, "3 epochs", "for 3 epochs", "three epochs", "epochs=3", "for three epochs",
                      "3 passes over the data", "epochs: 3")

    def extras(self) -> None:
        """Add what a training may have beside."""
        if self.random.random() < 0.4:
            self.adds("seq-len", 4096.0, "context 4096", "seq len 4096", "sequence length 4096", "4k context",
                      "max_seq_len 4096", "context length of 4096", "4096 context", "ctx 4k", "4K sequence length",
                      "sequence length of 4,096", "max length 4096", "seq_len=4096", "cutoff_len 4096")
        if self.random.random() < 0.3:
            self.adds("global-batch", 64.0, "batch size 64", "batch size of 64", "global batch 64", "bs 64", "bs=64",
                      "global batch size 64", "batch_size=64", "effective batch size 64", "batch 64", "a batch of 64")

    def load(self) -> None:
        """Add how much a service is asked for, and how long its requests are."""
        kind = self.random.randrange(3)
        if kind == 0:
            self.adds("rate", 5.0, "at 5 requests/s", "at 5 req/s", "at 5 rps", "5 RPS", "5 requests per second",
                      "at 5 queries per second", "5 QPS", "300 requests per minute", "18,000 requests an hour",
                      "5 reqs/sec", "5 requests every second", "5 requests each second")
        elif kind == 1:
            self.adds("users", 200.0, "for 200 users", "for 200 concurrent users", "with 200 simultaneous users",
                      "to 200 people", "for two hundred users", "200 users", "for 200 employees",
                      "for 200 people at once")
        else:
            self.adds("rate", 50000 / 86400, "50k requests a day", "50,000 requests per day", "50k req/day",
                      "50k requests/day", "50000 daily requests", "fifty thousand requests a day", "50K queries daily")
        if self.random.random() < 0.6:
            self.means |= {"input": 1000.0, "output": 200.0}
            self.clauses.append(self.one(
                "1000 input tokens and 200 output tokens", "1000 in / 200 out", "1k in, 200 out",
                "prompts of 1000 tokens and answers of 200 tokens", "1000 token prompts, 200 token answers",
                "input 1000, output 200", "1000 tokens in and 200 tokens out", "ISL 1000 OSL 200",
                "1000 prompt tokens, 200 completion tokens", "1,000 input / 200 output tokens",
                "avg prompt 1000 tokens, avg response 200 tokens", "input length 1000, output length 200",
                "1000 tokens input, 200 tokens output", "prompts average 1000 tokens, responses 200 tokens"))
        if self.random.random() < 0.3:
            self.adds("ttft", 2.0, "TTFT 2s", "ttft under 2 seconds", "first token within 2s", "TTFT < 2 s",
                      "TTFT <= 2s",
                      "time to first token below 2 seconds", "first token in under 2 seconds", "2s TTFT",
                      "TTFT of 2000ms")
        if self.random.random() < 0.3:
            self.adds("tpot", 0.05, "TPOT 50ms", "50 ms per token", "at 20 tokens/s per user", "20 tok/s each",
                      "tpot under 50 ms", "20 tokens per second per user", "at least 20 tok/s per user",
                      "20 t/s per user")

    def format(self) -> None:
        """Add the format of the weights."""
        if self.random.random() < 0.5:
            format_, *ways = self.random.choice((
                ("fp8", "in fp8", "FP8", "fp8 quantized", "quantized to FP8", "with fp8 weights", "in FP8 precision"),
                ("int4", "in int4", "4-bit", "4bit", "in 4 bit", "4-bit quantized", "quantized to 4 bits",
                 "with 4-bit quantization", "AWQ", "as AWQ 4-bit", "at 4 bits")))
            self.adds("quantization", format_, *ways)

    def question(self, head: str, action: str, *, fixed: str = "") -> Question:
        """Return the question: a head with what is done, the clauses in any order, and words around them."""
        self.random.shuffle(self.clauses)
        joint = self.random.choice((" ", ", ", ", ", "; ", " - ")) if len(self.clauses) > 1 else " "
        body = self.one(" ", ", ") + joint.join(self.clauses) if self.clauses else ""
        said = self.one(*HEADS[head]).format(action) if head else action
        if self.random.random() < 0.15 and body and not fixed:
            text = f"{joint.join(self.clauses)}: {said}"
        else:
            text = f"{said}{body}"
        text = f"{self.one(*FRONT)}{text}{self.one(*BACK)}"
        change: Callable[[str], str] = self.random.choice((str, str, str, str.lower, str.upper, str.capitalize))
        return Question(change(text), self.means)
