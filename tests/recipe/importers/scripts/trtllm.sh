#!/usr/bin/env bash
# One node, TensorRT-LLM: what has no option goes into a file that the script writes.
source "$(dirname "$0")/lib/bench_lib.sh"
BATCH=$CONC
[ "$DP_ATTENTION" = true ] && BATCH=$((CONC / 8))
cat > options.yml <<EOF
cuda_graph_config:
  enable_padding: true
  max_batch_size: $BATCH
enable_attention_dp: $DP_ATTENTION
kv_cache_config:
  dtype: fp8
  free_gpu_memory_fraction: 0.8
EOF
if [ "$SPEC_DECODING" = mtp ]; then
cat >> options.yml <<EOF
speculative_config:
  decoding_type: MTP
  num_nextn_predict_layers: 3
EOF
fi
mpirun -n 1 --allow-run-as-root trtllm-serve "$MODEL" --port=$PORT --backend=pytorch --max_batch_size=$BATCH \
  --tp_size=$TP --ep_size=$EP_SIZE --extra_llm_api_options=options.yml > server.log 2>&1 &
wait_for_server_ready
