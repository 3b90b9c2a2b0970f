import torch
from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer
MODEL = "Qwen/Qwen2.5-7B-Instruct"
G = 8
cfg = GRPOConfig(output_dir="o", per_device_train_batch_size=G, gradient_accumulation_steps=4, num_generations=G,
                 max_prompt_length=512, max_completion_length=1024, max_steps=500, bf16=True, use_vllm=True, beta=0.0)
trainer = GRPOTrainer(model=MODEL, reward_funcs=[], args=cfg, train_dataset=None)
trainer.train()
