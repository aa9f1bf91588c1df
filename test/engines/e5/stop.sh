#!/usr/bin/env bash
# Stops the engine that start.sh --daemon started on ${E5_PORT:-9321}.
state=${E5_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/test-engines/e5}
pid=$(cat "$state/${E5_PORT:-9321}.pid" 2>/dev/null) || exit 0
kill "$pid" 2>/dev/null
rm -f "$state/${E5_PORT:-9321}.pid"
