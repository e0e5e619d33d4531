# SPDX-License-Identifier: Apache-2.0
"""A keeper's socket as docs/keeper.md describes it: each line is a request, each answer a line."""
import json
import os
import socket
import threading


class KeeperSocket:
    """Answers what `answer` of the subclass returns, each client on a thread of its own."""

    def __init__(self, directory, interface):
        self.path = os.path.join(directory, f"{interface}.keeper.sock")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(8)
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.socket.close()
        os.unlink(self.path)

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, client.makefile("rwb") as stream:
            for line in stream:
                answer = {"schemaVersion": 1, **self.answer(json.loads(line))}
                stream.write(json.dumps(answer).encode() + b"\n")
                stream.flush()
