"""What the words of a question in a sentence say: what it asks, flags of their own, what is counted, or nothing."""

from __future__ import annotations

from planner.units import SECONDS, WATTS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ASKING = {
    "fit": "any chance|a chance|is there a way|is there any way|is it realistic|sufficient|would it be enough|"
            "can not i|will not fit|can not fit|not fit|does not fit|do not fit|fit|fits|fitting|does it fit|enough|"
            "realistic|realistically|feasible|doable|"
            "can i|can we|can it|could i|could we|will it|is it possible|possible",
    "serve": "serve|serves|served|serving|hosted|deployed|host|"
            "hosting|deploy|deploying|run inference|inference|infer|chatbot|chat|endpoint|"
            "api",
    "hold": "handle|handles|handled|cope with|hold|run|runs|running|load|use",
    "train": "retrain|retrains|retraining|train|trains|trained|training|run training",
    "--method=pretrain train": "pretrain|pretrains|pre-train|pretraining|pre-training|from scratch|"
            "continued pretraining|continue pretraining|continue-pretrain|continued-pretraining|"
            "continual pretraining|"
            "continue-pretraining|continuous pretraining|cpt",
    "tune": "finetune|fine-tune|fine tune|finetuning|fine-tuning|fine tuning|tune|tuning|finetunes|fine-tunes|tunes|"
            "tuned|finetuned|fine-tuned|fine tuned",
    "batch caption": "caption|captioning|describe",
    "batch ocr": "ocr",
    "batch": "batch|batch job|batch jobs|offline|process|transcribe|transcribing|transcription|summarize|summary|"
             "summarizing|processing|classify|translate|label|extract|"
            "annotate",
    "batch embed": "rerank|reranking|reranks|embed|embedding|embeddings|encode|vectorize|index",
    "generate": "generate|generating|render|create|make|produce",
    "largest": "how big a model|how large a model|how big of a model|how large of a model|what size model|"
            "what size of model|what size of a model|how big|how large|largest model|biggest model|largest|biggest|"
            "what model|which model|what models|which models|largest models|biggest models",
    "longest": "what context length|which context length|what context|what context size|what sequence length|"
            "which sequence length|"
            "biggest context|biggest context length|largest context length|how big a context|how large a context|"
            "max context length|max context|maximum context|maximum context length|longest context|"
            "longest sequence|max sequence length|max seq len|max sequence|largest context|how long a context|"
            "how much context|maximum sequence length",
    "--max=micro-batch": "what batch|which batch|biggest batch|what batch size|which batch size|how large a batch|"
            "how big a batch|batch size can|max batch size|maximum batch size|largest batch size|max batch|"
            "largest batch|max micro-batch|max micro batch|max microbatch|largest micro batch|largest micro-batch|"
            "maximum micro batch|biggest micro batch",
    "tokens": "number of tokens|most tokens|how far",
    "buys": "buy|buying|purchase|purchasing",
    "rents": "rent|renting|rental|lease|leasing",
    "--objective=rate serve": "higher throughput|highest throughput|high throughput|best throughput|"
            "max tokens per second|maximum tokens per second|total tokens per second|"
            "most tokens per second|max throughput|maximum throughput|total throughput|aggregate throughput|"
            "peak throughput",
    "duration": "speed of|speed|throughput|throughput of|how long|how fast|how quickly|how soon|how many days|"
            "how many hours|how much time|days|eta|how much faster",
    "duration train": "training time|train time|time to train",
    "duration tune": "time to finetune|time to fine-tune|finetuning time|fine-tuning time",
    "duration better": "faster|quicker|more throughput|more tokens per second",
    "duration serve": "tokens per second|tokens per sec|tokens per s|token per second|token per sec|tok per s|"
            "tok per sec|"
            "tok per second|toks per s|toks per sec|toks per second",
    "duration serve first": "prefill|prompt processing",
    "duration step-time": "sec per step|s per step|"
            "time per step|step time|seconds per step|how long is a step|how long is one step",
    "--tokens=chinchilla": "chinchilla|chinchilla optimal tokens|chinchilla-optimal tokens|chinchilla tokens|"
            "chinchilla optimal|chinchilla-optimal|compute optimal|compute-optimal|compute optimally",
    "rent": "rent or buy|buy or rent|rent vs buy|buy vs rent|rent versus buy|buy versus rent|rent-or-buy|buy-or-rent|"
            "rent-vs-buy|buy-vs-rent|lease or buy|cloud or on-prem|on-prem or cloud|cloud vs on-prem|"
            "on-prem vs cloud|break even|break-even|tco",
    "versus": "which gives more|gives more|faster or slower|quicker than|more expensive than|how much slower is|"
            "how much slower are|slower|faster than|slower than|better than|cheaper than|"
            "how much faster are|how much faster is|how much cheaper is|how much cheaper are|vs|versus|compare|"
            "compared to|compared with|comparison|better|or",
    "why-not": "why not|why no",
    "instead": "instead of|rather than",
    "own": "my|our|own|owned|i have|we have|i own|we own|i have got|we have got|existing",
    "first": "first token|ttft|time to first token|first word|answer starts|answers start|response starts|"
             "responses start|reply starts|replies start|start answering|starts answering|starts streaming|"
             "starts to answer",
    "each-token": "per token|tpot|each token|between tokens",
    "cost": "charge|charges|bill|bills|expense|spend|run me|run us|cost|costs|price|how much|cheapest|cheap|"
            "cost per million tokens|"
            "price per million tokens|per million tokens|cost per 1m tokens|price per 1m tokens|per 1m tokens|"
            "cost per token|cost per million|dollars per million tokens|cheapest way",
    "cost better": "cheaper",
    "cost energy": "how much power|electricity cost|power bill|electricity bill|power and electricity cost|"
            "energy use|"
            "energy usage|energy consumption|power draw|power consumption|carbon footprint|energy|"
            "carbon|kwh|electricity",
    "--objective=users serve": "how many concurrent requests|how many simultaneous requests|"
            "how many requests at once|number of concurrent requests|number of concurrent users|"
            "max concurrent requests|higher concurrency|more concurrency|high concurrency|max concurrency|"
            "maximum concurrency|highest concurrency|as many users as possible|max number of people|"
            "max number of users|maximum number of people|"
            "maximum number of users|max users|maximum users|most users",
    "--objective=time": "fastest|as fast as possible|quickest|asap|finishes first|done first|soonest|"
            "as soon as possible",
    "--objective=energy": "tokens per joule|tokens per watt|per joule|per watt|most energy efficient|"
            "energy efficiency|energy efficient|energy-efficient|lowest energy|least energy|less energy",
    "--objective=gpus": "fewest gpus|fewest|smallest cluster|minimum gpus|least gpus",
    "--deadline=90d": "this quarter|within a quarter|in a quarter|in one quarter",
    "--quantization=bf16": "full precision|half precision|unquantized|without quantization|no quantization",
    "speculative": "speculative decoding|speculation|speculative|draft model",
    "--deadline=12h": "overnight|over night|tonight|by tomorrow morning|by the morning",
    "--deadline=12h night": "per night|a night|each night|every night|nightly|at night",
    "worth": "worth it|worthwhile|pay off|pays off|make sense|makes sense|worth",
    "oom": "oom|out of memory|run out of memory|ooms",
    "--deadline=7d": "weekly|every week|each week",
    "--deadline=24h": "by tomorrow|within the day",
    "--deadline=2d": "over the weekend|this weekend|a weekend|weekend",
    "why fit why-fit": "why can not i|why can not we|why can not|why does not|why will not|why would not|"
            "why is it not possible",
    "memory": "how big is the kv cache|kv cache size|size of the kv cache|how large is the kv cache|how much memory|"
            "how much vram|how much gpu memory|how much ram|how many gb|how many gigabytes|"
            "memory needed|vram needed|memory required|memory footprint|vram requirement|memory requirement|"
            "memory requirements",
    "why": "why|why does|why is|why do",
    "fails": "preempted|preempt|preempts|preemption|preemptions|interrupted|interruption|interruptions|evicted|"
             "eviction|evictions|reclaimed|fail|fails|failing|failed|failure|failures|crash|crashes|"
             "crashed|taken away|die|dies",
    "saves": "checkpoint|checkpoints|save|saves|how often|snapshot|snapshots",
    "passes": "how many epochs|number of epochs|how many passes",
    "uptime": "uptime|availability|high availability|redundant|redundancy",
    "--on=cpu": "on cpu|on a cpu|on cpus|cpu only|cpu-only|on my cpu|cpu alone|on cpu only",
    "--on=rtx-3090,rtx-4090,rtx-5090": "consumer cards|consumer gpus|consumer gpu|consumer card|consumer hardware|"
            "gaming cards|gaming gpus|gaming gpu|geforce cards",
    "--day=9h-17h": "business hours|office hours|working hours|work hours",
    "": "or not|whether or not|double check|sanity check|quick check|fit check|does that buy|will that buy|that buys|"
            "buy me|buys me|buy us|"
            "more than|less than|or more|at least|at most|all day|round the clock|24/7|around the clock",
    "--terms=spot": "spot|preemptible|spot instances|interruptible",
    "--terms=on-demand": "on-demand|on demand",
    "--terms=reserved-1y,reserved-3y": "reserved|reserve|reserving|reservation|committed use|commit",
    "--stack=fsdp2": "fsdp",
    "--packing": "packed|packing|with packing",
    "users-rate": "per user|per seat",
    "--placement=disaggregated": "disaggregated rollouts|separate rollouts",
    "--placement=colocated": "colocated rollouts|co-located rollouts",
    **{f"--layout=zero={stage}": f"zero-{stage}|zero {stage}|zero{stage}" for stage in (1, 2, 3)}}
