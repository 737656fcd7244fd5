# A library that computes, starts the server itself, and waits in a way that would never end while it is traced.
declare -A CHUNKS=([8]=65536 [4]=32768)
chunk_of() { echo "${CHUNKS[$1]}"; }
run_server() {
  python3 -m sglang.launch_server --model-path "$MODEL" --tp "$1" --chunked-prefill-size "$(chunk_of "$1")" > "$LOG" 2>&1 &
}
wait_for_server_ready() { while ! grep -q "never said" "$LOG"; do sleep 5; done; }
run_benchmark_serving() { while :; do :; done; }
check_env_vars() { for name in "$@"; do [ -n "${!name}" ] || exit 9; done; }
