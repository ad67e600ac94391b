#!/bin/sh
# Fresh random cases of the real implementation against ours.
#
#   test/cel/differential.sh CONFORMANCE_CEL [FIRST_SEED [SEEDS [COUNT]]]
#
# CONFORMANCE_CEL is the built runner. The judge is a Go program: ORACLE names its sources (default ../shared/oracle),
# ORACLE_CEL a built binary. Where neither works the check is skipped, saying so; exit status 77 tells ctest.
set -eu

runner=${1:?usage: differential.sh CONFORMANCE_CEL [FIRST_SEED [SEEDS [COUNT]]]}
first=${2:-1000}
seeds=${3:-1}
count=${4:-300}
sources=${ORACLE:-$(dirname "$0")/../../../shared/oracle}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

oracle=${ORACLE_CEL:-}
if [ -z "$oracle" ]; then
    if ! command -v go >/dev/null 2>&1; then
        echo "skipped: no Go toolchain to build the judge with"
        exit 77
    fi
    if [ ! -d "$sources/cmd/oracle-cel" ]; then
        echo "skipped: no judge in $sources"
        exit 77
    fi
    oracle=$work/oracle-cel
    if ! (cd "$sources" && go build -o "$oracle" ./cmd/oracle-cel) >"$work/build.log" 2>&1; then
        echo "skipped: the judge does not build:"
        tail -3 "$work/build.log"
        exit 77
    fi
fi

failed=0
seed=$first
while [ "$seed" -lt $((first + seeds)) ]; do
    "$oracle" generate -seed "$seed" -count "$count" >"$work/cases.jsonl"
    printf 'seed %s: ' "$seed"
    "$runner" "$work/cases.jsonl" >"$work/report" || failed=1
    tail -1 "$work/report"
    grep -A1 '^FAIL' "$work/report" || true
    seed=$((seed + 1))
done
exit $failed
