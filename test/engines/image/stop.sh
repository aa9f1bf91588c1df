#!/usr/bin/env bash
# Removes the container that build.sh made. The layers of the image stay for the next build.
store=${IMAGE_STORE:-${XDG_CACHE_HOME:-$HOME/.cache}/test-engines/image}
[ ! -f "$store/storage.conf" ] || CONTAINERS_STORAGE_CONF="$store/storage.conf" buildah rm --all >/dev/null
