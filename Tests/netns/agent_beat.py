# SPDX-License-Identifier: Apache-2.0
"""Has the agent of this host send COUNT heartbeats, and waits for the end of each: docs/agent.md,
"The socket". Usage: agent_beat.py COUNT [SOCKET]"""
import json
import socket
import sys
import time

BOUND = 40  # seconds for one heartbeat


def ask(path, verb):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        client.sendall(json.dumps({"schemaVersion": 1, "verb": verb}).encode() + b"\n")
        with client.makefile() as stream:
            return json.loads(stream.readline())


def main(count, path="/run/nexusguard/agent/agent.sock"):
    for _ in range(int(count)):
        if not ask(path, "heartbeat")["ok"]:
            return 1
        # A heartbeat under way has no next one.
        end = time.monotonic() + BOUND
        while "nextHeartbeat" not in ask(path, "status")["status"]["control"]:
            if time.monotonic() > end:
                return 1
            time.sleep(0.01)  # between two looks
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
