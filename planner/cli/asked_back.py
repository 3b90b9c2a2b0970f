"""What is asked back of a question that leaves open what it is about: what is missing, with three that are whole."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from planner.errors import InputError

_EXAMPLES = {
    "serve": ("serve llama 3.1 8b to 200 users under 2 seconds",
              "cheapest GPU for qwen3-32b at 3 requests per second, 2k tokens in, 300 out"),
    "tune": ("fine-tune mistral 7b with lora on 10k samples of 700 tokens on a 4090",
             "full finetune of llama 3.1 8b on 200M tokens in 2 days"),
    "train": ("pretrain a 3B model on 300B tokens in 3 weeks on H100",
              "how long does a 7B on 1T tokens take on 64 H100"),
    "": ("what is the largest model that 2x 4090 can run", "rent or buy 8 H100 for 2 years")}
"""What is done -> questions that are whole."""
_FIRST = ("serve", "tune", "train")


class AskedBackError(InputError):
    """A question that leaves open what it is about."""

    def __init__(self, asks: Collection[str], words: Sequence[str] = ()) -> None:
        """Take what the question is about so far, and the words of it that are not understood."""
        doing = next((each for each in ("tune", "train", "serve") if each in asks), "")
        does = {"tune": "which model is tuned, and on how many samples or tokens?",
                "train": "which model, or of how many parameters, and on how many tokens?",
                "serve": "which model, and for how many users or requests a second?",
                "": "which model, and is it trained, tuned or served, and how much?"}[doing]
        unread = f" ({', '.join(map(repr, words))} is not understood.)" if words else ""
        super().__init__(f"what is it for: {does} Where you know them, also GPUs, a deadline or a budget.{unread} "
                         "For example:")
        own = _EXAMPLES[doing] if doing else ()
        others = [_EXAMPLES[each][0] for each in _FIRST if each != doing]
        self.examples = tuple(f'  planner "{text}"' for text in (*own, *others)[:3])
