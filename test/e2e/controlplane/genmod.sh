#!/bin/bash
# genmod.sh KUBE_VERSION: write go.mod for the control plane from the go.mod of k8s.io/kubernetes.
set -eu
KV=${1:-v1.37.2}; SV=v0.${KV#v1.}
go mod download k8s.io/kubernetes@$KV 2>/dev/null || (cd /tmp && go mod download k8s.io/kubernetes@$KV)
K=$(go env GOMODCACHE)/k8s.io/kubernetes@$KV
gov=$(awk '$1=="go"{print $2; exit}' $K/go.mod)
etcd=$(awk '$1=="go.etcd.io/etcd/client/v3"{print $2; exit}' $K/go.mod)
{
  echo "module queued.dev/e2e"; echo; echo "go $gov"; echo
  gd=$(grep '^godebug' $K/go.mod || true); [ -z "$gd" ] || { echo "$gd"; echo; }
  echo "require ("
  echo "	go.etcd.io/etcd/server/v3 $etcd"
  echo "	k8s.io/kubernetes $KV"
  for m in api apimachinery apiserver client-go component-base kubectl; do echo "	k8s.io/$m $SV"; done
  echo ")"; echo
  echo "replace ("
  awk '/^replace \(/{r=1;next} r&&/^\)/{r=0} r&&/staging/{print $1}' $K/go.mod | while read m; do echo "	$m => $m $SV"; done
  echo ")"
} > go.mod
