"""Reinforcement learning as a job: a trainer, its rollouts, and the rate that couples them."""
