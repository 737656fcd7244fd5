#!/usr/bin/env bash
# As careful scripts are written: strict options, a library read inside a function, sizes that the library computes, a
# look at devices and at a snapshot, small computations in Python, waiting for a line of the server's log.
set -eEuo pipefail
own_step() { export OWN_STEP=ran; }
main() {
  . "$(dirname "$0")/lib/strict_lib.sh"
  check_env_vars MODEL TP NOT_GIVEN
  LOG=/workspace/server.log
  own_step
  export GPUS=$(nvidia-smi -L | wc -l)
  export SUM=$(python3 -c 'print(3 + 4)') MORE=$(python3 - <<'PYTHON'
print(5)
PYTHON
)
  python3 -c 'import a_package_of_the_image'
  SNAPSHOT=$(hf download "$MODEL")
  [ -f "$SNAPSHOT/config.json" ]
  run_server "$TP"
  until grep -q "Application startup complete" "$LOG"; do sleep 5; done
  wait_for_server_ready
  run_benchmark_serving --max-concurrency "$CONC"
}
main
