/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which queue of the TUN device a packet goes to. By itself the driver lets a flow follow the queue
 * that last wrote a packet of it (tun_flow_update in drivers/net/tun.c of Linux), so that the first
 * answer moves a flow to another worker while the former still has packets of it to read: they
 * arrive in another order than they were sent (pitfall 35). A program of ours hashes addresses and
 * ports instead and nothing else.
 */
#include "tun.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_tun.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef TUNSETSTEERINGEBPF
#define TUNSETSTEERINGEBPF _IOR('T', 224, int) /* Linux 4.16 */
#endif

/* Registers: R6 the packet as the LD instructions want it, R7 the hash, R8 the transport protocol,
 * R9 where the ports are. LD leaves a value in host byte order in R0, and ends the program with 0
 * where the packet is too short for it (Documentation/bpf/standardization/instruction-set.rst,
 * "Legacy BPF Packet access instructions"). */
#define MOVE(to, from)                                                                             \
    {                                                                                              \
        BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0                                                \
    }
#define SET(to, value)                                                                             \
    {                                                                                              \
        BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value                                               \
    }
#define DO(operation, r, with)                                                                     \
    {                                                                                              \
        BPF_ALU | operation | BPF_K, r, 0, 0, with                                                 \
    }
#define DO_R(operation, r, s)                                                                      \
    {                                                                                              \
        BPF_ALU | operation | BPF_X, r, s, 0, 0                                                    \
    }
#define LOAD(size, at)                                                                             \
    {                                                                                              \
        BPF_LD | BPF_ABS | size, 0, 0, 0, at                                                       \
    }
#define LOAD_AT(size, r)                                                                           \
    {                                                                                              \
        BPF_LD | BPF_IND | size, 0, r, 0, 0                                                        \
    }
#define SKIP(count)                                                                                \
    {                                                                                              \
        BPF_JMP | BPF_JA, 0, 0, count, 0                                                           \
    }
#define SKIP_IF(test, r, value, count)                                                             \
    {                                                                                              \
        BPF_JMP | test | BPF_K, r, 0, count, value                                                 \
    }
#define END                                                                                        \
    {                                                                                              \
        BPF_JMP | BPF_EXIT, 0, 0, 0, 0                                                             \
    }

/* One word into the hash. The factor is 2^32 divided by the golden ratio (D. E. Knuth, The Art of
 * Computer Programming, volume 3, §6.4). */
#define MIX_R0  DO_R(BPF_XOR, BPF_REG_7, BPF_REG_0), DO(BPF_MUL, BPF_REG_7, (int32_t)0x9e3779b1)
#define MIX(at) LOAD(BPF_W, at), MIX_R0

enum { WORD_LENGTH = 3, MIX_R0_LENGTH = 2 };
enum { IPV6_LENGTH = 8 * WORD_LENGTH + 4, IPV4_LENGTH = 2 * WORD_LENGTH + 9 };

static const struct bpf_insn program[] = {
    MOVE(BPF_REG_6, BPF_REG_1),
    SET(BPF_REG_7, 0),
    LOAD(BPF_B, 0),
    DO(BPF_RSH, BPF_REG_0, 4),
    SKIP_IF(BPF_JEQ, BPF_REG_0, 4, IPV6_LENGTH),

    /* IPv6: both addresses; ports where they follow at once */
    MIX(8),
    MIX(12),
    MIX(16),
    MIX(20),
    MIX(24),
    MIX(28),
    MIX(32),
    MIX(36),
    LOAD(BPF_B, 6),
    MOVE(BPF_REG_8, BPF_REG_0),
    SET(BPF_REG_9, 40),
    SKIP(IPV4_LENGTH),

    /* IPv4: both addresses; ports unless it is a fragment, of which only the first has them */
    MIX(12),
    MIX(16),
    LOAD(BPF_B, 9),
    MOVE(BPF_REG_8, BPF_REG_0),
    LOAD(BPF_B, 0),
    DO(BPF_AND, BPF_REG_0, 0xf),
    DO(BPF_LSH, BPF_REG_0, 2),
    MOVE(BPF_REG_9, BPF_REG_0),
    LOAD(BPF_H, 6),
    DO(BPF_AND, BPF_REG_0, 0x3fff),
    SKIP_IF(BPF_JNE, BPF_REG_0, 0, 3 + MIX_R0_LENGTH),

    SKIP_IF(BPF_JEQ, BPF_REG_8, IPPROTO_TCP, 1),
    SKIP_IF(BPF_JNE, BPF_REG_8, IPPROTO_UDP, 1 + MIX_R0_LENGTH),
    LOAD_AT(BPF_W, BPF_REG_9),
    MIX_R0,

    /* the driver takes it modulo the number of queues: the high bits are the good ones */
    MOVE(BPF_REG_0, BPF_REG_7),
    DO(BPF_RSH, BPF_REG_0, 16),
    END,
};

int tun_steer(int fd)
{
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
    attributes.insns = (uint64_t)(uintptr_t)program;
    attributes.insn_cnt = sizeof program / sizeof *program;
    attributes.license = (uint64_t)(uintptr_t) "Apache-2.0"; /* it calls no helper */

    int loaded = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes);
    if (loaded < 0)
        return -errno;
    int error = ioctl(fd, TUNSETSTEERINGEBPF, &loaded) ? -errno : 0;
    close(loaded); /* the device holds it */
    return error;
}
