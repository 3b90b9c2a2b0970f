accelerate launch --num_processes 4 run_clm.py --model_name_or_path mistralai/Mistral-7B-v0.1 \
 --per_device_train_batch_size 2 --gradient_accumulation_steps 16 --gradient_checkpointing True --bf16 True \
 --num_train_epochs 2 --block_size 2048 --optim adamw_torch --fsdp "full_shard auto_wrap"
