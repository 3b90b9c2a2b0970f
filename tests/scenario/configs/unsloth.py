from unsloth import FastLanguageModel
from trl import DPOConfig, DPOTrainer

max_seq_length = 4096
settings = dict(per_device_train_batch_size=2, gradient_accumulation_steps=2 * 4)
model, tokenizer = FastLanguageModel.from_pretrained("unsloth/llama-3-8b-bnb-4bit", load_in_4bit=True)
model = FastLanguageModel.get_peft_model(model, r=32, target_modules=["q_proj", "v_proj"],
                                         use_gradient_checkpointing="unsloth")
DPOTrainer(model=model, args=DPOConfig(max_length=max_seq_length, optim="adamw_8bit", **settings)).train()
