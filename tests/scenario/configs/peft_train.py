import argparse
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainingArguments, Trainer
from peft import LoraConfig, get_peft_model
p = argparse.ArgumentParser()
p.add_argument("--model_id", type=str, default="mistralai/Mistral-7B-v0.3")
p.add_argument("--lr", type=float, default=1e-4)
p.add_argument("--bs", type=int, default=4)
p.add_argument("--max_length", default=2048)
args = p.parse_args()
tok = AutoTokenizer.from_pretrained(args.model_id)
model = AutoModelForCausalLM.from_pretrained(args.model_id, torch_dtype=torch.bfloat16)
peft = LoraConfig(r=32, lora_alpha=64, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
model = get_peft_model(model, peft)
BATCH = 64
targs = TrainingArguments(output_dir="out", per_device_train_batch_size=args.bs,
    gradient_accumulation_steps=BATCH // args.bs, num_train_epochs=3, learning_rate=args.lr, bf16=True,
    gradient_checkpointing=True, optim="paged_adamw_8bit", deepspeed="ds_zero2.json")
Trainer(model=model, args=targs, train_dataset=None).train()
