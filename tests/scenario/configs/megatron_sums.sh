NODES=${SLURM_NNODES:-2}
GBS=$((4 * 8 * (NODES * 8 / 2 / 2)))
ITERS=$(( 300000000000 / ${GBS} / $(expr 2 \* 2048) ))
torchrun --nproc_per_node 8 --nnodes $NODES pretrain_gpt.py --tensor-model-parallel-size 2 \
  --pipeline-model-parallel-size 2 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 11008 \
  --seq-length 4096 --micro-batch-size 4 --global-batch-size $GBS --train-iters $ITERS --lr $LR --swiglu --bf16
