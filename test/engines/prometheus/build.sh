#!/usr/bin/env bash
# Builds promtool, the tool of Prometheus that reads and tests alert rules, and Prometheus itself, by the Go module proxy, and prints their folder.
# What was built stays for the next run. Needs Go 1.26.7 or newer; the first time takes some minutes of one core.
set -euo pipefail
version=v0.316.0 # Prometheus 3.16.0
folder=${PROMETHEUS_STORE:-${XDG_CACHE_HOME:-$HOME/.cache}/test-engines/prometheus}/$version
mkdir -p "$folder"
for program in promtool prometheus; do
  [ ! -x "$folder/$program" ] || continue
  # Into a folder of its own first: one that was cut off is not taken for a built one.
  part=$(mktemp -d "$folder/part.XXXXXX")
  trap 'rm -rf "$part"' EXIT
  # Without the clients of clouds, by which Prometheus discovers what to scrape: they are half of the code.
  GOBIN=$part GOTOOLCHAIN=local GOFLAGS=-buildvcs=false nice go install -tags remove_all_sd -trimpath -ldflags='-s -w' \
    "github.com/prometheus/prometheus/cmd/$program@$version" >&2
  mv "$part/$program" "$folder/$program"
  rmdir "$part"
done
echo "$folder"
