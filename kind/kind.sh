#!/usr/bin/env bash
# The driver in a kind cluster: kind.sh check | up | demo | down. See README.md beside this file.
#
# Settings, from the environment: KIND_CLUSTER (dragoman), KIND_IMAGE (a node image; the one in
# cluster.yaml), IMAGE (localhost/dragoman:dev), EXAMPLE (two-pods).
set -euo pipefail
cd "$(dirname "$0")/.."

cluster=${KIND_CLUSTER:-dragoman}
image=${IMAGE:-localhost/dragoman:dev}
example=manifests/examples/${EXAMPLE:-two-pods}

say() { printf '\n== %s\n' "$*"; }

need() {
  local lacking=()
  for program in "$@"; do
    command -v "$program" >/dev/null || lacking+=("$program")
  done
  if [ ${#lacking[@]} -gt 0 ]; then
    echo "kind.sh: needs ${lacking[*]} in PATH; without Docker use: make demo" >&2
    exit 2
  fi
  if ! docker info >/dev/null 2>&1; then
    echo "kind.sh: docker is there, but its engine does not answer (docker info); start it first," \
      "or use without Docker: make demo" >&2
    exit 2
  fi
}

kube() { kubectl --context "kind-$cluster" "$@"; }

exists() { kind get clusters 2>/dev/null | grep -qxF -- "$cluster"; }

up() {
  need docker kind kubectl
  compgen -G "dist/wheels/dragoman-*.whl" >/dev/null ||
    { echo "kind.sh: dist/wheels is empty; run: make wheels" >&2; exit 2; }
  say "image $image"
  docker build --tag "$image" .
  if exists; then
    say "cluster $cluster is there already"
  else
    say "cluster $cluster"
    kind create cluster --name "$cluster" --config kind/cluster.yaml --wait 120s \
      ${KIND_IMAGE:+--image "$KIND_IMAGE"}
  fi
  say "image $image into its nodes"
  kind load docker-image "$image" --name "$cluster"
  say "driver"
  kube apply -k manifests/overlays/kind
  # An image of the same name may have other content than that of pods which run already.
  kube -n dragoman-system rollout restart daemonset/dragoman-driver
  kube -n dragoman-system rollout status daemonset/dragoman-driver --timeout=180s
}

demo() {
  need docker kind kubectl
  exists || { echo "kind.sh: no cluster $cluster; run: make kind-up" >&2; exit 2; }
  [ -d "$example" ] || { echo "kind.sh: no example $example" >&2; exit 2; }
  say "devices, as published"
  kube get resourceslices
  say "example $example"
  kube apply -k "$example"
  trap 'kube delete -k "$example" --wait=true' EXIT
  kube wait --for=condition=Ready pod --all --timeout=180s
  kube get pods,resourceclaims
  for pod in $(kube get pods -o name); do
    say "$pod"
    kube logs "$pod" --all-containers --prefix
  done
}

check() { need docker kind kubectl; }

down() {
  need docker kind
  kind delete cluster --name "$cluster"
}

case "${1:-}" in
  check | up | demo | down) "$1" ;;
  *)
    echo "usage: kind.sh check | up | demo | down" >&2
    exit 2
    ;;
esac
