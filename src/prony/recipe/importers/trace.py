"""A launch script run where it can do no harm, with recorders in the place of everything that it would start.

It gets namespaces of its own (mounts, processes, no network) and a root of little more than /usr, read-only; it is
`nobody` or the user who traces. What it calls is recorded, one file per call, and answers nothing.
"""

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.base.errors import LaunchError

SERVERS = ("vllm", "sglang", "trtllm-serve", "atom", "python", "python3", "mpirun", "dynamo")
_TOOLS = (
    *("curl", "wget", "hf", "huggingface-cli", "pip", "pip3", "git", "docker", "srun", "salloc", "sbatch", "enroot"),
    *("nvidia-smi", "amd-smi", "apt-get", "apt", "ray", "sleep", "sudo", "aiperf", "ss", "lsof", "fuser", "nvcc"),
)
_WRAPPERS = ("numactl", "nohup", "taskset", "setsid", "stdbuf", "nice")
_PROCESSES, _CPU_S, _FILE_BLOCKS = 200, 60, 32_768
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
_SERVER = _SHIM + 'case " $* " in *" -c "*|*" - "*) exit 0;; esac\n/usr/bin/sleep 1\nexit 0\n'
_ROCM = _SHIM + "echo 'GPU[0] : GPU Memory Allocated (VRAM%): 0'\n"
_WRAPPER = (
    '#!/bin/bash\nwhile [ $# -gt 0 ]; do case "$1" in -*|*=*) shift;; [0-9]*) shift;; *) exec "$@";; esac; done\n'
)
# Functions of a script's own library are replaced by recorders once it has been read. Those that answer something that
# a launch depends on answer as the reference's do (spec of its library: which arms offload, context of evals).
_PRELUDE = r"""
. /shims/.record
command_not_found_handle() { record "$@"; return 0; }
__prony_library() {
  local name
  for name in $(compgen -A function); do
    case "$name" in
      record|source|command_not_found_handle|__prony_*) ;;
      *) eval "$name() { record $name \"\$@\"; return 0; }";;
    esac
  done
  check_env_vars() { local one; for one in "$@"; do [ -n "${!one:-}" ] || echo "unset: $one" >&2; done; return 0; }
  require_agentic_kv_offload_none() { return 0; }
  require_agentic_kv_offload_backend() { [ "${KV_OFFLOADING:-none}" = dram ] || return 1; }
  compute_eval_context_length() { echo "${2:-$MAX_MODEL_LEN}"; }
  setup_eval_context() { export EVAL_MAX_MODEL_LEN="$MAX_MODEL_LEN"; }
}
source() { [ -r "$1" ] && builtin source "$@"; __prony_library; return 0; }
__prony_library
"""
_SETUP = r"""
set -e
root=$1; repo=$2; trace=$3; shims=$4
mount --make-rprivate / 2>/dev/null || true
mount -t tmpfs -o size=64m,mode=755 tmpfs "$root"
mkdir -p "$root"/{usr,proc,dev,tmp,etc,repo,trace,shims,workspace,root}
chmod 777 "$root/tmp" "$root/workspace"
mount --rbind /usr "$root/usr"; mount -o remount,bind,ro "$root/usr" 2>/dev/null || true
for name in bin sbin lib lib32 lib64; do
  if [ -L "/$name" ]; then ln -s "$(readlink "/$name")" "$root/$name"
  elif [ -d "/$name" ]; then mkdir -p "$root/$name"; mount --rbind "/$name" "$root/$name"; fi
done
mount --bind "$repo" "$root/repo"; mount -o remount,bind,ro "$root/repo" 2>/dev/null || true
mount --bind "$shims" "$root/shims"; mount --bind "$trace" "$root/trace"
mount -t proc proc "$root/proc" 2>/dev/null || true
for name in null zero random urandom; do touch "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
ln -s /proc/self/fd "$root/dev/fd"
echo 'nobody:x:65534:65534::/tmp:/bin/bash' > "$root/etc/passwd"
shift 4
exec "$@"
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
    with tempfile.TemporaryDirectory(prefix="prony-trace-") as place:
        folder = Path(place)
        for name in ("root", "trace", "shims"):
            (folder / name).mkdir()
        (folder / "trace").chmod(0o777)
        folder.chmod(0o755)
        _write_shims(folder / "shims")
        code, said = _run(folder, script.resolve(), root.resolve(), env, limit_s)
        if code == _NO_NAMESPACES and "unshare" in said:
            raise LaunchError(
                f"{script}: cannot be traced: {said.strip().splitlines()[-1]}",
                fix="trace as root, or where user namespaces are allowed (sysctl kernel.unprivileged_userns_clone=1)",
            )
        return Trace(_calls(folder / "trace", env), code, said[-2000:])


_NO_NAMESPACES = 1


def _run(folder: Path, script: Path, root: Path, env: Mapping[str, str], limit_s: float) -> tuple[int | None, str]:
    if shutil.which("unshare") is None:
        raise LaunchError("unshare is not there", fix="install util-linux")
    inside = f"/repo/{script.relative_to(root)}"
    given = {
        **env,
        "PATH": "/shims:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp",
    }
    plain = [f"{name}={value}" for name, value in given.items()]
    own = ["--user", "--map-root-user"] if os.geteuid() else []
    drop = [] if os.geteuid() else ["--userspec=65534:65534"]
    limits = f"ulimit -u {_PROCESSES} -t {_CPU_S} -f {_FILE_BLOCKS} -c 0 2>/dev/null; cd /workspace"
    limits += f"; BASH_ENV=/shims/.prelude exec bash {shlex.quote(inside)}"
    command = [
        *("unshare", *own, "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", _SETUP, "setup"),
        *(str(folder / "root"), str(root), str(folder / "trace"), str(folder / "shims")),
        *("chroot", *drop, str(folder / "root"), "env", "-i", *plain, "bash", "--noprofile", "--norc", "-c", limits),
    ]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        said, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        return None, said.decode(errors="replace")
    return process.returncode, said.decode(errors="replace")


def _write_shims(folder: Path) -> None:
    texts = {
        ".record": _RECORD.replace("__BYTES__", str(_MOST_FILE_BYTES)),
        ".prelude": _PRELUDE,
        "rocm-smi": _ROCM,
        **dict.fromkeys(_TOOLS, _SHIM),
        **dict.fromkeys(SERVERS, _SERVER),
        **dict.fromkeys(_WRAPPERS, _WRAPPER),
    }
    for name, text in texts.items():
        path = folder / name
        path.write_text(text)
        path.chmod(0o755)


def _calls(folder: Path, given: Mapping[str, str]) -> tuple[Call, ...]:
    """Read the recorded calls in the order of their times; what was exported is what differs from what was given."""
    calls = []
    for path in sorted(folder.glob("*.argv")):
        words = tuple(word.decode(errors="replace") for word in path.read_bytes().split(b"\0")[:-1])
        env = _pairs(path.with_suffix(".env"))
        exported = {name: value for name, value in env.items() if given.get(name) != value and name not in _OWN}
        calls.append(Call(words, exported, _files(path.with_suffix(".files"))))
    return tuple(calls)


_OWN = frozenset({"PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "BASH_ENV"})


def _pairs(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    items = path.read_bytes().decode(errors="replace").split("\0")
    return dict(item.split("=", 1) for item in items if "=" in item and not item.startswith("BASH_FUNC_"))


def _files(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    parts: Sequence[str] = path.read_bytes().decode(errors="replace").split("\0")
    return dict(zip(parts[::2], parts[1::2], strict=False))
