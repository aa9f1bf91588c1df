#!/usr/bin/env bash
# Prints a folder with `prometheus` and `promtool`. Takes them from Debian's package, without installing it, so no server starts and no root is
# needed. What was fetched stays for the next run. Needs a Debian whose package lists are there.
set -euo pipefail
folder=${PROMETHEUS_STORE:-${XDG_CACHE_HOME:-$HOME/.cache}/test-engines/prometheus}
if [ ! -x "$folder/usr/bin/promtool" ]; then
  mkdir -p "$folder"
  # Into a folder of its own first: one that was cut off is not taken for a whole one.
  part=$(mktemp -d "$folder/part.XXXXXX")
  trap 'rm -rf "$part"' EXIT
  (cd "$part" && { apt-get download prometheus || { apt-get update && apt-get download prometheus; }; } && dpkg-deb -x prometheus_*.deb .) >&2
  rm -rf "$folder/usr"
  mv "$part/usr" "$folder/usr"
fi
echo "$folder/usr/bin"