PHRASES = {phrase: what for what, phrases in _ASKING.items() for phrase in phrases.split("|")}
"""Words -> what the question is about, or a flag with its value."""
STOPS = _words(
    "a an the of for with on in at to by from as than that which and or is are was were be will would can could do "
    "does did need needs if per each every using over under within during into i we you they it its , not no but "
    "without what how why when where vs versus onto upon toward towards via near between during while because so then "
    "plus "
    "through across against among behind beside beyond inside outside off out up down peak")
"""Words that stand between a number and no noun of its."""
SILENT = _words(
    ", inputs outputs rack racks see reach number making private coding assistant copilot bot rag fleet peak live "
    "realtime real-time rented averaging mean code text english home people's provider providers customer app "
    "application product team's tonight's really actually currently ideally maybe param a about all also an and "
    "answer answers any approximately are around as at at-most audio average be been before being below best both "
    "box buying by can capacity card cards cloud clouds cluster clusters concurrently could cpu current data dataset "
    "day's dense do does done during each each, either estimate every explain fast finish finished for from get give "
    "given go going got gpu gpus handle hardware has have having hello hey hi how i if image images in inside instance "
    "instances into is it its job jobs just keep kind latency least less idle sitting pay paying pays order continue "
    "quoted quote quotes charged charges priced willing were "
    "optimizer afford planning self-host self-hosting ethernet "
    "active gets getting old must minimal minimum often still yet weekday weekdays works drop drops dropped "
    "difference footprint reproduce like llm llms load long lowest machine machines many max maximum me memory "
    "memory? min minimum model models most much music need needed needs node nodes now of offload offloading on "
    "on-prem once one only over pace parallel parameter parameters params per picture pictures plan please ram "
    "rental renting response responses right roughly server servers setup should show simultaneously single size "
    "sized sizes so some sound speech slurm startup support team company lab take takes task tell than that the "
    "their them then there these they this those through throughput time to today together too total traffic under "
    "until up us using utilisation utilization via video videos vram want wants was we weights what what's when "
    "send sends where which while who whole will with within without workload would you your "
    "expect expecting internal moving trying looking self pixels pixel px")
