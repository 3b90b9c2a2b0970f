"""GSM8K as a framework of reinforcement learning reads it: what a first start needs where it brings no data."""

from __future__ import annotations

from collections.abc import Sequence

from planner.launch.program import script

FILE, SCRIPT, FOLDER = "data.py", "data.sh", "data/gsm8k"
WRITTEN = f'bash "$here/{SCRIPT}"'
"""Line of a script that runs on every node."""
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


def gsm8k(reader: str, judge: str, columns: Sequence[str], where: str = "") -> dict[str, str]:
    """Return the files that write it, the script for each node the second: where $DATA has none yet.

    columns: lines of the mapping that a sample becomes, of question, answer and index. where: a further condition,
    where $DATA may be something else.
    """
    return {FILE: _TEXT.format(reader=reader, judge=judge, columns="\n            ".join(columns)),
            SCRIPT: script(f"{reader}: writes the data of a first start where a node has none", {}, [
                f'if [[ {where}! -e "$DATA/train.parquet" ]]; then', f'  python3 "$here/{FILE}" "$DATA"', "fi"])}
