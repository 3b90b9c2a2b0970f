"""Services: replicas that meet latency targets, the fleet of them, and their replay."""
