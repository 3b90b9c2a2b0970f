"""The config of a small model, for parsers that read one before they say yes."""

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 128, "intermediate_size": 128,
          "max_position_embeddings": 1 << 20, "torch_dtype": "bfloat16"}