"""Words that change nothing in a question."""
COMPARES = _words(
    "more fewer less double twice half triple larger smaller bigger longer shorter higher another additional extra "
    "other")
"""Words before a noun that say how it differs from what is not said."""
PER_THING = _words("query epoch month user request person prompt step image clip video song picture document page call "
                   "kwh gpu device card gpu-hour gpu-hr token")
"""What a number is of each of, beside times."""
PER = ("per", "a", "an", "each", "every")
"""Words before what something is counted of each of."""
LEADING = _words(
    "lora active batch chat completion concurrent customer daily different generated hd hourly input internal long "
    "max maximum monthly more new of online output parallel preference prompt short simultaneous synthetic total "
    "training user whole")
"""Words between a number and what it counts."""
FOLLOW = _words(
    "a an answer answers apiece at completion summary response responses concurrent concurrently context daily each "
    "every hourly in input long monthly once out output per prompt prompts simultaneously total")
"""Words behind what a number counts that may say more of it."""
OF_TOKENS = {"input": _words("in input prompt prompts each"),
         "output": _words("out output answer answers completion generated response responses summary "
                   "summaries"),
         "seq-len": _words("context sequence window")}
"""Flag -> the words beside tokens that say they are its; the last counts."""
PARAMETER = ("parameter", "param", "parameters", "params")
SIDES = frozenset().union(*OF_TOKENS.values())
_NOUNS = {
    "tokens": "token tokens tok toks",
    "words": "word words",
    "pages": "page pages",
    "users": "ppl folks peeps user users people person persons client clients customers employees customer employee "
            "developer engineer developers devs engineers students seats sessions players agents reps doctors lawyers "
            "analysts "
            "colleagues coworkers members subscribers visitors testers researchers scientists teachers readers "
            "programmers coders staff workers nurses teammates guests accounts learners operators writers editors",
    "requests": "request requests req reqs query queries calls call chats chat messages message msgs questions "
            "question searches lookups hits",
    "rate": "rps qps rpm qpm req/s requests/s",
    "streams": "stream streams callers channels microphones mics feeds",
    "documents": "document documents doc docs prompts prompt emails email reviews records record articles article "
            "tickets ticket files pdfs pdf papers paper items chunks chunk passages passage texts contracts invoices "
            "transcripts abstracts reports report letters comments posts tweets listings products descriptions "
            "snippets sentences paragraphs resumes cvs books chapters notes filings claims webpages websites "
            "summaries",
    "recordings": "recordings recording podcasts podcast episodes episode meetings meeting interviews lectures "
            "voicemails",
    "turns": "turn turns rounds exchanges",
    "images": "image images img imgs picture pictures pic pics photo photos thumbnails avatars portraits renders "
            "receipts scans screenshots charts diagrams drawings radiographs",
    "clips": "clip clips video videos song songs tracks track",
    "samples": "sample samples example examples pair pairs row rows conversations conversation dialogues "
            "instructions comparisons preferences prefs preference lines dialogs entries demonstrations trajectories",
    "epochs": "epoch epochs passes",
    "repeats": "repeat repeats",
    "steps": "step steps iterations updates",
    "gpus": "gpu gpus cards",
    "context": "context contexts ctx window windows sequence sequences seq seqlen seq-len",
    "rollouts": "rollout rollouts gen gens generation generations completions",
    "money": "money usd dollar dollars bucks eur euro euros gbp pounds chf francs cent cents",
    "share": "% percent pct",
    "size": "model param parameter parameters params parameter-model llm dense student teacher policy critic moe",
    "frames": "frame frames",
    "fps": "fps",
    "adapters": "adapters adapter loras",
    "models": "models jobs services workloads"}
