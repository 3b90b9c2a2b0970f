"""Small seeded questions of many jobs on one fleet, and every answer to them tried: no solver, no shared predicates."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, product
from random import Random

from planner.solver.fleet.schedule import (
    Ceiling,
    Endless,
    Load,
    Lot,
    NodeBlock,
    Option,
    Pool,
    Problem,
    Purse,
    Task,
    Turn,
)

HOUR = 3600


def random_problem(random: Random) -> Problem:
    """Return a question of one to three tasks, at most one service and two or three pools over four or five periods."""
    periods, size = random.randint(3, 5), HOUR * random.choice((1, 6, 24))
    span = periods * size
    own = tuple(random.choice((2, 3, 3, 1, 0)) for _ in range(periods))
    pools = [Pool(own, random.randint(0, 3) * 10**6, watts=7, gpus=8),
             Pool(None, random.randint(5, 20) * 10**6, watts=5, gpus=4)]
    if random.random() < 0.6:
        lots = []
        for start in sorted(random.sample(range(periods), random.randint(1, 2))):
            usd = random.randint(1, 20) * 10**6 * (periods - start) * size // HOUR
            prices = (usd,) if random.random() < 0.6 else (0, usd, usd * 3 // 2)
            lots.append(Lot(start, random.choice((periods, start + 2, periods + 3)), prices, 2))
        pools.append(Pool(lots=tuple(lots), watts=6, gpus=8))
    tasks = []
    for at in range(random.randint(1, 3)):
        options = []
        for _ in range(random.randint(1, 3)):
            pool = random.randrange(len(pools))
            nodes, seconds = random.choice((1, 1, 2, 2, 3)), random.randint(1, 5 * size // 2)
            cost = -(-nodes * seconds * pools[pool].micro_usd_per_node_hour // HOUR)
            options.append(Option(pool, nodes, seconds, cost, random.choice((0, size // 3)), random.choice((0, 10**6))))
        worth = random.randint(1, 200) * 10**6 if random.random() < 0.5 else None
        due = random.randint(1, span) if random.random() < 0.4 else None
        tasks.append(Task(tuple(options), random.choice((0, 0, random.randint(0, span // 2))),
                          random.randint(span // 2, span) if random.random() < 0.4 else None, due,
                          random.randint(1, 9000) if due is not None else 0, worth,
                          tuple(other for other in range(at) if random.random() < 0.25), random.random() < 0.6))
    if len(tasks) > 1 and random.random() < 0.2:
        tasks[1] = tasks[0]
    services = []
    if random.random() < 0.5:
        blocks = tuple(NodeBlock(random.randrange(len(pools)), random.randint(1, 2), random.randint(2, 6))
                       for _ in range(random.randint(1, 2)))
        cut = random.randint(1, periods)
        parts = [part for part in (tuple(range(cut)), tuple(range(cut, periods))) if part]
        hours = size // HOUR
        services.append(Endless(blocks, tuple(Load(part, (
            ((random.randint(1, 8), hours),) if hours == 1 or random.random() < 0.5 else
            ((random.randint(1, 8), 1), (random.randint(1, 8), hours - 1)))) for part in parts)))
    ceilings = []
    if random.random() < 0.3:
        ceilings.append(Ceiling(tuple(pool.watts for pool in pools), random.randint(10, 40)))
    if random.random() < 0.3:
        ceilings.append(Ceiling((0, 1, 1)[:len(pools)], random.randint(1, 4), held=True))
    budget = random.randint(5, 400) * 10**6 if random.random() < 0.3 else None
    return Problem(periods, size, tuple(pools), tuple(tasks), tuple(services), tuple(ceilings), budget)


def holding_more(problem: Problem, random: Random) -> Problem:
    """Return the question with options that hold nodes of several pools, and use up what does not come back."""
    tasks = []
    for task in problem.tasks:
        options = []
        for option in task.options:
            others = [pool for pool in range(len(problem.pools)) if pool != option.pool and random.random() < 0.4]
            options.append(replace(option, beside=tuple((pool, random.randint(1, 2)) for pool in others),
                                   uses=(random.randint(0, 4),) if random.random() < 0.8 else ()))
        tasks.append(replace(task, options=tuple(options)))
    return replace(problem, tasks=tuple(tasks), stocks=(random.randint(2, 8),))


def waiting(problem: Problem) -> Problem:
    """Return the question without services and pauses, with every task after all before it."""
    return replace(problem, services=(), tasks=tuple(replace(task, after=tuple(range(at)), may_pause=False)
                                                    for at, task in enumerate(problem.tasks)))


def paying(problem: Problem, random: Random) -> Problem:
    """Return the question with budgets of two stretches of time, as of quarters."""
    cut, end = random.randint(1, problem.periods - 1) * problem.period_seconds, problem.horizon
    return replace(problem, purses=tuple(Purse(start, until, random.randint(1, 300) * 10**6)
                                         for start, until in ((0, cut), (cut, end))))


def by_night(problem: Problem, random: Random) -> Problem:
    """Return the question with a service that grows and needs more by day than by night, on nodes that may be shared.

    Every second period is a night; nodes are owned, some with maintenance, or delivered; most tasks may pause.
    """
    shared = [at for at, pool in enumerate(problem.pools) if not pool.is_endless]
    blocks = tuple(NodeBlock(random.choice(shared), 1, random.randint(2, 4)) for _ in range(random.randint(1, 2)))
    hours, loads = problem.period_seconds // HOUR, []
    for period in range(problem.periods):
        need = random.randint(1, 2) if period % 2 else random.randint(4, 6) + period
        loads.append(Load((period,), ((need, hours),)))
    tasks = tuple(replace(task, may_pause=random.random() < 0.9, deadline=None, release=0, options=tuple(
        option if random.random() < 0.2 else replace(option, pool=random.choice(shared), nodes=random.randint(2, 3),
                                                     micro_usd=0) for option in task.options))
                  for task in problem.tasks[:2])
    own = replace(problem.pools[0], capacity=tuple(random.choice((5, 5, 6, 4, 2)) for _ in range(problem.periods)))
    return replace(problem, pools=(own, *problem.pools[1:]), tasks=tasks, services=(Endless(blocks, tuple(loads)),))


def turning(problem: Problem, random: Random) -> Problem:
    """Return the question with a service whose hours turn into each other, on nodes that pay to start and to empty."""
    service = Endless((NodeBlock(1, 1, random.randint(2, 4)), NodeBlock(random.choice((0, 1, 1, 1)),
                                                                   random.randint(1, 2), 5)),
                      tuple(Load((period,), ((random.randint(0, 6), problem.period_seconds // HOUR),))
                            for period in range(3)))
    turns = [Turn((at, 0), (at + 1, 0), (at + 1,) * random.choice((1, 1, 3))) for at in range(2)]
    return replace(problem, tasks=problem.tasks[:1], services=(replace(
        service, turns=tuple(turns), changing=random.choice((600, HOUR, 5 * HOUR))),))


def ways(problem: Problem, task: Task) -> list:
    """Return every way to do a task: nodes by (pool, period), second of its start and end, and money."""
    size, found = problem.period_seconds, []
    until = min(problem.horizon, task.deadline or problem.horizon)
    first = -(-task.release // size)
    for option in task.options:
        for start in range(first, problem.periods):
            end = start * size + option.seconds
            if end <= until:
                inside = [p for p in range(problem.periods) if start * size <= p * size < end]
                found.append((option, inside, start * size, end, option.micro_usd))
        pool = problem.pools[option.pool]
        if task.may_pause and (pool.capacity is not None or pool.lots):
            for count in range(2, problem.periods + 1):
                for chosen in combinations(range(first, problem.periods), count):
                    breaks = sum(b - a > 1 for a, b in pairwise(chosen))
                    work = option.seconds + breaks * option.resume_seconds
                    end = (chosen[-1] + 1) * size
                    if breaks and (count - 1) * size < work <= count * size and end <= until:
                        found.append((option, list(chosen), chosen[0] * size, end,
                                      option.micro_usd + breaks * option.resume_micro_usd))
    return found


def covers(problem: Problem, service: Endless, load: Load) -> list:
    """Return every minimal way to answer a load: busiest nodes by pool, and money of all its periods."""
    found = set()
    per_need = []
    for need, hours in load.needs:
        mine = []
        for counts in product(*(range(-(-need // b.micro_rate) + 1) for b in service.blocks)):
            if sum(c * b.micro_rate for c, b in zip(counts, service.blocks, strict=True)) >= need:
                nodes, usd = [0] * len(problem.pools), 0
                for c, b in zip(counts, service.blocks, strict=True):
                    nodes[b.pool] += c * b.nodes
                    usd += c * b.nodes * hours * problem.pools[b.pool].micro_usd_per_node_hour
                mine.append((tuple(nodes), usd))
        per_need.append(mine)
    for several in product(*per_need):
        nodes = tuple(max(one[0][p] for one in several) for p in range(len(problem.pools)))
        found.add((nodes, len(load.periods) * sum(usd for _, usd in several)))
    return sorted(f for f in found if not any(
        g != f and all(x <= y for x, y in zip(g[0], f[0], strict=True)) and g[1] <= f[1] for g in found))


def answers(problem: Problem, service: Endless) -> list:
    """Return every way to answer a service: micro-USD, nodes by pool of each load, and what is paid from when to when.

    Where a turn costs more nodes than are needed may stay.
    """
    size = problem.period_seconds
    if not service.turns:
        return [(sum(usd for _, usd in several), [nodes for nodes, _ in several], [
            (Fraction(usd, len(load.periods)), t * size, (t + 1) * size)
            for load, (_, usd) in zip(service.loads, several, strict=True) for t in load.periods])
            for several in product(*(covers(problem, service, load) for load in service.loads))]
    most = max(need for load in service.loads for need, _ in load.needs)
    all_counts = list(product(*(range(-(-most // b.micro_rate) + 1) for b in service.blocks)))
    prices = [problem.pools[b.pool].micro_usd_per_node_hour for b in service.blocks]
    found = []
    for counts in product(all_counts, repeat=len(service.loads)):
        if any(sum(c * b.micro_rate for c, b in zip(mine, service.blocks, strict=True)) < load.needs[0][0]
               for mine, load in zip(counts, service.loads, strict=True)):
            continue
        spreads, nodes = [], []
        for mine, load in zip(counts, service.loads, strict=True):
            nodes.append([sum(c * b.nodes for c, b in zip(mine, service.blocks, strict=True) if b.pool == pool)
                          for pool in range(len(problem.pools))])
            usd = sum(c * b.nodes * load.needs[0][1] * usd for c, b, usd in zip(
                mine, service.blocks, prices, strict=True))
            spreads += [(usd, t * size, (t + 1) * size) for t in load.periods]
        for turn in service.turns:
            for c, d, b, usd in zip(counts[turn.before[0]], counts[turn.then[0]], service.blocks, prices, strict=True):
                if d > c and problem.pools[b.pool].capacity is None and not problem.pools[b.pool].lots:
                    more = (d - c) * b.nodes * -(-usd * service.changing // HOUR)
                    spreads += [(more, t * size, (t + 1) * size) for t in turn.periods]
        found.append((sum(usd for usd, _, _ in spreads), nodes, spreads))
    return sorted(found, key=lambda one: one[0])


def supplies_of(problem: Problem) -> list:
    """Return every number of nodes of every lot: money, nodes by pool and period, when it is paid; cheapest first."""
    flat, found = [(p, lot) for p, pool in enumerate(problem.pools) for lot in pool.lots], []
    for counts in product(*(range(lot.most + 1) for _, lot in flat)):
        held, usd, paid = [[0] * problem.periods for _ in problem.pools], 0, []
        for n, (p, lot) in zip(counts, flat, strict=True):
            price = (n * lot.micro_usd[0]) if len(lot.micro_usd) == 1 else lot.micro_usd[n]
            usd += price
            paid.append((price, lot.start * problem.period_seconds, lot.end * problem.period_seconds))
            for t in range(lot.start, min(lot.end, problem.periods)):
                held[p][t] += n
        found.append((usd, held, paid))
    return sorted(found, key=lambda one: one[0])


def done(problem: Problem, picked: tuple) -> tuple | None:
    """Return money, prices of what is late or rejected, and nodes of one way for each task; none where one is early."""
    money, priced, used = 0, 0, [0] * len(problem.stocks)
    nodes = [[0] * problem.periods for _ in problem.pools]
    for task, way in zip(problem.tasks, picked, strict=True):
        if way is None:
            priced += task.worth
            continue
        option, inside, start, end, usd = way
        if any(picked[other] is None or picked[other][3] > start for other in task.after):
            return None
        money += usd
        if task.due is not None and end > task.due:
            priced += -(-(end - task.due) * task.late_cents_per_day // 86400) * 10_000
        for t, (pool, count) in product(inside, ((option.pool, option.nodes), *option.beside)):
            nodes[pool][t] += count
        used = [total + more for total, more in zip(used, option.uses or (0,) * len(used), strict=True)]
    if any(total > most for total, most in zip(used, problem.stocks, strict=True)):
        return None
    return money, priced, nodes


def cheapest(problem: Problem) -> int | None:
    """Return the least micro-USD of any schedule; none where there is none."""
    best, supplies = None, supplies_of(problem)
    services = [answers(problem, service) for service in problem.services]
    choices = [ways(problem, task) + ([None] if task.worth is not None else []) for task in problem.tasks]
    for picked in product(*choices):
        tasks = done(problem, picked)
        if tasks is None:
            continue
        money, priced, nodes = tasks
        runs = [spread for way in picked if way is not None for spread in spent(problem, way)]
        for served in product(*services):
            paid = money + sum(usd for usd, _, _ in served)
            if best is not None and paid + priced >= best:
                continue
            spreads = runs + [spread for _, _, spreads in served for spread in spreads]
            total = beside(problem, nodes, served)
            for usd, held, bought in supplies:
                dear = best is not None and paid + usd + priced >= best
                if dear or (problem.budget is not None and paid + usd > problem.budget):
                    break
                if fits(problem, total, held) and affords(problem, spreads + bought):
                    best = paid + usd + priced
                    break
    return best


def beside(problem: Problem, nodes: list, served: tuple) -> list:
    """Return the nodes of tasks, and of services in their answers."""
    total = [list(row) for row in nodes]
    for service, (_, taken, _) in zip(problem.services, served, strict=True):
        for load, more in zip(service.loads, taken, strict=True):
            for t, p in product(load.periods, range(len(more))):
                total[p][t] += more[p]
    return total


def spent(problem: Problem, way: tuple) -> list:
    """Return what a task pays, and from and to which second, evenly over the time in which it runs."""
    _, inside, start, end, usd = way
    if len(inside) == inside[-1] - inside[0] + 1:
        return [(usd, start, end)]
    size = problem.period_seconds
    return [(Fraction(usd, len(inside)), t * size, (t + 1) * size) for t in inside]


def affords(problem: Problem, spreads: list) -> bool:
    """Say whether every stretch of time with a budget of its own has enough for what is paid in it."""
    return all(sum(usd * Fraction(max(0, min(end, purse.end) - max(start, purse.start)), end - start)
                   for usd, start, end in spreads) <= purse.micro_usd for purse in problem.purses)


def fits(problem: Problem, nodes: list, held: list) -> bool:
    """Say whether the nodes in use are there, and keep every ceiling."""
    for t in range(problem.periods):
        for p, pool in enumerate(problem.pools):
            if pool.capacity is not None and nodes[p][t] > pool.capacity[t]:
                return False
            if pool.lots and nodes[p][t] > held[p][t]:
                return False
        for ceiling in problem.ceilings:
            counted = [held[p][t] if ceiling.held and problem.pools[p].lots else nodes[p][t]
                       for p in range(len(problem.pools))]
            if sum(w * n for w, n in zip(ceiling.weights, counted, strict=True)) > ceiling.most:
                return False
    return True


