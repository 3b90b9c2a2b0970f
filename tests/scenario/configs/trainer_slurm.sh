#!/bin/bash
#SBATCH --job-name=tune
#SBATCH --nodes=4
#SBATCH --gpus-per-node=8
srun torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES --rdzv_endpoint $head_node_ip:29500 \
    run_clm.py \
    --model_name_or_path meta-llama/Llama-3.1-70B \
    --block_size 8192 \
    --bf16 True \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 4 \
    --max_steps 3000 \
    --fsdp "full_shard auto_wrap" \
    --gradient_checkpointing True
