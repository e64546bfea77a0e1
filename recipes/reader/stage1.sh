#!/usr/bin/env bash
# Trains stage 1 of the reader: short paragraphs, from e5-small. Run it again after a stop: it
# continues from its last checkpoint.
#
#   recipes/reader/stage1.sh FOLDER      # for data and runs; about five hours of one core
#
# Needs onnx and onnxruntime besides longbird[train], and the repository beside it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
export PYTHONPATH="$here/../..${PYTHONPATH:+:$PYTHONPATH}"  # of the package `experiments`

[ -e "$folder/e5/model.safetensors" ] || python "$here/e5.py" "$folder/e5"
if [ ! -e "$folder/data/1-validation.jsonl" ]; then
    python "$here/data.py" "$folder/sources"
    python "$here/mixture.py" "$folder/sources" "$folder/data"
fi

# bfloat16 is faster only where the processor multiplies it; elsewhere it is emulated.
precision=()
if grep -qE -m1 'amx_bf16|avx512_bf16' /proc/cpuinfo; then precision=(--bf16); fi

echo $$ > "$folder/stage1.pid"  # of the training: `kill -INT` stops it after a step
exec longbird finetune ask "$folder/data/1-train.jsonl" --validation "$folder/data/1-validation.jsonl" \
    --out "$folder/1-short" --model "$folder/e5" --length 4096 --positions paragraph --frozen-words \
    "${precision[@]}" --tokens-per-batch 3072 --epochs 1 --learning-rate 1.5e-4 --warmup 0.05 \
    --evaluate-every 2400 --save-every 540
