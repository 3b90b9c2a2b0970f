from vllm import LLM, SamplingParams
prompts = open("p.txt").read().splitlines()
llm = LLM(model="Qwen/Qwen2.5-72B-Instruct-AWQ", tensor_parallel_size=2, max_model_len=8192, gpu_memory_utilization=0.93)
out = llm.generate(prompts, SamplingParams(temperature=0.7, max_tokens=512))
