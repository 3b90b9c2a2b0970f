import nemo_run as run
from nemo.collections import llm
def configure():
    recipe = llm.llama31_70b.pretrain_recipe(dir="/ckpt", name="x", num_nodes=8, num_gpus_per_node=8)
    recipe.trainer.strategy.tensor_model_parallel_size = 4
    recipe.trainer.strategy.pipeline_model_parallel_size = 4
    recipe.trainer.strategy.virtual_pipeline_model_parallel_size = 5
    recipe.trainer.strategy.sequence_parallel = True
    recipe.data.global_batch_size = 256
    recipe.data.micro_batch_size = 1
    recipe.data.seq_length = 8192
    recipe.trainer.max_steps = 1000
    return recipe
