#!/usr/bin/env bash
# Runs a command of the image: run.sh FILES FOLDER COMMAND... FILES is what build.sh prints. The command sees the image read-only, an empty
# /tmp and FOLDER, which it may write; it runs as the image's user.
set -euo pipefail
export FILES=$1 FOLDER=$2
shift 2
chown -R 1000:1000 "$FOLDER"
exec unshare --mount --propagation private bash -c '
  set -e
  mount --bind "$FILES" "$FILES"
  mount -o remount,bind,ro "$FILES"
  mount -t tmpfs -o mode=1777 tmp "$FILES/tmp"
  mkdir -p "$FILES$FOLDER"
  mount --bind "$FOLDER" "$FILES$FOLDER"
  mount -t proc proc "$FILES/proc"
  mount --rbind /dev "$FILES/dev"
  exec chroot --userspec=1000:1000 "$FILES" env --chdir=/app "$@"
' run "$@"
