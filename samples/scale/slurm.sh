#!/bin/bash
# Runs a list as an array job of Slurm, and merges the caches in a dependent job.
#
# Usage: slurm.sh FOLDER [INDEXES [FLAG]...]      for example slurm.sh /shared/images 3,17-19
#
# Run it on a login node. FOLDER is on a shared file system and has the lists in FOLDER/lists.
# INDEXES are the shards to run, all by default; FLAGs are those of `prefetch run`. SHARDS is the
# number of shards. A shard is tried three times. If shards are missing in the end, the log of the
# merge has their indexes, and the same command with these runs them.
#
# The cluster's MaxArraySize (1001 by default) limits SHARDS. Add partition and account below.
#SBATCH --job-name=prefetch
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=1G
#SBATCH --time=1-00:00:00
#SBATCH --requeue
#SBATCH --signal=TERM@60
#SBATCH --open-mode=append
set -euo pipefail

# Slurm runs a copy of this file, so the jobs get the path of the original's folder.
if [[ ${1-} != --job ]]; then
    folder=$(realpath "${1:?usage: slurm.sh FOLDER [INDEXES [FLAG]...]}")
    count=${SHARDS:-8}
    indexes=${2:-0-$((count - 1))}
    flags=("${@:3}")
    here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
    submit=(sbatch --parsable --export=ALL --chdir="$folder")
    job=("$here/slurm.sh" --job "$here/shards")

    plan=$("${submit[@]}" --output=plan-%j.log "${job[@]}" plan "$folder" "$count")
    array=$("${submit[@]}" --array="$indexes" --dependency="afterok:$plan" \
        --kill-on-invalid-dep=yes --output=shard-%a-%A.log \
        "${job[@]}" run "$folder" auto "${flags[@]}")
    # afterany: after failed shards too, so that the merge can name them.
    merge=$("${submit[@]}" --dependency="afterany:$array" --output=merge-%j.log \
        "${job[@]}" merge "$folder")
    printf 'plan %s\narray %s\nmerge %s\n' "$plan" "$array" "$merge"
    exit
fi

shards=$2
shift 2
# `srun` makes it a step, to which Slurm sends SIGTERM a minute before the time limit. Slurm itself
# repeats the tasks of a failed node (--requeue).
for attempt in 1 2 3; do
    status=0
    srun --input=none --kill-on-bad-exit=1 "$shards" "$@" || status=$?
    # Wrong usage stays wrong. 143: Slurm ends the job.
    case $1:$status in
        run:0 | run:64 | run:130 | run:143 | plan:* | merge:*) break ;;
    esac
    printf 'slurm.sh: attempt %s ended with status %s\n' "$attempt" "$status" >&2
done
exit "$status"
