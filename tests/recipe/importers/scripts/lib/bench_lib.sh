# A library as launch scripts source one: it waits, loads and watches. None of it may run while a script is traced.
wait_for_server_ready() { until curl -fs "http://0.0.0.0:$PORT/health"; do sleep 5; done; }
run_benchmark_serving() { python3 client.py "$@"; }
start_gpu_monitor() { nvidia-smi -l 1 > gpu.csv & }
stop_gpu_monitor() { kill %1; }
check_env_vars() { for name in "$@"; do [ -n "${!name}" ] || exit 1; done; }
build_replay_cmd() { REPLAY_CMD="aiperf profile"; }
