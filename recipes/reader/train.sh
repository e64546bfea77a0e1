#!/usr/bin/env bash
# Trains the reader that ships. Run it again after a stop: every stage goes on where it was.
#
#   recipes/reader/train.sh FOLDER      # for data and runs; about 35 minutes of two idle cores
#
# Then `python recipes/reader/ship.py FOLDER/1-paragraphs` makes the files that go into the package.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
data=$folder/data

[ -e "$data/squad-test.json" ] || python "$here/prepare.py" "$data"

# Short paragraphs first: with whole documents from the start nothing is learned for hours.
longbird finetune ask "$data/squad-train.jsonl" --validation "$data/squad-validation.jsonl" \
    --out "$folder/1-paragraphs" --model minilm --length 4096 --positions paragraph --frozen-words --bf16 \
    --tokens-per-batch 2560 --epochs 2.5 --learning-rate 1.5e-4 --warmup 0.06 --evaluate-every 300
