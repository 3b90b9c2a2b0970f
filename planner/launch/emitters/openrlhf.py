"""OpenRLHF: the arguments of its Ray trainer, by their names (openrlhf/cli/train_ppo_ray.py)."""

from __future__ import annotations

from planner.launch.axes import No, Settings, TableOf, only, settings_of, whole_layers
from planner.launch.emitter import ReinforcedEmitter, plain
from planner.launch.emitters.verl import variables
from planner.launch.first_data import FOLDER, SCRIPT, WRITTEN, gsm8k
from planner.launch.program import Part, Program, Variable, array
from planner.launch.ray_cluster import on_ray
from planner.launch.reinforced import Reinforced, all_or_none, shaped

DATA = Variable("DATA", FOLDER, "Hugging Face name or folder of the prompts; as it is, school mathematics is written "
                "there.")
COLUMNS = (Variable("PROMPTS", "input", "Column of the prompts."),
           Variable("LABELS", "label", "Column of what the reward is told of each prompt."))
JUDGE = "reward.py"
REWARD = Variable("REWARD", JUDGE, "Python file with a reward_func, or the URL of a server that judges.")
_SAMPLES = gsm8k("OpenRLHF", JUDGE, ('{"input": question, "label": answer}',), f'"$DATA" == {FOLDER} && ')
_REWARD = '''"""Judges an answer by the number behind its last ####, for a first start: 1 where it is the label."""

import torch


def reward_func(queries, prompts, labels):
    """Return what OpenRLHF takes of each answer; queries: prompts with their answers."""
    said = [(query.rpartition("####")[2].split() or [""])[0].strip("$.").replace(",", "") for query in queries]
    rewards = torch.tensor([float(number == label) for number, label in zip(said, labels)])
    return {"rewards": rewards, "scores": rewards, "extra_logs": {"right": rewards}}
'''
_ESTIMATORS = {"grpo": "group_norm", "ppo": "gae", "rloo": "rloo",
               "reinforce": "reinforce_baseline"}
_ALONE = {"ppo": "gae", "reinforce": "reinforce"}
"""Of one answer to a prompt, which has no others to be compared with."""


def _estimator(work: Reinforced) -> Settings | No:
    method, known = work.placed.method, _ALONE if work.placed.samples_per_prompt == 1 else _ESTIMATORS
    if method in _ESTIMATORS and method not in known:
        return No(f"{method} of one answer to a prompt (it compares several)", {"samples_per_prompt": 2})
    return plain("method", "algo.advantage.estimator", known)(work)


def _placement(work: Reinforced) -> Settings | No:
    placed, there = work.placed, work.placed.rollouts
    train = shaped(placed.trainer_gpus, work.node_gpus)
    if train is None:
        return No(f"{placed.trainer_gpus} GPUs on nodes of {work.node_gpus}", {"placement": "colocated"})
    roles = ["actor", *(["ref"] if work.has("reference") else []), *(["critic"] if work.has("values") else []),
             *(["reward"] if work.asked.reward.by == "model" else [])]
    shape: dict[str, object] = {f"{role}.{key}": value for role in roles for key, value in (
        ("num_nodes", train[0]), ("num_gpus_per_node", train[1]))}
    shape |= {"vllm.num_engines": there.gpus // (there.tp * there.dp), "vllm.tensor_parallel_size": there.tp,
              "vllm.gpu_memory_utilization": work.value("memory_fraction"), "train.colocate_all": True}
    if work.colocated:
        return shape | {"vllm.enable_sleep": True, "vllm.sync_backend": "nccl"}
    if not placed.policy_lag:
        return No("rollouts elsewhere that wait for every update (they run ahead)", {"policy_lag": 1})
    return shape | {"train.async_enable": True, "train.async_queue_size": placed.policy_lag}


@all_or_none
def _away(work: Reinforced, away: bool) -> Settings:
    return ({"ds.enable_sleep": True} if work.placed.swapped else {}) | ({"ds.adam_offload": True} if away else {})


def _batch(work: Reinforced) -> Settings:
    placed = work.placed
    return {"rollout.batch_size": placed.prompts, "rollout.n_samples_per_prompt": placed.samples_per_prompt,
            "train.batch_size": placed.prompts * placed.samples_per_prompt, "data.max_len": work.longest,
            "rollout.max_new_tokens": work.longest - work.prompt, "ds.packing_samples": True,
            "train.dynamic_batch_enable": True, "train.max_tokens_per_gpu": work.packed,
            "rollout.max_tokens_per_gpu": work.packed}


