#!/usr/bin/env bash
# Builds helm and kubeconform, and takes the schemas of Kubernetes from its own module: all by the Go module proxy. Prints the folder with
# `helm`, `kubeconform` and `schemas/`. What was built stays for the next run. Needs Go 1.25 or newer, and Node.
set -euo pipefail
cd "$(dirname "$0")"
helm=v3.22.0 kubeconform=v0.8.0 kubernetes=v1.36.0
folder=${HELM_STORE:-${XDG_CACHE_HOME:-$HOME/.cache}/test-engines/helm}/$helm-$kubeconform-$kubernetes
mkdir -p "$folder"
# Into a folder of its own first: one that was cut off is not taken for a built one.
part=$(mktemp -d "$folder/part.XXXXXX")
trap 'rm -rf "$part"' EXIT
build() {
  [ -x "$folder/$1" ] || { GOBIN=$part GOTOOLCHAIN=local GOFLAGS=-buildvcs=false nice go install -trimpath -ldflags='-s -w' "$2" && mv "$part/$1" "$folder/$1"; }
}
{
  build kubeconform "github.com/yannh/kubeconform/cmd/kubeconform@$kubeconform"
  build helm "helm.sh/helm/v3/cmd/helm@$helm"
  # kubeconform would download schemas from a site of its own. Kubernetes' module has what they are made of.
  if [ ! -d "$folder/schemas" ]; then
    module=$(go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    node schemas.js "$module/api/openapi-spec/swagger.json" "$part/schemas"
    mv "$part/schemas" "$folder/schemas"
  fi
} >&2
echo "$folder"
