#!/bin/bash
#SBATCH -N 2
#SBATCH --gres=gpu:h100:8
#SBATCH --time=24:00:00
head_node=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
srun torchrun --nnodes $SLURM_NNODES --nproc_per_node 8 --rdzv_id 1 \
  -m torchtitan.train --job.config_file tt70.toml --parallelism.tensor_parallel_degree 4 --training.steps 500
