"""A launch script run sealed in, with recorders in the place of everything that it would start.

What it calls is recorded, one file per call, and answers nothing.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prony.recipe.importers.sandbox import Limits, confined

_SERVERS = ("vllm", "sglang", "trtllm-serve", "atom", "mpirun", "dynamo")
_TOOLS = (
    *("wget", "pip", "pip3", "uv", "git", "docker", "podman", "srun", "salloc", "sbatch", "enroot", "scontrol"),
    *("amd-smi", "apt-get", "apt", "ray", "sudo", "aiperf", "ss", "lsof", "fuser", "nvcc", "nc", "ssh", "curl"),
)
_WRAPPERS = ("numactl", "nohup", "taskset", "setsid", "stdbuf", "nice")
_MOST_FILE_BYTES = 1 << 20

_RECORD = r"""
record() {
  local out="/trace/$EPOCHREALTIME-$$-$BASHPID"
  { printf '%s\0' "$@"; } > "$out.argv.part"
  env -0 > "$out.env"
  local word file
  for word in "$@"; do
    file="${word#*=}"
    if [ -f "$file" ] && [ -r "$file" ] && [ "$(stat -c %s "$file")" -lt __BYTES__ ]; then
      { printf '%s\0' "$file"; cat "$file"; printf '\0'; } >> "$out.files"
    fi
  done
  mv "$out.argv.part" "$out.argv"
}
"""
_SHIM = '#!/bin/bash\nunset BASH_ENV\n. /shims/.record\nrecord "${0##*/}" "$@"\n'
# What servers say when they are up, for scripts that look for it in the log.
_UP = (
    "echo 'INFO:     Application startup complete.'\n"
    "echo 'INFO:     Uvicorn running on http://0.0.0.0:8888 (Press CTRL+C to quit)'\n"
    "echo 'The server is fired up and ready to roll!'\n"
    "/usr/bin/sleep 0.3\nexit 0\n"
)
_SERVER = _SHIM + _UP
# Small computations run: they can do no more harm than the script. What needs packages that are not there says nothing.
_PYTHON = (
    '#!/bin/bash\nunset BASH_ENV\ncase "${1:--} ${2:-}" in "-c "*|"- "*|"-m json.tool") '
    '/usr/bin/python3 "$@" 2>/dev/null; exit 0;; esac\n. /shims/.record\nrecord "${0##*/}" "$@"\n' + _UP
)
_ROCM = _SHIM + 'for gpu in 0 1 2 3 4 5 6 7; do echo "GPU[$gpu] : GPU Memory Allocated (VRAM%): 0"; done\n'
_NVIDIA = _SHIM + (
    'for gpu in 0 1 2 3 4 5 6 7; do case " $* " in\n'
    '  *" -L "*) echo "GPU $gpu: recorded (UUID: GPU-$gpu)";; *query*) echo 0;; esac; done\n'
)
_HUB = _SHIM + 'mkdir -p /tmp/hub/snapshot; echo "{}" > /tmp/hub/snapshot/config.json; echo /tmp/hub/snapshot\n'
_SLEEP = "#!/bin/bash\nunset BASH_ENV\nexec /usr/bin/sleep 0.02\n"
_WRAPPER = (
    '#!/bin/bash\nwhile [ $# -gt 0 ]; do case "$1" in -*|*=*) shift;; [0-9]*) shift;; *) exec "$@";; esac; done\n'
)
# Once a script has read a library, those functions of it that act (wait, load, watch, install …) are replaced by
# recorders; those that compute run, and those that start a server. What a launch depends on is there without a library
# too, and answers as the reference's does (which arms offload, the context of evals).
_PRELUDE = r"""
. /shims/.record
command_not_found_handle() { record "$@"; return 0; }
check_env_vars() { local one; for one in "$@"; do [ -n "${!one:-}" ] || echo "unset: $one" >&2; done; return 0; }
require_agentic_kv_offload_none() { [ "${KV_OFFLOADING:-none}" = none ]; }
require_agentic_kv_offload_backend() {
  [ "${KV_OFFLOADING:-none}" != none ] || return 1
  [ "${KV_OFFLOAD_BACKEND:-}" = "$1" ] || { echo "KV_OFFLOAD_BACKEND is not $1" >&2; exit 1; }
}
compute_eval_context_length() { echo "${2:-${MAX_MODEL_LEN:-0}}"; }
setup_eval_context() { export EVAL_MAX_MODEL_LEN="${MAX_MODEL_LEN:-0}"; }
__prony_library() {
  local name flags=$- info
  shopt -s extdebug
  for name in $(compgen -A function); do
    info=$(declare -F "$name"); info=${info#* * }
    case "$info" in "$0"|/shims/*|environment) continue;; esac
    case "$name" in
      record|__prony_*) continue;;
      check_env_vars) check_env_vars() { record check_env_vars "$@"; }; continue;;
      wait_*|run_*|start_*|stop_*|kill_*|install_*|ensure_*|setup_*|download_*|monitor*|*_monitor|cleanup*|collect_*) ;;
      write_*|upload_*|append_*|stage_*|move_*|copy_*|build_replay*|*_client|patch_*|apply_*|profile_*|warm*) ;;
      *) continue;;
    esac
    case "$(declare -f "$name")" in
      *launch_server*|*"vllm serve"*|*"sglang serve"*|*trtllm-serve*|*openai_server*|*api_server*) ;;
      *) eval "$name() { record $name \"\$@\"; return 0; }";;
    esac
  done
  shopt -u extdebug
  set -T; case "$flags" in *E*) set -E;; esac
}
trap 'case "$BASH_COMMAND" in "source "*|". "*|"builtin source"*) __prony_library;; esac' RETURN
set -T
"""


@dataclass(frozen=True)
class Call:
    """One thing that a script started: its words, what it exported, and the small files that the words name."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, str]


@dataclass(frozen=True)
class Trace:
    """All calls in order, how the script ended (None: at its time limit), and the end of what it said."""

    calls: tuple[Call, ...]
    code: int | None
    said: str


def trace(script: Path, root: Path, env: Mapping[str, str], limit_s: float) -> Trace:
    """Run a script below `root`, the folder that it may read. Raises LaunchError where there are no namespaces."""
    given = {**env, "PATH": f"/shims:{_PATH}", "HOME": "/tmp", "BASH_ENV": "/shims/.prelude"}
    inside = f"/repo/{script.resolve().relative_to(root.resolve())}"
    with tempfile.TemporaryDirectory(prefix="prony-trace-") as place:
        shims = Path(place) / "shims"
        shims.mkdir(mode=0o755)
        _write_shims(shims)
        ended = confined(
            ("bash", "--noprofile", "--norc", inside),
            given,
            {"/repo": root, "/shims": shims},
            Limits(wall_s=limit_s),
        )
    return Trace(_calls(ended.files, env), ended.code, ended.said[-2000:])


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _write_shims(folder: Path) -> None:
    texts = {
        ".record": _RECORD.replace("__BYTES__", str(_MOST_FILE_BYTES)),
        ".prelude": _PRELUDE,
        "rocm-smi": _ROCM,
        "nvidia-smi": _NVIDIA,
        "sleep": _SLEEP,
        **dict.fromkeys(_TOOLS, _SHIM),
        **dict.fromkeys(_SERVERS, _SERVER),
        **dict.fromkeys(("python", "python3"), _PYTHON),
        **dict.fromkeys(("hf", "huggingface-cli"), _HUB),
        **dict.fromkeys(_WRAPPERS, _WRAPPER),
    }
    for name, text in texts.items():
        path = folder / name
        path.write_text(text)
        path.chmod(0o755)


def _calls(traced: Mapping[str, bytes], given: Mapping[str, str]) -> tuple[Call, ...]:
    """Read the recorded calls in the order of their times; what was exported is what differs from what was given."""
    calls = []
    for name in sorted(name for name in traced if name.endswith(".argv")):
        stem = name.removesuffix(".argv")
        env = dict(item.split("=", 1) for item in _items(traced, f"{stem}.env") if "=" in item)
        exported = {
            key: value
            for key, value in env.items()
            if given.get(key) != value and key not in _OWN and not key.startswith("BASH_FUNC_")
        }
        files = _items(traced, f"{stem}.files")
        words = tuple(_items(traced, name))
        if words:
            calls.append(Call(words, exported, dict(zip(files[::2], files[1::2], strict=False))))
    return tuple(calls)


_OWN = frozenset({"PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "BASH_ENV"})


def _items(traced: Mapping[str, bytes], name: str) -> list[str]:
    """Return what a recorder wrote: texts that end with NUL each."""
    return [item.decode(errors="replace") for item in traced.get(name, b"").split(b"\0")[:-1]]
