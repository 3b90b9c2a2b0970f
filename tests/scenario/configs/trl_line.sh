#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gpus-per-node=8
export MODEL=Qwen/Qwen2.5-14B
MICRO=1
GLOBAL=128
NGPU=$(( SLURM_NNODES * 8 ))
ACC=$(( GLOBAL / (MICRO * NGPU) ))
srun accelerate launch --config_file acc_zero3.yaml --num_machines $SLURM_NNODES --num_processes $NGPU \
  examples/scripts/sft.py --model_name_or_path $MODEL --dataset_name x \
  --per_device_train_batch_size $MICRO --gradient_accumulation_steps $ACC --max_length 4096 --bf16 \
  --num_train_epochs 2 --gradient_checkpointing --packing
