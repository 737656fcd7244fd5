"""A program run where it can do no harm, whatever it tries: what is not known to be kind is traced here.

It has namespaces of its own (mounts, processes, no network), a root that holds /usr and a few folders, all read-only,
beside a small file system in memory that goes with it. It has no privileges, not even inside, and cannot gain any. What
it wrote below /trace comes back as plain files, through the first process of the namespaces: nothing of it ever lies
on the machine's own disk, so that links and pipes that it plants lead nowhere.
"""

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.base.errors import LaunchError

_LATE_S = 20.0
_FIRST_USER = 1_000_000_000
_ENDED = "end/"
_TRACED = "trace/"
_KILLED = 137


@dataclass(frozen=True)
class Limits:
    """What a program may use. memory and cpu: of one process, memory in bytes; disk: bytes that it may write.

    linger_s: how long what it leaves in the background may go on.
    """

    wall_s: float = 30.0
    linger_s: int = 3
    cpu_s: int = 60
    processes: int = 200
    memory: int = 4 << 30
    disk: int = 64 << 20
    files: int = 20_000


@dataclass(frozen=True)
class Ended:
    """How a program ended (None: at its time limit), the end of what it said, and its files below /trace by name."""

    code: int | None
    said: str
    files: Mapping[str, bytes]


# Runs as the first process of the namespaces. `pivot_root` and not `chroot`: the old root is gone, so there is nothing
# to climb back to. The program is ended with all that it started before its files are read.
_SETUP = r"""
set -eo pipefail
PATH=/usr/sbin:/usr/bin:/sbin:/bin
root=$1 disk=$2 inodes=$3 wall=$4 user=$5 linger=$6; shift 6
mounts=(); copies=256m; while [ "$1" != -- ]; do mounts+=("$1" "$2"); shift 2; done; shift
mount --make-rprivate /
mount -t tmpfs -o size=16m,mode=755,nosuid tmpfs "$root"
mkdir -p "$root"/{usr,proc,dev,tmp,etc,trace,workspace,end,old}
for name in workspace trace; do
  mount -t tmpfs -o "size=$disk,nr_inodes=$inodes,mode=1777,nosuid,nodev" tmpfs "$root/$name"
done
mkdir -m 1777 "$root/workspace/.tmp"; mount --bind "$root/workspace/.tmp" "$root/tmp"
mount -t tmpfs -o size=16m,mode=700,nosuid,nodev tmpfs "$root/end"  # a full disk must not hide how it ended
seal() { mkdir -p "$2"; mount --bind "$1" "$2"; mount -o remount,bind,ro,nosuid "$2"; }
seal /usr "$root/usr"
for name in bin sbin lib lib32 lib64; do
  if [ -L "/$name" ]; then ln -s "$(readlink "/$name")" "$root/$name"
  elif [ -d "/$name" ]; then seal "/$name" "$root/$name"; fi
done
for name in alternatives ld.so.cache; do
  if [ -d "/etc/$name" ]; then seal "/etc/$name" "$root/etc/$name"
  elif [ -f "/etc/$name" ]; then cp "/etc/$name" "$root/etc/$name"; fi
done
# A folder that only root may read is copied, as what runs here is somebody else.
copy() {
  mkdir -p "$2"; mount -t tmpfs -o "size=$copies,mode=755,nosuid,nodev" tmpfs "$2"
  (cd "$1" && tar --create --exclude=./.git --file=- .) | tar --extract --file=- --no-same-owner -C "$2"
  chmod -R a+rX "$2"; mount -o remount,ro "$2"
}
for ((i = 0; i < ${#mounts[@]}; i += 2)); do
  case "$(stat -c %A "${mounts[i]}")" in
    d??????r?[xt]) seal "${mounts[i]}" "$root${mounts[i+1]}";;
    *) if [ "$user" = 0 ]; then seal "${mounts[i]}" "$root${mounts[i+1]}"
       else copy "${mounts[i]}" "$root${mounts[i+1]}"; fi;;
  esac
done
for name in null zero random urandom; do touch "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
ln -s /proc/self/fd "$root/dev/fd"; ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"; ln -s /proc/self/fd/2 "$root/dev/stderr"
echo "traced:x:$user:$user::/tmp:/bin/bash" > "$root/etc/passwd"; echo "127.0.0.1 localhost" > "$root/etc/hosts"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc" 2>/dev/null || true
# Sealed too: a program that is this very user could change what the first process runs at the end.
mount -o remount,bind,ro,nosuid "$root"
cd "$root"; pivot_root . old; cd /; umount -l old
exec 4>&1 >/dev/null 2>&1 </dev/null
identity=(); [ "$user" = 0 ] || identity=(--reuid "$user" --regid "$user" --clear-groups)
set +e
( exec 4>&- >/end/said 2>&1; cd /workspace || exit 1
  exec timeout -s KILL "$wall" setpriv "${identity[@]}" --no-new-privs --bounding-set=-all --inh-caps=-all \
    --ambient-caps=-all "$@" )
code=$?
# What it left in the background may end by itself for a while: it may still be writing.
for ((i = 0; i < 10 * linger && code != 137; i++)); do
  running=(/proc/[0-9]*); [ "${#running[@]}" -gt 1 ] || break
  sleep 0.1
done
# `timeout` is killed with its child when time is up: 137; 124 is never its answer to a KILL.
kill -9 -1; wait
said=; [ -f /end/said ] && [ ! -L /end/said ] && said=$(tail -c 4000 /end/said | tr -d '\000')
find /end -mindepth 1 -delete  # what it may have put there
printf '%s' "$said" > /end/said; echo "$code" > /end/code
exec tar --create --file=- --format=gnu -C / end trace >&4
"""


