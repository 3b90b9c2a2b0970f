"""Seeded random problems, small enough for plain enumeration and tight enough that many have no answer."""

from random import Random

from planner.solver.column import Column
from planner.solver.fleet.problem import FleetLimits, FleetOffer, RunProblem
from planner.solver.staging.problem import SharedLimit, StagingProblem

MIXES = (((0,),), ((0, 2),), ((0, 2), (1,)), ((0, 1), (1, 2)), ((0, 1, 2),), ((2,), (0,), (1,)))


def random_staging(random: Random, *, sharing: bool = False) -> StagingProblem:
    """Return up to four stages and seven layers, half of them with answers; with shared limits if asked."""
    stages = random.choice([1, 2, 2, 3, 3, 4])
    layers = random.randint(1, 5 if stages == 4 else 7)

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(random.randint(low, high) for _ in range(stages))

    low = each(0, 2) if random.random() < 0.3 else each(0, 1)
    keep = [random.randint(0, 8) for _ in range(3)]
    slower = [random.randint(0, 9) for _ in range(3)]
    if random.random() < 0.8:
        keep, slower = sorted(keep, reverse=True), sorted(slower)
    shared = tuple(
        SharedLimit(tuple(sorted(random.sample(range(stages), random.randint(1, stages)))), random.randint(1, 4),
                    random.randint(0, 3), random.randint(4, 18))
        for _ in range(random.randint(1, 2) if sharing else 0))
    return StagingProblem(
        layers=layers, chunks=random.choice([1, 1, 2, 3]), micro_batches=random.choice([1, 2, 4, 6, 50]),
        in_flight=each(1, 5), layer_ns=random.randint(0, 10), mode_ns=(slower[0], slower[1], slower[2]),
        keep_units=(keep[0], keep[1], keep[2]), mixes=random.choice(MIXES),
        extra_ns=each(0, 12) if random.random() < 0.7 else (0,) * stages, state_units=random.randint(0, 4),
        fixed_units=each(0, 12), capacity_units=random.randint(10, 80), backward_units=random.randint(0, 5),
        backward_fixed=each(0, 10), min_layers=low, bubble_parts=random.choice([1, 1, 2, 3]),
        max_layers=tuple(max(0, n + random.randint(-1, 5) if random.random() < 0.3 else 7) for n in low),
        shared=shared)


def realistic_staging(random: Random, stages: int, layers: int, chunks: int = 1) -> StagingProblem:
    """Return a pipeline in true nanoseconds and MiB, with room for something between full and no recompute."""
    batches = stages * random.choice([1, 2, 4, 8, 16])
    layer = random.randint(2_000_000, 30_000_000)
    keep = (random.randint(300, 600), random.randint(200, 300), random.randint(16, 40))
    state = random.randint(300, 3000)
    most = 2 * (stages - 1) + (chunks - 1) * stages + 1
    flying = tuple(most - 2 * s if chunks > 1 else min(batches, stages - s) for s in range(stages))
    each = layers / stages
    least, full = (state * each + flying[0] / chunks * each * kept + 3000 for kept in (1.3 * keep[2], keep[0]))
    middle = (0,) * (stages - 2)
    return StagingProblem(
        layers=layers, chunks=chunks, micro_batches=batches, in_flight=flying, layer_ns=layer,
        mode_ns=(0, layer // 20, layer // 3), keep_units=keep, mixes=((0, 2), (1,)),
        extra_ns=(layer // 10, *middle, layer // 2), state_units=state, fixed_units=(2000, *middle, 2500),
        capacity_units=int(least + (full - least) * random.random()), backward_units=10, backward_fixed=(0,) * stages,
        min_layers=(1,) * stages, max_layers=(layers,) * stages, bubble_parts=chunks)


def random_column(random: Random, key: int, candidates: int) -> Column:
    """Return a column with small numbers, so that ties are frequent."""
    micros = random.choice([1, 2, 3, 5]) * 1_800_000_000
    return Column(key=key, candidate=random.randrange(candidates), nodes=random.randint(1, 4),
                  spare_nodes=random.randint(0, 1), gpus=8 * random.randint(1, 4), duration_us=micros,
                  upper_us=micros + random.choice([0, 900_000_000]), energy_wh=random.randint(1, 3),
                  power_w=random.randint(1, 3), checkpoint_bytes=7, complexity=random.randint(0, 2))


def random_run(random: Random) -> RunProblem:
    """Return a job with up to eight columns and up to four offers."""
    candidates = random.randint(1, 3)

    def limit(low: int, high: int, chance: float = 0.35) -> int | None:
        return random.randint(low, high) if random.random() < chance else None

    keys = random.sample(range(100), 40)
    columns = tuple(random_column(random, keys.pop(), candidates) for _ in range(random.randint(1, 8)))
    offers = tuple(
        FleetOffer(keys.pop(), random.randrange(candidates), random.choice([100, 150, 333]) * 10_000, limit(1, 8))
        for _ in range(random.randint(1, 4)))
    limits = FleetLimits(limit(1_800_000_000, 9_000_000_000, 0.3), limit(100, 1000), limit(1, 3, 0.2))
    return RunProblem(columns, offers, random.choice(["cost", "time", "gpus", "energy"]), limits)