def _adapters(work: Reinforced) -> Settings:
    rank = work.asked.rank
    return {"ds.lora.rank": rank, "ds.lora.alpha": 2 * rank} if rank else {}


TABLE: TableOf[Reinforced] = {
    ("trainer",): only("trainer", "deepspeed", reason="it trains with DeepSpeed", instead={"stack": "openrlhf"}),
    ("tp", "cp", "zero"): lambda w: {"ds.tensor_parallel_size": w.placed.layout.tp,
                                     "ds.ring_attn_size": w.placed.layout.cp, "ds.zero_stage": w.placed.layout.zero},
    ("sp",): only("sp", False, reason="its tensor parallelism keeps sequences whole", instead={"tp": 1}),
    ("pp",): only("pp", 1, reason="it has no pipeline"),
    ("ep",): only("ep", 1, reason="it keeps experts whole"),
    ("expert_tp",): lambda w: {} if w.value("expert_tp") in (None, w.value("tp")) else No(
        f"{w.value('expert_tp')} (experts are split as all else is)", {"tp": 1}),
    ("trainer_gpus", "rollout_gpus", "placement", "policy_lag", "rollout_tp", "memory_fraction"): _placement,
    ("swapped", "offload"): _away,
    ("recompute",): whole_layers(lambda w, full: {"actor.gradient_checkpointing_enable": True} if full else {}),
    ("method",): _estimator,
    ("lora_rank",): _adapters,
    ("quantized",): only("quantized", False, reason="its weights are of 16 bits", instead={"tuning": "lora"}),
    ("prompts", "samples_per_prompt", "max_model_len", "packed"): _batch,
    ("reference",): lambda w: {"algo.kl.use_loss": True, "algo.kl.estimator": "k3", "algo.kl.init_coef": 1e-3}
    if w.has("reference") else {"algo.kl.init_coef": 0},
    ("reward",): lambda w: {},
    ("rollouts_node",): only("rollouts_node", True, reason="all its nodes are of one type",
                             instead={"rollouts_on": None}),
    ("engine",): only("engine", "vllm", reason="it draws with vLLM"),
    ("rollout_pp",): only("rollout_pp", 1, reason="its engines have no pipeline"),
    ("rollout_ep",): only("rollout_ep", 1, reason="its engines keep experts whole"),
    ("rollout_dp",): only("rollout_dp", 1, reason="its engines have one copy of attention"),
    ("concurrency",): lambda w: {},  # the engine takes as many as its cache holds
}


def emit(work: Reinforced) -> Program:
    """Return OpenRLHF's arguments as a script, which starts Ray on every node."""
    settings = settings_of(work, TABLE)
    judged = work.asked.reward.by == "model"
    reward = '--reward.model_name_or_path "$REWARD_MODEL"' if judged else (
        '--reward.remote_url "$REWARD"')
    # workers of Ray run elsewhere
    lines = [WRITTEN, '[[ ! -e "$DATA" ]] || DATA="$(realpath "$DATA")"',
             *([] if judged else ['[[ ! -e "$here/$REWARD" ]] || REWARD="$here/$REWARD"']), *array("PLAN", settings),
             'PLAN+=(--actor.model_name_or_path "$MODEL" --data.prompt_dataset "$DATA"',
             '  --ckpt.output_dir "$CHECKPOINTS" --actor.adam.lr "$LEARNING_RATE"',
             f'  --data.max_samples "$((STEPS * {work.placed.prompts}))" {reward}',
             '  --data.input_key "$PROMPTS" --data.label_key "$LABELS")',
             *(['PLAN+=(--critic.model_name_or_path "$CRITIC")'] if work.has("critic_update") else []), ""]
    head = f"OpenRLHF {work.release.release}: runs on every node"
    nodes, gpus = work.placed.nodes, min(work.placed.gpus, work.node_gpus)
    own = (*variables(work, DATA), *COLUMNS, *(() if judged else (REWARD,)))
    files = on_ray(head, nodes, gpus, {}, lines, ["python3 -m openrlhf.cli.train_ppo_ray", '"${PLAN[@]}"'])
    files |= {**_SAMPLES, **({} if judged else {JUDGE: _REWARD})}
    return Program(target=work.target, on_ray=True, on_each=SCRIPT, variables=own, files=files,
                   parts=(Part("train", "train.sh", nodes, gpus),))


EMITTER = ReinforcedEmitter("openrlhf", TABLE, emit)
