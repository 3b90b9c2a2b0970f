"""Each module here reads the config of one stack: a `READER`, found by being here."""
