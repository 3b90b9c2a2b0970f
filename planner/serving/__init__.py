"""A serving question answered: replicas that hold the level, the fleet of them, and their replay."""
