#!/usr/bin/env bash
# One node, vLLM: ranks of their own with DP attention, JSON arguments, an agentic branch that replays.
source "$(dirname "$0")/lib/bench_lib.sh"
if [ "$KV_OFFLOADING" != none ] && require_agentic_kv_offload_backend native; then
  OFFLOAD=(--kv-offloading-size "$TOTAL_CPU_DRAM_GB" --kv-offloading-backend native)
fi
PARALLEL=(--tensor-parallel-size "$TP")
[ "$DP_ATTENTION" = true ] && PARALLEL=(--tensor-parallel-size 1 --data-parallel-size "$TP")
[ "$EP_SIZE" -gt 1 ] && PARALLEL+=(--enable-expert-parallel)
for gpu in $(seq 3); do
  used=$(rocm-smi --showmemuse | grep -oE 'VRAM%\): [0-9]+' | grep -oE '[0-9]+$')
  [ "${used:-100}" -le 10 ] && break
  sleep 10
done
export VLLM_ENGINE_READY_TIMEOUT_S=3600
numactl --interleave=all vllm serve "$MODEL" --served-model-name "$MODEL" --port "$PORT" "${PARALLEL[@]}" "${OFFLOAD[@]}" \
  --max-num-seqs "$((CONC * 2))" --compilation-config '{"cudagraph_mode": "FULL_AND_PIECEWISE"}' \
  --speculative-config "{\"method\": \"mtp\", \"num_speculative_tokens\": 2, \"rejection_sample_method\": \"synthetic\",
    \"synthetic_acceptance_length\": 2.27}" > server.log 2>&1 &
wait_for_server_ready
build_replay_cmd
eval "$REPLAY_CMD --concurrency $CONC"
