accelerate launch train_dreambooth_lora_flux.py \
  --pretrained_model_name_or_path="black-forest-labs/FLUX.1-dev" --instance_data_dir="dog" \
  --output_dir="trained-flux-lora" --mixed_precision="bf16" --instance_prompt="a photo" --resolution=512 \
  --train_batch_size=1 --guidance_scale=1 --gradient_accumulation_steps=4 --optimizer="prodigy" --learning_rate=1. \
  --rank=16 --max_train_steps=500 --gradient_checkpointing --cache_latents --seed="0"
