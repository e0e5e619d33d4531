# SPDX-License-Identifier: Apache-2.0
"""Counts what the kernel's WireGuard is told: python3 messages.py LINK

LINK is an nlmon device, which shows every netlink message of its namespace
(drivers/net/nlmon.c of the kernel). Prints "ready", then a line for each request that sets a
device, its length in bytes; ends with its standard input.
"""
import os
import select
import socket
import struct
import sys

NETLINK_GENERIC = 16  # linux/netlink.h
NLM_F_REQUEST = 1
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3  # linux/genetlink.h
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2
WG_CMD_SET_DEVICE = 1  # linux/wireguard.h
ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
HEADER = struct.Struct("=IHHII")  # struct nlmsghdr


def family_id(name):
    """The number that generic netlink gave a family."""
    attribute = struct.pack("=HH", 4 + len(name) + 1, CTRL_ATTR_FAMILY_NAME) + name + b"\0"
    attribute += b"\0" * (-len(attribute) % 4)
    body = struct.pack("=BBH", CTRL_CMD_GETFAMILY, 1, 0) + attribute
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC) as control:
        control.bind((0, 0))
        control.send(HEADER.pack(HEADER.size + len(body), GENL_ID_CTRL, NLM_F_REQUEST, 1, 0) + body)
        answer = control.recv(8192)
    rest = answer[HEADER.size + 4:]
    while len(rest) >= 4:
        length, kind = struct.unpack_from("=HH", rest)
        if kind == CTRL_ATTR_FAMILY_ID:
            return struct.unpack_from("=H", rest, 4)[0]
        rest = rest[(length + 3) & ~3:]
    raise OSError(f"no family {name.decode()}")


def lengths(data, family):
    """Of the requests in one buffer that set a device."""
    while len(data) >= HEADER.size + 4:
        length, kind, flags, _, _ = HEADER.unpack_from(data)
        if length < HEADER.size:
            return
        if kind == family and flags & NLM_F_REQUEST and data[HEADER.size] == WG_CMD_SET_DEVICE:
            yield length
        data = data[(length + 3) & ~3:]


def main():
    family = family_id(b"wireguard")
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    tap.bind((sys.argv[1], ETH_P_ALL))
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([tap, sys.stdin], [], [])
        if tap in readable:
            for length in lengths(tap.recv(1 << 20), family):
                print(length, flush=True)
        elif not os.read(sys.stdin.fileno(), 1):
            return


main()
