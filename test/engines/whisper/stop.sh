#!/usr/bin/env bash
# Stops the engine that start.sh --daemon started on ${WHISPER_PORT:-9310}.
state=${WHISPER_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/test-engines/whisper}
pid=$(cat "$state/${WHISPER_PORT:-9310}.pid" 2>/dev/null) || exit 0
kill "$pid" 2>/dev/null
rm -f "$state/${WHISPER_PORT:-9310}.pid"
