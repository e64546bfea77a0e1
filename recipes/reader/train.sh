#!/usr/bin/env bash
# Trains the reader that ships. Run it again after a stop: every stage goes on where it was.
#
#   recipes/reader/train.sh FOLDER      # for data and runs; two to four hours of two cores
#
# Then `python recipes/reader/ship.py FOLDER/4-mean` makes the files that go into the package, and
# `python recipes/reader/calibrate.py FOLDER/data` fits and measures how sure it is.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
export PYTHONPATH="$here/../..${PYTHONPATH:+:$PYTHONPATH}"  # of the package `experiments`
data=$folder/data
common=(--length 4096 --positions paragraph --frozen-words --bf16)

[ -e "$data/test.jsonl" ] || python "$here/prepare.py" "$data"

# The last step of a stage, as a model: where the next begins.
last() {
    [ -e "$2/model.safetensors" ] && return
    mkdir -p "$2"
    newest=$(find "$1/checkpoints" -mindepth 1 -maxdepth 1 | sort -t- -k2 -n | tail -n 1)
    cp "$newest"/{config.json,tokenizer.json,tokenizer_config.json,model.safetensors} "$2"
}

# Statements with a gap first, of which there are as many as one likes: after 8,000 of them, and a thousand questions
# that people wrote, the reader is where it was after fifteen thousand of the latter alone.
longbird finetune ask "$data/1-clozes.jsonl" --validation "$data/1-validation.jsonl" \
    --out "$folder/1-clozes" --model minilm "${common[@]}" \
    --tokens-per-batch 768 --steps 5800 --learning-rate 1e-4 --warmup 0.03 --evaluate-every 5000
last "$folder/1-clozes" "$folder/1-last"

# Then a few paragraphs at once, in small batches.
longbird finetune ask "$data"/2-{paragraphs,hotpot,articles}.jsonl --validation "$data/validation.jsonl" \
    --out "$folder/2-several" --model "$folder/1-last" "${common[@]}" \
    --tokens-per-batch 1024 --epochs 1 --learning-rate 1e-4 --warmup 0.03 --evaluate-every 5000
last "$folder/2-several" "$folder/2-last"

# Then whole documents, statements in them among the questions.
longbird finetune ask "$data"/3-{paragraphs,hotpot,articles,clozes}.jsonl --validation "$data/validation.jsonl" \
    --out "$folder/3-documents" --model "$folder/2-last" "${common[@]}" \
    --tokens-per-batch 2048 --epochs 1 --learning-rate 8e-5 --warmup 0.03 --evaluate-every 1500
last "$folder/3-documents" "$folder/3-last"

# Whole documents cost some of what paragraphs gave; the mean of both weights has most of each.
python "$here/mean.py" "$folder/2-last" "$folder/3-last" "$folder/4-mean"
