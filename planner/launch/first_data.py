"""GSM8K as a framework of reinforcement learning reads it: what a first start needs where it brings no data."""

from __future__ import annotations

from collections.abc import Sequence

FILE, FOLDER = "data.py", "data/gsm8k"
_TEXT = '''"""Writes GSM8K as {reader} reads data, for a first start; {judge} judges the number behind ####."""

import os
import sys
from pathlib import Path

from datasets import load_dataset

ASK = 'Let us think step by step and output the final answer after "####".'


def row(sample, index):
    """Return a sample in {reader}'s columns."""
    answer = sample["answer"].rpartition("#### ")[2].strip().replace(",", "")
    question = f"{{sample['question']}} {{ASK}}"
    return {columns}


place = Path(sys.argv[1])
place.mkdir(parents=True, exist_ok=True)
for part in ("test", "train"):
    samples = load_dataset("openai/gsm8k", "main", split=part)
    made = samples.map(row, with_indices=True, remove_columns=samples.column_names)
    # nodes that share the folder write it at once
    own = place / f"{{part}}-{{os.uname().nodename}}-{{os.getpid()}}"
    made.to_parquet(own)
    own.replace(place / f"{{part}}.parquet")
'''


def gsm8k(reader: str, judge: str, columns: Sequence[str]) -> str:
    """Return the script; columns: lines of the mapping that a sample becomes, of question, answer and index."""
    return _TEXT.format(reader=reader, judge=judge, columns="\n            ".join(columns))


def written(where: str = "") -> list[str]:
    """Return lines of a script that write it, on each node, to the folder $DATA where that has none yet.

    where: a further condition, where $DATA may be something else.
    """
    return [f'if [[ {where}! -e "$DATA/train.parquet" ]]; then', f'  python3 "$here/{FILE}" "$DATA"', "fi"]
