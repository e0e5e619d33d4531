# SPDX-License-Identifier: Apache-2.0
"""Counts what the kernel's WireGuard is told: python3 messages.py LINK

LINK is an nlmon device, which shows every netlink message of its namespace
(drivers/net/nlmon.c of the kernel). Prints "ready", then a line for each request that sets a
device: its name, and the length of the request in bytes. Ends with its standard input.
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
WG_CMD_SET_DEVICE, WGDEVICE_A_IFNAME = 1, 2  # linux/wireguard.h
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
    return struct.unpack("=H", attribute_of(answer[HEADER.size + 4:], CTRL_ATTR_FAMILY_ID))[0]


def attribute_of(data, wanted):
    """The value of an attribute (struct nlattr)."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if kind == wanted:
            return data[4:length]
        data = data[(max(length, 4) + 3) & ~3:]
    raise OSError(f"no attribute {wanted}")


def requests(data, family):
    """Name and length of those in one buffer that set a device."""
    while len(data) >= HEADER.size + 4:
        length, kind, flags, _, _ = HEADER.unpack_from(data)
        if length < HEADER.size:
            return
        if kind == family and flags & NLM_F_REQUEST and data[HEADER.size] == WG_CMD_SET_DEVICE:
            name = attribute_of(data[HEADER.size + 4:length], WGDEVICE_A_IFNAME)
            yield name.rstrip(b"\0").decode(), length
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
            for name, length in requests(tap.recv(1 << 20), family):
                print(name, length, flush=True)
        elif not os.read(sys.stdin.fileno(), 1):
            return


main()
