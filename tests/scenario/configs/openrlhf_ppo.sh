ray job submit --address="http://127.0.0.1:8265" -- python3 -m openrlhf.cli.train_ppo_ray \
   --ref_num_nodes 1 --ref_num_gpus_per_node 2 --reward_num_nodes 1 --reward_num_gpus_per_node 2 \
   --critic_num_nodes 1 --critic_num_gpus_per_node 2 --actor_num_nodes 1 --actor_num_gpus_per_node 4 \
   --vllm_num_engines 2 --vllm_tensor_parallel_size 2 --pretrain Qwen/Qwen2.5-7B \
   --reward_pretrain OpenRLHF/Llama-3-8b-rm-700k --rollout_batch_size 256 --prompt_max_len 1024 \
   --generate_max_len 2048 --zero_stage 3 --adam_offload --max_samples 20000
