# SPDX-License-Identifier: Apache-2.0
"""Stands between an agent and its hub and writes down what they say: what was a secret on the way is
known then, and can be looked for. Plain HTTP on 127.0.0.1, TLS to the hub.

  secrets_record.py listen PORT HOST:PORT FILE    both directions go to FILE
  secrets_record.py secrets FILE HWID             lines for secrets_search.py, of what was recorded
"""
import asyncio
import hashlib
import os
import re
import ssl
import sys


async def copy(reader, writer, out):
    try:
        while data := await reader.read(65536):
            out.write(data)
            out.flush()
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def listen(port, hub, file):
    host, hub_port = hub.rsplit(":", 1)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # another test's subject
    out = open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb")

    async def serve(reader, writer):
        try:
            hub_reader, hub_writer = await asyncio.open_connection(host, int(hub_port), ssl=context)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, hub_writer, out), copy(hub_reader, writer, out))

    server = await asyncio.start_server(serve, "127.0.0.1", int(port))
    await server.serve_forever()


def secrets(file, hwid):
    with open(file, "rb") as record:
        text = record.read().decode("latin-1")
    for number, token in enumerate(sorted(set(re.findall(r'"token":"([^"]+)"', text)))):
        print(f"enrolment-token-{number} {token}")
    for number, token in enumerate(sorted(set(re.findall(r'"deviceToken":"([^"]+)"', text)))):
        print(f"device-token-{number} {token}")
    for number, salt in enumerate(sorted(set(re.findall(r'"salt":"([^"]+)"', text)))):
        # docs/control-api.md, "Envelope".
        print(f"envelope-key-{number} {hashlib.sha256((hwid + salt).encode()).hexdigest()}")


if __name__ == "__main__":
    if sys.argv[1] == "listen":
        asyncio.run(listen(*sys.argv[2:]))
    secrets(*sys.argv[2:])
