accelerate launch --num_processes 2 --num_cpu_threads_per_process 2 flux_train_network.py \
  --pretrained_model_name_or_path /models/flux1-dev.safetensors --dataset_config kohya_data.toml \
  --max_train_steps 2000 --optimizer_type adafactor --network_module networks.lora_flux --network_dim 16 \
  --network_train_unet_only --cache_latents_to_disk --fp8_base --gradient_checkpointing
