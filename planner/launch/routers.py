"""What stands before several replicas, and sends each request to one: of each engine the one it has, else nginx."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.errors import Unsupported
from planner.launch.program import script
from planner.launch.served import EngineGroup

ROUTER = "router.sh"
BOOTSTRAP = 1000
"""From the port of SGLang's prefill to that on which decode finds it, which the router tells: several share a node."""
STARTUP = 3600
"""Seconds in which replicas have to answer: loading the weights takes most of them."""


@dataclass(frozen=True, slots=True)
class RouterKind:
    """One router: what installs it, and its script. $WORKERS, or $PREFILL and $DECODE, are the addresses."""

    name: str
    release: str
    lines: Callable[[str, bool], list[str]]
    """Of a policy, and whether prefill and decode are apart."""
    install: str
    there: str
    """Says whether it is installed already; both are empty where it is part of its engine."""

    def script(self, served: EngineGroup, *, apart: bool) -> str:
        """Return the script that starts it."""
        hits = served.asked.prefix_hits if served.asked else 0.0
        policy = "cache_aware" if hits else "power_of_two"
        return script(f"{self.name} {self.release}: runs once, beside the first replica", {},
                      [*([f"{self.there} > /dev/null 2>&1 || {self.install}"] if self.install else []),
                       *self.lines(policy, apart)])


def _engine_router(start: str, apart_option: str, prefill: str) -> Callable[[str, bool], list[str]]:
    def lines(policy: str, apart: bool) -> list[str]:
        options = f'--host 0.0.0.0 --port "$PORT" --policy {policy} --worker-startup-timeout-secs {STARTUP}'
        if not apart:
            return ["read -ra workers <<< \"${WORKERS:?}\"", f'exec {start} {options} --worker-urls "${{workers[@]}}"']
        return ["roles=()", "for url in ${PREFILL:?}; do", f"  roles+=(--prefill {prefill})", "done",
                "for url in ${DECODE:?}; do", '  roles+=(--decode "$url")', "done",
                f'exec {start} {options} {apart_option} "${{roles[@]}}"']
    return lines


def _nginx(policy: str, apart: bool) -> list[str]:
    if apart:
        raise Unsupported("prefill and decode apart behind nginx")
    return ['conf="${TMPDIR:-/tmp}/planner-nginx-$PORT.conf"', "{", "  echo 'daemon off; pid /tmp/planner-nginx.pid;'",
            "  echo 'events { worker_connections 4096; }'", "  echo 'http { upstream replicas { least_conn;'",
            '  for url in ${WORKERS:?}; do', '    echo "server ${url#http://};"', "  done",
            '  echo "} server { listen $PORT; location / { proxy_pass http://replicas; proxy_buffering off;'
            ' proxy_read_timeout 3600s; } } }"', '} > "$conf"', 'exec nginx -c "$conf"']


def _disaggregated(policy: str, apart: bool) -> list[str]:
    """Return the server that TensorRT-LLM has for it, and the YAML that names the replicas."""
    section = ('{ read -ra urls <<< "$2"; echo "$1:"; echo "  num_instances: ${#urls[@]}"; echo "  urls:"; '
               'printf \'    - "%s"\\n\' "${urls[@]#http://}"; }')
    return [f"section() {section}", 'config="$PWD/router.yaml"', "{", '  echo "hostname: 0.0.0.0"',
            '  echo "port: $PORT"', '  echo "backend: pytorch"', '  section context_servers "${PREFILL:?}"',
            '  section generation_servers "${DECODE:?}"', '} > "$config"',
            f'exec trtllm-serve disaggregated --config "$config" --server_start_timeout {STARTUP}']


VLLM_ROUTER = RouterKind("vllm-router", "0.1.17", _engine_router("vllm-router", "--vllm-pd-disaggregation", '"$url"'),
                         "pip install vllm-router==0.1.17", "command -v vllm-router")
SGLANG_ROUTER = RouterKind("sglang-router", "0.3.2", _engine_router(
    "python3 -m sglang_router.launch_router", "--pd-disaggregation", f'"$url" "$((${{url##*:}} + {BOOTSTRAP}))"'),
    "pip install sglang-router==0.3.2",
    'python3 -c "import sglang_router"')
NGINX = RouterKind("nginx", "1.22", _nginx, "{ apt-get update && apt-get install -y nginx-light; }", "command -v nginx")
TRTLLM_ROUTER = RouterKind("trtllm-serve disaggregated", "1.3.0rc20", _disaggregated, "", "")
