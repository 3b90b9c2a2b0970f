"""The script of the Transformers Trainer that trains a model from scratch, on made-up tokens or on a data set."""

SCRATCH = '''"""Trains a model from scratch with the Transformers Trainer, by a YAML file and the command line."""

import argparse
import itertools

import torch
import yaml
from transformers import (AutoConfig, AutoModelForCausalLM, AutoTokenizer, HfArgumentParser, Trainer,
                          TrainingArguments)


class MadeUp(torch.utils.data.Dataset):
    """Random tokens; a longer run has them again."""

    def __init__(self, vocabulary, length):
        self.vocabulary, self.length = vocabulary, length

    def __len__(self):
        return 2**20  # whose order is drawn as a whole

    def __getitem__(self, place):
        random = torch.Generator().manual_seed(place)
        tokens = torch.randint(self.vocabulary, (self.length,), generator=random)
        return {"input_ids": tokens, "labels": tokens}


class Packed(torch.utils.data.IterableDataset):
    """Texts of a data set, one behind the other, cut into sequences."""

    def __init__(self, name, model, length):
        from datasets import load_dataset

        self.texts = load_dataset(name, split="train", streaming=True)
        self.tokenizer, self.length = AutoTokenizer.from_pretrained(model), length

    def __iter__(self):
        tokens = itertools.chain.from_iterable(
            self.tokenizer(text["text"]).input_ids + [self.tokenizer.eos_token_id] for text in self.texts)
        while len(taken := list(itertools.islice(tokens, self.length))) == self.length:
            ids = torch.tensor(taken)
            yield {"input_ids": ids, "labels": ids}


def read(words=None):
    """Return what the command line says, and the Trainer's arguments."""
    parser = argparse.ArgumentParser()
    for name in ("config", "config_name", "data"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--block_size", type=int, required=True)
    own, others = parser.parse_known_args(words)
    with open(own.config) as file:
        said = yaml.safe_load(file)
    for name, value in zip(others[::2], others[1::2], strict=True):
        said[name.removeprefix("--")] = yaml.safe_load(value)
    said["learning_rate"] = float(said["learning_rate"])
    (arguments,) = HfArgumentParser(TrainingArguments).parse_dict(said)
    return own, arguments


def main():
    """Train."""
    own, arguments = read()
    config = AutoConfig.from_pretrained(own.config_name)
    # DeepSpeed keeps the 32-bit copy; elsewhere the weights are it
    halved = arguments.bf16 and arguments.deepspeed
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16 if halved else None)
    data = (MadeUp(config.vocab_size, own.block_size) if own.data == "mock"
            else Packed(own.data, own.config_name, own.block_size))
    trainer = Trainer(model=model, args=arguments, train_dataset=data)
    trainer.train()
    trainer.save_state()


if __name__ == "__main__":
    main()
'''
"""`train.py` of a launch folder."""
