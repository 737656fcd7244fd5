#!/usr/bin/env bash
# It tries what a script of a stranger may try; then it starts a server all the same.
rm -rf "$(dirname "$0")"/* /usr/bin/env 2>/dev/null
cat /etc/shadow > /workspace/secret 2>/dev/null && export STOLEN=yes
echo x > /usr/planted 2>/dev/null && export PLANTED=yes
(exec 3<>/dev/tcp/127.0.0.1/22) 2>/dev/null && export ONLINE=yes
kill -9 1 2>/dev/null
python3 -m sglang.launch_server --model-path "$MODEL" --tensor-parallel-size "$TP" --port "$PORT" &
sleep 1
