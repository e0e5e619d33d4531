#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HTTP servers that do what no control server does, for the tests of the client.

  misbehaving_server.py DIRECTORY

Makes certificates in DIRECTORY (ca.pem, other.pem …), listens on free ports of 127.0.0.1, prints
NAME PORT for each server and "ready" at last. Ends with the process that started it.
"""
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

PORTS = {}
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=DIRECTORY)


def make_authority(name, common_name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2",
            "-subj", f"/O=Tests/CN={common_name}")


def make_certificate(name, authority, alternative="IP:127.0.0.1,DNS:localhost", days="2"):
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}.example")
    (DIRECTORY / f"{name}.ext").write_text(f"subjectAltName={alternative}\n")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem",
            "-CAkey", f"{authority}.key", "-CAcreateserial", "-days", days,
            "-extfile", f"{name}.ext", "-out", f"{name}.pem")


def read_head(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(4096)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        body += connection.recv(65536)
    return head.decode("latin-1"), body


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def answer(connection, path, head):
    """Whether the connection is kept."""
    def send(text):
        connection.sendall(text if isinstance(text, bytes) else text.encode())

    if path == "/good":
        send(HEAD + "Content-Length: 2\r\n\r\n{}")
        return True
    if path == "/echo-head":
        send(HEAD + f"Content-Length: {len(head)}\r\n\r\n{head}")
        return True
    if path == "/html":
        send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>")
    elif path == "/500":
        send("HTTP/1.1 500 Oops\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\noops")
    elif path == "/cut":  # fewer bytes than announced
        send(HEAD + "Content-Length: 100\r\n\r\n{\"half\":")
    elif path == "/cut-chunked":
        send(HEAD + "Transfer-Encoding: chunked\r\n\r\n" + "5\r\n{\"hal\r\n")
    elif path == "/longer":  # more bytes than announced
        send(HEAD + "Content-Length: 2\r\n\r\n{}and more that belongs to no answer")
    elif path == "/nothing":
        pass
    elif path == "/huge":
        send(HEAD + "Content-Length: 10485760\r\n\r\n")
        send(b"x" * 10485760)
    elif path == "/huge-chunked":
        send(HEAD + "Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(160):
            send(chunk(b"x" * 65536))
    elif path == "/endless-head":
        send("HTTP/1.1 200 OK\r\n")
        for number in range(100000):
            send(f"X-{number}: {'x' * 100}\r\n")
    elif path == "/slow":
        wait_for_end(connection, 40)
    elif path == "/dribble":
        send(HEAD + "Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(4000):
            send(chunk(b"x"))
            time.sleep(0.01)
    elif path == "/redirect":
        send("HTTP/1.1 302 Found\r\nLocation: /good\r\nContent-Length: 0\r\n\r\n")
    elif path == "/cookie":
        send(HEAD + "Set-Cookie: a=b; Path=/\r\nContent-Length: 2\r\n\r\n{}")
        return True
    elif path == "/events":
        send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        send(": hello\n\nevent: con")
        send("fig\r\ndata: one\r\ndata: two\r\n\r\ndata:three\nid: 4\n\nevent: empty\n\n")
        send("event: last\ndata\n\nevent: lost\ndata: never dispatched\n")
    elif path == "/silent-events":
        send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        wait_for_end(connection, 40)
    else:
        send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    return False


def wait_for_end(connection, seconds):
    """Until the other side closes."""
    connection.settimeout(seconds)
    connection.recv(1)


def serve_connection(connection, context):
    try:
        connection.settimeout(60)
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        while True:
            request = read_head(connection)
            if request is None:
                break
            head, _ = request
            if not answer(connection, head.split(" ")[1], head):
                break
    except (OSError, ValueError):
        pass  # the client has left, as some tests want
    finally:
        connection.close()


def listen(name, context=None, serve=serve_connection):
    server = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            connection, _ = server.accept()
            threading.Thread(target=serve, args=(connection, context), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    PORTS[name] = server.getsockname()[1]
    print(name, PORTS[name], flush=True)


def serve_noise(connection, _):
    connection.recv(4096)
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    connection.close()


def serve_proxy(connection, _):
    """CONNECT to NAME.invalid leads to the server NAME."""
    try:
        head, _ = read_head(connection)
        name = head.split(" ")[1].split(".")[0]
        name = "good" if name == "hub" else name
        if name not in PORTS:
            connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return
        connection.sendall(b"HTTP/1.1 200 Connection established\r\nVia: proxy\r\n\r\n")
        with socket.create_connection(("127.0.0.1", PORTS[name])) as server:
            threading.Thread(target=relay, args=(connection, server), daemon=True).start()
            relay(server, connection)
    except (OSError, TypeError):
        pass
    finally:
        connection.close()


def relay(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def context_of(name, chain=None, newest=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DIRECTORY / f"{name}.pem", DIRECTORY / f"{name}.key")
    if newest:
        context.set_ciphers("ALL:@SECLEVEL=0")  # OpenSSL 3 forbids TLS 1.1 otherwise
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = newest
    return context


def main():
    parent = os.getppid()
    make_authority("ca", "Test CA")
    make_authority("other", "Intercepting Proxy CA")
    make_certificate("good", "ca")
    make_certificate("expired", "ca", days="-1")
    make_certificate("wrongname", "ca", alternative="DNS:elsewhere.example")
    make_certificate("intercepted", "other")
    listen("plain")
    listen("noise", serve=serve_noise)
    listen("proxy", serve=serve_proxy)
    for name in ["good", "expired", "wrongname", "intercepted"]:
        listen(name, context_of(name))
    listen("tls11", context_of("good", newest=ssl.TLSVersion.TLSv1_1))
    listen("tls12", context_of("good", newest=ssl.TLSVersion.TLSv1_2))
    print("ready", flush=True)
    while os.getppid() == parent:
        time.sleep(0.5)


if __name__ == "__main__":
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    DIRECTORY = Path(sys.argv[1])
    main()
