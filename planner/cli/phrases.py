"""What the words of a question in a sentence say: what it asks, flags of their own, what is counted, or nothing."""

from __future__ import annotations

from planner.units import SECONDS, WATTS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ASKING = {
    "fit": "not fit|doesn't fit|does not fit|don't fit|won't fit|will not fit|doesnt fit|"
    "fit|fits|fitting|does it fit|enough|can i|can we|can it|could i|could we|will it|is it possible|possible",
    "serve": "serve|serves|serving|host|hosting|deploy|deploying|run inference|inference|infer|chatbot|chat|"
    "endpoint|api",
    "hold": "run|runs|running|load|use",
    "train": "train|trains|training|run training",
    "--method=pretrain": "pretrain|pretrains|pre-train|pretraining|pre-training|from "
    "scratch|continued pretraining",
    "tune": "finetune|fine-tune|fine tune|finetuning|fine-tuning|fine tuning|tune|tuning|finetunes|fine-tunes|tunes",
    "batch": "batch|batch job|batch jobs|offline|process|transcribe|summarize|classify|translate|"
    "label|extract|annotate|ocr",
    "batch embed": "embed|embedding|embeddings|encode|vectorize|index",
    "generate": "generate|generating|render|create|make|produce",
    "largest": "largest model|biggest model|largest|biggest|what model|which model|what models|which models|largest "
               "models|biggest models",
    "longest": "max context length|max context|maximum context|maximum context length|longest context|longest "
               "sequence|max sequence length|max seq len|max sequence|largest context|how long a context|how much "
               "context|maximum sequence length",
    "--max=micro-batch": "what batch size|which batch size|how large a batch|how big a batch|batch size can|"
    "max batch size|maximum batch size|largest batch size|max batch|largest batch|max micro-batch",
    "tokens": "how many tokens|number of tokens|most tokens",
    "buys": "buy|buying|purchase|purchasing", "rents": "rent|renting|rental|lease|leasing",
    "duration": "speed of|speed|throughput|throughput of|how long|how fast|how quickly|how soon|how many days|how many "
                "hours|how much time|days|eta|how much faster|faster",
    "duration serve": "tokens per second|tokens per sec|tokens per s",
    "--tokens=chinchilla": "chinchilla|chinchilla optimal|chinchilla-optimal|compute optimal|compute-optimal|compute "
    "optimally",
    "rent": "rent or buy|buy or rent|rent vs buy|buy vs rent|rent versus buy|buy versus rent|rent-or-buy|buy-or-rent|"
            "rent-vs-buy|buy-vs-rent|lease or buy|cloud or on-prem|on-prem or cloud|cloud vs on-prem|on-prem vs cloud|"
            "break even|break-even|tco",
    "versus": "vs|versus|compare|compared to|compared with|comparison|better|or",
    "why-not": "why not|why no|instead of", "own": "my|our|own|owned|i have|we have|i own|we own|ive got|i've got|"
    "existing", "first": "first token|ttft|time to first token", "each-token": "per token|tpot|each token|between "
    "tokens",
    "cost": "cost|costs|price|how much|cheapest|cheap|cheaper|cost per million tokens|price per million tokens|per "
            "million tokens|cost per 1m tokens|price per 1m tokens|per 1m tokens|cost per token|cost per million|"
            "dollars per million tokens|cheapest way",
    "cost energy": "energy use|energy usage|energy consumption|power draw|power consumption|carbon footprint|"
    "energy|carbon|kwh|electricity",
    "--objective=users serve": "how many users|how many concurrent users|how many people|how many simultaneous users|"
    "how many concurrent requests|number of concurrent requests|number of concurrent users|max concurrent requests|"
    "max users|maximum users|most users", "--objective=time": "fastest|as fast as possible|quickest|asap",
    "--objective=gpus": "fewest gpus|fewest|smallest cluster|minimum gpus|least gpus",
    "--deadline=12h": "overnight|over night", "--deadline=2d": "over the weekend|this weekend|a weekend|weekend",
    "why": "why|why does|why is|why do", "uptime": "uptime|availability|high availability|redundant|redundancy",
    "": "all day|round the clock|24/7|around the clock",
    "--terms=spot": "spot|preemptible|spot instances|interruptible",
    "--terms=on-demand": "on-demand|on demand", "--terms=reserved-1y,reserved-3y": "reserved",
    **{f"--layout=zero={stage}": f"zero-{stage}|zero {stage}|zero{stage}" for stage in (1, 2, 3)},
    "--stack=fsdp2": "fsdp", "--packing": "packed|packing|with packing", "users-rate": "per user|per seat"}
