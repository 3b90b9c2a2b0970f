docker run --gpus all ghcr.io/ggml-org/llama.cpp:server-cuda x
llama-server -hf unsloth/Qwen3-30B-A3B-GGUF:Q4_K_M -ngl 99 -c 32768 -np 4 --port 8080
