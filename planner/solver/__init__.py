"""Which to choose: exact integer optimization over columns and stages. Plain ints in, plain ints out."""
