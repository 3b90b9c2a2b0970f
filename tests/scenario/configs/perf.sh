#!/usr/bin/env bash
# shortened from AI-Hypercomputer/gpu-recipes, training/a4x/qwen3_235b_a22b/megatron-bridge-slurm
usage() { echo "usage: launcher.sh"; }
mkdir -p logs
worker_command=$(cat <<- EOM
  cd /opt/Megatron-Bridge ;
  numactl --cpunodebind=\$((LOCAL_RANK/2)) nsys profile -t nvtx,cuda \
  python scripts/performance/run_script.py \
    --gpu gb200 --model_family_name qwen --model_recipe_name qwen3_235b_a22b --gpus_per_node 4 --num_gpus 128 \
    --seq_length 4096 --compute_dtype fp8_cs --global_batch_size 2048 --tensor_model_parallel_size 1 \
    --pipeline_model_parallel_size 8 --expert_model_parallel_size 16 --virtual_pipeline_model_parallel_size 3 \
    --micro_batch_size 1 --max_steps 30
EOM
)
torchrun --nproc-per-node 4 --nnodes 32 --no-python bash -c "$worker_command"