PHRASES = {phrase: what for what, phrases in _ASKING.items() for phrase in phrases.split("|")}
"""Words -> what the question is about, or a flag with its value."""
SILENT = _words(
    ", a about all also an and answer answers any approximately are around as at at-most audio average be been before "
    "being below best both box buying by can capacity card cards cloud clouds cluster clusters concurrently could "
    "cpu current data dataset day's dense do does done during each each, either estimate every explain fast "
    "finish finished for from get give given going got gpu gpus handle hardware has have having hello hey hi how "
    "i if image images in inside instance instances into is it its job jobs just keep kind latency least less "
    "idle sitting pay paying pays order continue difference footprint reproduce "
    "like llm llms load long lowest machine machines many max maximum me mean memory memory? min minimum model "
    "models most much music need needed needs node nodes now of offload offloading on on-prem once one only over "
    "pace parallel parameter parameters params per picture pictures plan please ram rental renting response "
    "responses right roughly server servers setup should show simultaneously single size sized sizes so some "
    "sound speech slurm startup support team company lab "
    "take takes task tell text than that the their them then there these "
    "they this "
    "those through throughput time to today together too total traffic under until up us using utilisation "
    "utilization via video videos vram want wants was we weights what what's when where which while who whole "
    "will with within without workload would you your")
"""Words that change nothing in a question."""
LEADING = _words(
    "active batch chat completion concurrent customer daily different generated hd hourly input internal "
    "long max maximum monthly more new of online output parallel preference prompt short simultaneous "
    "synthetic total training user whole")
"""Words between a number and what it counts."""
FOLLOW = _words(
    "a an answer answers at completion response responses concurrent concurrently context daily each every hourly in "
    "input "
    "long monthly once out output per prompt prompts simultaneously total")
"""Words behind what a number counts that may say more of it."""
OF_TOKENS = {"input": _words("in input prompt prompts each"),
         "output": _words("out output answer answers completion generated response responses"),
         "seq-len": _words("context sequence window")}
"""Flag -> the words beside tokens that say they are its; the last counts."""
PARAMETER = ("parameter", "param", "parameters", "params")
SIDES = frozenset().union(*OF_TOKENS.values())
_NOUNS = {
    "tokens": "token tokens tok toks", "users": "user users people person persons client clients customers employees "
    "developers devs engineers students seats sessions players", "requests": "request requests req reqs query queries "
    "calls call chats messages message conversations-a", "rate": "rps qps rpm qpm req/s requests/s",
    "documents": "document documents doc docs page pages prompts prompt emails email reviews records record articles "
    "article tickets ticket files pdfs papers items chunks passages texts",
    "images": "image images picture pictures photo photos", "clips": "clip clips video videos song songs tracks",
    "samples": "sample samples example examples pair pairs row rows conversations dialogues instructions comparisons "
    "preferences entries", "epochs": "epoch epochs passes", "steps": "step steps iterations updates",
    "gpus": "gpu gpus cards", "context": "context ctx window sequence sequences seq seqlen seq-len",
    "rollouts": "rollout rollouts generation generations completions",
    "money": "usd dollar dollars bucks eur euro euros", "share": "% percent pct",
    "size": "model parameter parameters params parameter-model llm dense", "frames": "frame frames"}
_COUNTED = {word: kind for kind, words in _NOUNS.items() for word in words.split()}
ONES = {word: str(count) for count, words in enumerate((
    "zero", "a an one single", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")) for word in
         words.split()} | {"twelve": "12", "sixteen": "16", "twenty": "20", "thirty": "30", "fifty": "50",
                           "hundred": "100", "hundreds": "100", "thousands": "1000", "dozen": "12"}
"""Numbers that are written out, as figures."""


def noun_of(word: str) -> str | None:
    """Return what kind of thing a word counts: tokens, users, time, power, ...; none where it counts nothing."""
    if word in _COUNTED:
        return _COUNTED[word]
    if word in ("month", "months") or SECONDS.factor(word):
        return "time" if word else None
    return "power" if word and WATTS.factor(word) else None