def confined(
    argv: Sequence[str], env: Mapping[str, str], mounts: Mapping[str, Path], limits: Limits | None = None
) -> Ended:
    """Run a program. mounts: folders that it may read, by where they are for it; it starts in /workspace.

    Raises LaunchError where there are no namespaces.
    """
    limits = limits or Limits()
    _check_tools()
    with tempfile.TemporaryDirectory(prefix="prony-root-") as root:  # where the root is mounted, for it alone
        process = _run(_command(argv, env, mounts, limits, root), limits)
    if process is None:
        return Ended(None, "", {})
    if process.returncode != 0:
        said = process.stderr.decode(errors="replace").strip().splitlines() or ["nothing was said"]
        raise LaunchError(
            f"cannot run {argv[0]} in namespaces of its own: {said[-1]}",
            fix="run as root, or where user namespaces are allowed (sysctl kernel.unprivileged_userns_clone=1)",
        )
    return _ended(process.stdout)


def _command(
    argv: Sequence[str], env: Mapping[str, str], mounts: Mapping[str, Path], limits: Limits, root: str
) -> list[str]:
    with_root = os.geteuid() == 0
    user = _FIRST_USER + os.getpid() if with_root else 0  # a user of its own: limits count processes by user
    own = [] if with_root else ["--user", "--map-root-user"]
    bound = [word for inside, outside in mounts.items() for word in (str(outside.resolve()), inside)]
    ulimits = [f"--nproc={limits.processes}", f"--cpu={limits.cpu_s}", f"--as={limits.memory}", "--core=0"]
    plain = [f"{name}={value}" for name, value in env.items()]
    return [
        *("unshare", *own, "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child"),
        *("bash", "-c", _SETUP, "setup", root, str(limits.disk), str(limits.files), f"{limits.wall_s:g}", str(user)),
        str(limits.linger_s),
        *(*bound, "--", "prlimit", *ulimits, "env", "-i", *plain, *argv),
    ]


def _run(command: Sequence[str], limits: Limits) -> subprocess.CompletedProcess[bytes] | None:
    """Run it to its end; what it prints is bounded by the file systems that it has. None when it does not end."""
    wall_s = limits.wall_s + _LATE_S
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=wall_s, check=False)
    except subprocess.TimeoutExpired:
        return None


def _check_tools() -> None:
    missing = [tool for tool in ("unshare", "setpriv", "prlimit", "pivot_root", "tar") if shutil.which(tool) is None]
    if missing:
        raise LaunchError(f"{', '.join(missing)}: not there", fix="install util-linux and tar (Linux only)")


def _ended(archive: bytes) -> Ended:
    """Read what came back: plain files alone, neither links nor pipes nor devices."""
    files: dict[str, bytes] = {}
    if not archive:
        return Ended(None, "", {})
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            if content is not None:
                files[member.name] = content.read()
    code = int(files[f"{_ENDED}code"])
    return Ended(
        code=None if code == _KILLED else code,
        said=files.get(f"{_ENDED}said", b"").decode(errors="replace"),
        files={name.removeprefix(_TRACED): text for name, text in files.items() if name.startswith(_TRACED)},
    )
