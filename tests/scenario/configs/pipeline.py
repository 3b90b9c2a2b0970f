import torch
from diffusers import FluxPipeline
pipe = FluxPipeline.from_pretrained("black-forest-labs/FLUX.1-dev", torch_dtype=torch.bfloat16)
pipe.enable_model_cpu_offload()
image = pipe("cat", height=1024, width=1024, guidance_scale=3.5, num_inference_steps=28, max_sequence_length=512).images[0]
