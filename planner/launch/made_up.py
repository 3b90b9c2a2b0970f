"""What torchtitan trains on where a first start has no data: tokens drawn as they are asked for, and no tokenizer."""

MADE_UP = '''"""torchtitan {release}: made-up tokens, for DATA=mock."""

from dataclasses import dataclass

import torch
from torchtitan.components.dataloader import ParallelAwareDataloader
from torchtitan.components.tokenizer import BaseTokenizer


class NoTokenizer(BaseTokenizer):
    """Stands where a tokenizer is asked for: there are no texts."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseTokenizer.Config):
        pass

    def __init__(self, config, *, tokenizer_path):
        super().__init__()

    def encode(self, *args, **kwargs):
        raise NotImplementedError("DATA=mock has no texts")

    decode = encode

    def get_vocab_size(self):
        return 0


class Tokens(torch.utils.data.IterableDataset):
    """Sequences of random tokens, others on each data-parallel rank."""

    def __init__(self, vocabulary, length, rank):
        self.vocabulary, self.length, self.rank = vocabulary, length, rank

    def __iter__(self):
        random = torch.Generator().manual_seed(self.rank)
        while True:
            tokens = torch.randint(self.vocabulary, (self.length + 1,), generator=random)
            yield {{"input": tokens[:-1], "positions": torch.arange(self.length)}}, tokens[1:]


class MadeUp(ParallelAwareDataloader):
    """Batches of them."""

    @dataclass(kw_only=True, slots=True)
    class Config(ParallelAwareDataloader.Config):
        vocabulary: int = 1

    def __init__(self, config, *, dp_world_size, dp_rank, seq_len, local_batch_size, tokenizer=None,
                 snapshot_every_n_steps=None):
        more = {{}} if snapshot_every_n_steps is None else {{"snapshot_every_n_steps": snapshot_every_n_steps}}
        super().__init__(Tokens(config.vocabulary, seq_len, dp_rank), dp_rank=dp_rank, dp_world_size=dp_world_size,
                         batch_size=local_batch_size, **more)
'''
"""`made_up.py` of a launch folder."""
