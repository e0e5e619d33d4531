/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded flood of handshake initiations that pass the first check: well-formed, each with the
 * mac1 that anyone can compute who knows the victim's public key, none by a peer.
 *
 *   handshake_flood ADDRESS PORT PUBLIC-KEY PER-SECOND SECONDS BURST [bad-mac1]
 *
 * Sends BURST messages at a time, from SOURCES addresses of 198.18.0.0/15 (RFC 2544, appendix
 * C.2.2), which the namespace must hold (`ip route add local 198.18.0.0/15 dev lo`). Prints what
 * was sent and what came back, by length, as one JSON object.
 */
#include "crypto/hash.h"
#include "messages.h"
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SOURCES       8192
#define FIRST_SOURCE  0xc6120001u /* 198.18.0.1 */
#define MESSAGES      4096        /* different ones, sent in turn */
#define MOST_SECONDS  60
#define MOST_AT_ONCE  1024 /* UIO_MAXIOV, the limit of sendmmsg(2) */
#define MOST_RATE     1000000
#define REPLY_LENGTHS 2048

struct control {
    _Alignas(struct cmsghdr) uint8_t bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
};

static struct message_initiation messages[MESSAGES];
static struct mmsghdr batch[MOST_AT_ONCE];
static struct iovec vectors[MOST_AT_ONCE];
static struct control controls[MOST_AT_ONCE];
static uint64_t sent, replies[REPLY_LENGTHS];
static volatile sig_atomic_t stopping;

static void stop(int signal_number)
{
    (void)signal_number;
    stopping = 1;
}

static void die(const char *what)
{
    fprintf(stderr, "handshake_flood: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* What a victim checks first (§5.4.4); everything behind it is random. */
static void make_messages(const uint8_t public_key[KEY_LENGTH], int valid)
{
    uint8_t mac1_key[KEY_LENGTH];
    blake2s_256(mac1_key, (const struct hash_part[]){{"mac1----", 8}, {public_key, KEY_LENGTH}}, 2);
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct message_initiation *m = &messages[i];
        randombytes_buf(m, sizeof *m);
        m->type = MESSAGE_INITIATION;
        blake2s_mac128(m->macs.mac1, mac1_key, KEY_LENGTH, m, sizeof *m - sizeof m->macs);
        m->macs.mac1[0] ^= valid ? 0 : 1;
        memset(m->macs.mac2, 0, sizeof m->macs.mac2);
    }
}

static void make_batch(const struct sockaddr_in *to)
{
    for (unsigned i = 0; i < MOST_AT_ONCE; i++) {
        vectors[i].iov_len = sizeof messages[0];
        batch[i].msg_hdr = (struct msghdr){
            .msg_name = (void *)to,
            .msg_namelen = sizeof *to,
            .msg_iov = &vectors[i],
            .msg_iovlen = 1,
            .msg_control = controls[i].bytes,
            .msg_controllen = sizeof controls[i].bytes,
        };
        struct cmsghdr *c = CMSG_FIRSTHDR(&batch[i].msg_hdr);
        c->cmsg_level = IPPROTO_IP;
        c->cmsg_type = IP_PKTINFO;
        c->cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo));
    }
}

static void send_burst(int fd, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct in_pktinfo info = {.ipi_spec_dst.s_addr =
                                      htonl(FIRST_SOURCE + (uint32_t)((sent + i) % SOURCES))};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&batch[i].msg_hdr)), &info, sizeof info);
        vectors[i].iov_base = &messages[(sent + i) % MESSAGES];
    }
    for (unsigned done = 0; done < count;) {
        int n = sendmmsg(fd, batch + done, count - done, 0);
        if (n < 0 && errno != ENOBUFS && errno != EINTR)
            die("sendmmsg");
        done += n > 0 ? (unsigned)n : 0;
    }
    sent += count;
}

static void count_replies(int fd)
{
    uint8_t buffer[REPLY_LENGTHS];
    ssize_t n;
    while ((n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT | MSG_TRUNC)) >= 0)
        replies[n < REPLY_LENGTHS ? n : REPLY_LENGTHS - 1]++;
}

/* Bursts at fixed instants; a sender that was held up catches up, so that the rate is what it says.
 */
static void flood(int fd, unsigned per_second, unsigned seconds, unsigned burst)
{
    struct timespec next;
    uint64_t total = (uint64_t)per_second * seconds;
    uint64_t interval = NSEC_PER_SEC * burst / per_second;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (sent < total && !stopping) {
        send_burst(fd, total - sent < burst ? (unsigned)(total - sent) : burst);
        count_replies(fd);
        uint64_t ns = (uint64_t)next.tv_nsec + interval;
        next.tv_sec += (time_t)(ns / NSEC_PER_SEC);
        next.tv_nsec = (long)(ns % NSEC_PER_SEC);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) == EINTR && !stopping)
            ;
    }
    count_replies(fd);
}

static int open_socket(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    int size = 4 << 20;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof any) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size))
        die("socket");
    return fd;
}

static unsigned number(const char *text, unsigned most)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (!*text || *end || !value || value > most) {
        fprintf(stderr, "handshake_flood: %s is not in 1 to %u\n", text, most);
        exit(2);
    }
    return (unsigned)value;
}

int main(int argc, char **argv)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    uint8_t key[KEY_LENGTH];
    size_t length;
    if ((argc != 7 && (argc != 8 || strcmp(argv[7], "bad-mac1"))) || sodium_init() < 0 ||
        inet_pton(AF_INET, argv[1], &to.sin_addr) != 1 ||
        sodium_base642bin(key, sizeof key, argv[3], strlen(argv[3]), NULL, &length, NULL,
                          sodium_base64_VARIANT_ORIGINAL) ||
        length != sizeof key) {
        fprintf(stderr, "usage: handshake_flood ADDRESS PORT PUBLIC-KEY PER-SECOND SECONDS BURST "
                        "[bad-mac1]\n");
        return 2;
    }
    to.sin_port = htons((uint16_t)number(argv[2], 65535));
    signal(SIGTERM, stop);
    make_messages(key, argc == 7);
    make_batch(&to);
    flood(open_socket(), number(argv[4], MOST_RATE), number(argv[5], MOST_SECONDS),
          number(argv[6], MOST_AT_ONCE));
    printf("{\"sent\": %llu, \"replies\": {", (unsigned long long)sent);
    const char *separator = "";
    for (unsigned i = 0; i < REPLY_LENGTHS; i++) {
        if (replies[i])
            printf("%s\"%u\": %llu", separator, i, (unsigned long long)replies[i]);
        separator = replies[i] ? ", " : separator;
    }
    printf("}}\n");
    return 0;
}
