#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traffic whose every byte is checked, for the network tests.

  serve PORT                    TCP: answer as many bytes as announced, and the digest of what came;
                                UDP: echo
  tcp ADDRESS PORT MEGABYTES    both directions at once, compare both digests
  udp ADDRESS PORT              echo of datagrams around every interesting size
  sniff-replay LINK PORT ADDR   capture one WireGuard data message seen on LINK, send it once more
                                from another source port to ADDR:51820
  datagram ADDRESS PORT HEX     one UDP datagram
  counters PATH                 what the engine with this state socket dropped and fell back from
  forget-mappings               empty the connection tracking table of this namespace
"""
import hashlib
import json
import os
import random
import socket
import struct
import sys
import threading

CHUNK = 1 << 16
# Around zero, the padding to 16, one full packet at MTU 1420 with both families, IP fragments.
UDP_SIZES = [0, 1, 15, 16, 17, 64, 1000, 1371, 1372, 1373, 1391, 1392, 1393, 1472, 2800, 9000,
             32767, 65000]
# UDP may lose on a loaded machine, but never change. An emulated one is always loaded: the 48 packets of the
# longest datagram may wait longer than a queue lets them.
UDP_ATTEMPTS = 40 if os.environ.get("KERNEL_VM") else 4


def stream(seed, length):
    generator = random.Random(seed)
    while length:
        n = min(CHUNK, length)
        yield generator.randbytes(n)
        length -= n


def send_stream(connection, seed, length, digests, name):
    digest = hashlib.sha256()
    for chunk in stream(seed, length):
        digest.update(chunk)
        connection.sendall(chunk)
    digests[name] = digest.hexdigest()


def receive_exactly(connection, length):
    digest = hashlib.sha256()
    while length:
        data = connection.recv(min(CHUNK, length))
        if not data:
            raise SystemExit(f"connection ended {length} bytes early")
        digest.update(data)
        length -= len(data)
    return digest.hexdigest()


def exchange(connection, seed, length):
    """Sends and receives `length` bytes at the same time; returns both digests."""
    digests = {}
    sender = threading.Thread(target=send_stream, args=(connection, seed, length, digests, "sent"))
    sender.start()
    received = receive_exactly(connection, length)
    sender.join()
    return digests["sent"], received


def serve_connection(connection):
    with connection:
        (length,) = struct.unpack("!Q", connection.recv(8, socket.MSG_WAITALL))
        sent, received = exchange(connection, 2, length)
        connection.sendall((sent + received).encode())


def serve_udp(port):
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    udp.bind(("::", port))
    while True:
        data, source = udp.recvfrom(1 << 16)
        udp.sendto(data, source)


def serve(port):
    tcp = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    threading.Thread(target=serve_udp, args=(port,), daemon=True).start()
    while True:
        connection, _ = tcp.accept()
        threading.Thread(target=serve_connection, args=(connection,), daemon=True).start()


def tcp(address, port, megabytes):
    length = megabytes * 1_000_000
    with socket.create_connection((address, port), timeout=30) as connection:
        connection.sendall(struct.pack("!Q", length))
        sent, received = exchange(connection, 1, length)
        theirs = b""
        # A socket with a timeout does not block, so MSG_WAITALL may return early.
        while len(theirs) < 128 and (part := connection.recv(128 - len(theirs))):
            theirs += part
        theirs = theirs.decode()
    if theirs != received + sent:
        raise SystemExit("TCP delivered other bytes than were sent")
    print(f"{length} bytes each way")


def udp(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    client = socket.socket(family, socket.SOCK_DGRAM)
    client.settimeout(2)
    client.connect((address, port))
    for size in UDP_SIZES:
        payload = random.Random(size).randbytes(size)
        for attempt in range(UDP_ATTEMPTS):
            client.send(payload)
            try:
                echo = client.recv(1 << 16)
            except TimeoutError:
                continue
            if echo != payload:
                raise SystemExit(f"{size} bytes came back as {len(echo)} other ones")
            break
        else:
            raise SystemExit(f"no echo of {size} bytes in {attempt + 1} attempts")
    print(f"{len(UDP_SIZES)} sizes echoed")


def sniff_replay(link, port, address):
    """The outer packets are IPv4: 20 bytes IP header, 8 bytes UDP header."""
    every_protocol = 3  # ETH_P_ALL: only then are packets on their way out seen
    sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(every_protocol))
    sniffer.bind((link, every_protocol))
    sniffer.settimeout(10)
    while True:
        packet, address_of_packet = sniffer.recvfrom(1 << 16)
        if address_of_packet[1] != 0x0800 or len(packet) < 60:
            continue
        destination = socket.inet_ntoa(packet[16:20])
        if packet[9] == socket.IPPROTO_UDP and packet[28] == 4 and destination == address:
            break
    length = struct.unpack("!H", packet[24:26])[0] - 8
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.bind(("", port))
    sender.sendto(packet[28:28 + length], (address, 51820))
    print(f"replayed {length} bytes from port {port}")


def datagram(address, port, text):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    socket.socket(family, socket.SOCK_DGRAM).sendto(bytes.fromhex(text), (address, port))


def counters(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(5)
    connection.connect(path)
    connection.sendall(b"get=1\n\n")
    with connection.makefile() as lines:
        document = json.loads(lines.readline())
    for name in ["drops", "fallbacks"]:
        print(name, {reason: n for reason, n in document[name].items() if n})


def forget_mappings():
    """nfnetlink: a delete request of conntrack that names nothing deletes everything
    (linux/netfilter/nfnetlink_conntrack.h)."""
    subsystem_conntrack, message_delete, request_and_ack = 1, 2, 0x1 | 0x4
    body = struct.pack("=BBH", socket.AF_UNSPEC, 0, 0)
    header = struct.pack("=IHHII", 16 + len(body), subsystem_conntrack << 8 | message_delete,
                         request_and_ack, 1, 0)
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)  # NETLINK_NETFILTER
    netlink.send(header + body)
    (error,) = struct.unpack_from("=i", netlink.recv(4096), 16)
    if error:
        raise SystemExit(f"conntrack flush: errno {-error}")


def main(arguments):
    match arguments:
        case ["serve", port]:
            serve(int(port))
        case ["tcp", address, port, megabytes]:
            tcp(address, int(port), int(megabytes))
        case ["udp", address, port]:
            udp(address, int(port))
        case ["sniff-replay", link, port, address]:
            sniff_replay(link, int(port), address)
        case ["datagram", address, port, text]:
            datagram(address, int(port), text)
        case ["counters", path]:
            counters(path)
        case ["forget-mappings"]:
            forget_mappings()
        case _:
            raise SystemExit(__doc__)


main(sys.argv[1:])
