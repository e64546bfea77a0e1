#!/usr/bin/env bash
# Trains the models of DNA that ship, measures them and puts them into the package. Run it again after a stop:
# every stage goes on where it was.
#
#   recipes/dna/train.sh FOLDER      # for data and runs
#
# STEPS_SHORT, STEPS_LONG and EPOCHS (of promoters) in the environment make the stages shorter or longer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
export PYTHONPATH="$here/../..${PYTHONPATH:+:$PYTHONPATH}"  # of the package `experiments`
data=$folder/data
steps_short=${STEPS_SHORT:-24000}
steps_long=${STEPS_LONG:-2000}
epochs=${EPOCHS:-4}

[ -e "$data/validation.txt" ] || python "$here/prepare.py" "$data"

genomes=("$data"/{coli,theta,aureus,worm,fly}.fa "$data"/{coli,aureus}-{2,3,4}.fa "$data/theta-2.fa")
chosen_by=()
while read -r name; do chosen_by+=(--validation-on "$name"); done < "$data/validation.txt"

# Windows of 512 bases first: most of what there is to learn lies within a hundred bases.
longbird dna pretrain "${genomes[@]}" "${chosen_by[@]}" --model "$data/start" --out "$folder/1-short" \
    --length 512 --mask 0.3 --tokens-per-batch 4096 --steps "$steps_short" --learning-rate 2e-3 --schedule cosine \
    --warmup 0.02 --evaluate-every 2000 --bf16

# Then whole windows of 4,096.
longbird dna pretrain "${genomes[@]}" "${chosen_by[@]}" --model "$folder/1-short" --out "$folder/2-long" \
    --length 4096 --tokens-per-batch 8192 --steps "$steps_long" --learning-rate 5e-4 --schedule cosine \
    --warmup 0.02 --evaluate-every 1000 --bf16

# Promoters, from that and, as the twin that every figure stands beside, from the weights it began with.
for start in "$folder/2-long" "$data/start"; do
    out=$folder/3-promoter
    [ "$start" = "$data/start" ] && out=$folder/3-twin
    longbird dna finetune promoter "$data/genome.fa" "$data/starts.bed" --model "$start" --out "$out" \
        --upstream 60 --downstream 20 --negatives random --per-positive 11 --circular all \
        --validation-on "$(cat "$data/starts-validation.txt")" --test-on "$(cat "$data/starts-test.txt")" \
        --tokens-per-batch 4096 --epochs "$epochs" --learning-rate 1e-3
done

python "$here/ship.py" "$folder"
