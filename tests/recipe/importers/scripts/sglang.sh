#!/usr/bin/env bash
# One node, SGLang: sizes from the point, another chunk with DP attention, drafting in a branch.
source "$(dirname "$0")/lib/bench_lib.sh"
check_env_vars MODEL TP CONC ISL OSL EP_SIZE DP_ATTENTION
hf download "$MODEL"
export SGLANG_USE_AITER=1
CHUNK=32768
EXTRA=(--ep-size "$EP_SIZE")
if [ "$DP_ATTENTION" = "true" ]; then
  EXTRA+=(--dp "$TP" --enable-dp-attention)
  export GPU_MAX_HW_QUEUES=5
  CHUNK=65536
fi
if [[ "$SPEC_DECODING" == mtp ]]; then
  EXTRA+=(--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4)
fi
if [ "$CONC" -ge 64 ]; then MEM=0.85; else MEM=0.8; fi
start_gpu_monitor
set -x
python3 -m sglang.launch_server --model-path "$MODEL" --host=0.0.0.0 --port "$PORT" --trust-remote-code \
  --tensor-parallel-size=$TP --mem-fraction-static $MEM --max-running-requests "$CONC" --cuda-graph-max-bs $((2 * CONC)) \
  --chunked-prefill-size $CHUNK --context-length $((ISL + OSL + 256)) --disable-radix-cache "${EXTRA[@]}" > server.log 2>&1 &
SERVER_PID=$!
wait_for_server_ready --port "$PORT" --server-pid "$SERVER_PID"
run_benchmark_serving --model "$MODEL" --num-prompts "$((CONC * 10))"
stop_gpu_monitor
