tune run --nnodes 1 --nproc_per_node 4 full_finetune_distributed --config tune_qwen.yaml batch_size=4 epochs=2
