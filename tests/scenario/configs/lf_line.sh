#!/bin/bash
FORCE_TORCHRUN=1 NNODES=2 llamafactory-cli train lf_ds3.yaml