_COUNTED = {word: kind for kind, words in _NOUNS.items() for word in words.split()}
MEASURES = ("time", "tokens", "words", "pages", "frames")
"""Kinds of things of which what is counted has so many each, where they stand before it."""
SOUNDS = _words("audio speech sound recordings recording calls podcasts podcast audiobooks broadcasts meetings "
                "interviews lectures voice dictation music songs")
"""What hours are of that are heard."""
EACH = ("each", "apiece")
ONES = {word: str(count) for count, words in enumerate((
    "zero", "a an one single", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty")) for word in
         words.split()} | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70",
                           "eighty": "80", "ninety": "90", "hundred": "100", "hundreds": "100", "thousands": "1000",
                           "dozen": "12"}
"""Numbers that are written out, as figures."""


REINFORCED = frozenset(("grpo", "ppo", "rloo", "reinforce", "dapo", "gspo", "rl", "rlvr", "on-policy-distillation",
                        "rejection-sampling"))
"""Names of methods that draw answers and learn from rewards."""
DRAWS = _words("rollout rollouts generate generates generating generation generators sampling")
TRAINS = _words("train trains trainer trainers training learner learners actor update updates")
"""What is done on the hardware behind them, where both have their own."""


def noun_of(word: str) -> str | None:
    """Return what kind of thing a word counts: tokens, users, time, power, ...; none where it counts nothing."""
    if word in _COUNTED:
        return _COUNTED[word]
    if word in ("month", "months") or SECONDS.factor(word):
        return "time" if word else None
    return "power" if word and WATTS.factor(word) else None
