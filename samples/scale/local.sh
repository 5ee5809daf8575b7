#!/bin/bash
# Runs a list as eight processes on this machine with GNU parallel, and merges their caches.
#
# Usage: local.sh FOLDER [FLAG]...      FOLDER/lists/* are the lists, FLAGs those of `prefetch run`
#
# A shard is tried three times. SHARDS and JOBS change the numbers of shards and of processes. After
# an interruption the same command continues.
set -euo pipefail
shards=$(dirname "$(realpath "${BASH_SOURCE[0]}")")/shards
folder=${1:?usage: local.sh FOLDER [FLAG]...}
shift
count=${SHARDS:-8}

"$shards" plan "$folder" "$count"
# The exit status is the number of failed shards; the merge names them.
failed=0
parallel --will-cite --quote --jobs "${JOBS:-8}" --retries 3 --line-buffer --tagstring 'shard {}' \
    --termseq TERM,20000,KILL,25 \
    "$shards" run "$folder" '{}' "$@" ::: $(seq 0 $((count - 1))) || failed=$?
if ((failed > 0)); then
    printf 'local.sh: %s shards failed\n' "$failed" >&2
fi
"$shards" merge "$folder"
