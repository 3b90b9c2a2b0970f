#!/usr/bin/env bash
# as in SemiAnalysisAI/InferenceX, benchmarks/single_node: the script writes what the line names
usage() {
cat << EOF
usage: --tp_size 64 --pp_size 2 --max_batch_size 1 --max_num_tokens 2 --max_seq_len 3
EOF
}
TP=4
CONFIG=dsr1-options.yml
cat > $CONFIG << EOF
enable_attention_dp: true
kv_cache_config:
  dtype: fp8
  free_gpu_memory_fraction: 0.8
EOF
mkdir -p /tmp/logs && mpirun -n 1 --oversubscribe --allow-run-as-root trtllm-serve deepseek-ai/DeepSeek-R1 --port 8000 \
  --tp_size=$TP --ep_size=$TP --extra_llm_api_options=$CONFIG
