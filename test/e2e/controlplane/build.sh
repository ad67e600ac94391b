#!/usr/bin/env bash
# build.sh OUT [TAGS] - build the control plane with the runner in it. The same flags for build, vet and test: other values of CGO_ENABLED
# or -trimpath compile all of Kubernetes again.
set -euo pipefail
cd "$(dirname "$0")"
out=$1 tags=${2:-}
kube=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=$(cut -d. -f2 <<<"$kube")
v=k8s.io/component-base/version
stamp="-X $v.gitVersion=$kube -X $v.gitMajor=1 -X $v.gitMinor=$minor -X $v.gitTreeState=clean"
stamp="$stamp -X $v.gitCommit=0000000000000000000000000000000000000000 -X $v.buildDate=1970-01-01T00:00:00Z"
CGO_ENABLED=0 go build -p "${E2E_BUILD_JOBS:-2}" ${tags:+-tags "$tags"} -trimpath -ldflags "-s -w $stamp" -o "$out" .
