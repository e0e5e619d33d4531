/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A UDP load: one sender and one receiver that agree on numbered datagrams, so that delivered,
 * lost, duplicated and reordered ones are counted rather than estimated.
 *
 *   udp_load receive ADDRESS PORT RUN_ID GRO(0|1)
 *       prints "ready", counts until standard input ends, then drains until QUIET_MS pass without
 *       a datagram (DRAIN_MS at most), prints one line of JSON.
 *   udp_load send ADDRESS PORT RUN_ID SIZE RATE SECONDS SEGMENTS
 *       RATE in datagrams per second, 0: as fast as sendmmsg goes; SEGMENTS > 1: UDP GSO
 *       (UDP_SEGMENT, udp(7)), that many datagrams in one message. Prints one line of JSON.
 *
 * Each datagram starts with magic, run id (a straggler of an earlier run is not counted) and a
 * 64-bit sequence number, all big-endian.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAGIC          0x4e47554cu /* "NGUL" */
#define MAX_DATAGRAM   65507u
#define MAX_BATCH      64u
#define MAX_SEGMENTS   64u /* UDP_MAX_SEGMENTS of kernels before 6.9 */
#define MAX_SEQUENCE   (UINT64_C(1) << 32)
#define SOCKET_BUFFER  (32 << 20)
#define QUANTUM_NS     100000u   /* a paced sender wakes at most this often */
#define MAX_BACKLOG_NS 10000000u /* what a late sender may catch up; the rest is not offered */
#define QUIET_MS       300
#define DRAIN_MS       5000

struct header {
    uint32_t magic;
    uint32_t run_id;
    uint64_t sequence;
} __attribute__((packed));

static void die(const char *what)
{
    fprintf(stderr, "udp_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static unsigned long long number(const char *text, unsigned long long most, const char *name)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value > most) {
        fprintf(stderr, "udp_load: %s: '%s' is not a number of 0 to %llu\n", name, text, most);
        exit(2);
    }
    return value;
}

static struct sockaddr_in address_of(const char *host, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_port = htons((uint16_t)number(port, 65535, "port"));
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        fprintf(stderr, "udp_load: '%s' is not an IPv4 address\n", host);
        exit(2);
    }
    return address;
}

/* The load generator must not be the bottleneck: large buffers, beyond rmem_max where allowed. */
static void enlarge(int fd, int forced, int plain)
{
    int size = SOCKET_BUFFER;
    if (setsockopt(fd, SOL_SOCKET, forced, &size, sizeof size) != 0)
        setsockopt(fd, SOL_SOCKET, plain, &size, sizeof size);
}

/* ---- receiving ------------------------------------------------------------------------------- */

struct tally {
    uint32_t run_id;
    uint64_t *seen; /* one bit per sequence number; pages are only backed when touched */
    uint64_t next_expected;
    uint64_t delivered, duplicates, reordered, foreign, bytes;
    uint64_t first_ns, last_ns;
};

static void count_datagram(struct tally *tally, const uint8_t *data, size_t length)
{
    struct header header;
    if (length < sizeof header) {
        tally->foreign++;
        return;
    }
    memcpy(&header, data, sizeof header);
    uint64_t sequence = be64toh(header.sequence);
    if (be32toh(header.magic) != MAGIC || be32toh(header.run_id) != tally->run_id ||
        sequence >= MAX_SEQUENCE) {
        tally->foreign++;
        return;
    }
    uint64_t bit = UINT64_C(1) << (sequence % 64);
    if (tally->seen[sequence / 64] & bit) {
        tally->duplicates++;
        return;
    }
    tally->seen[sequence / 64] |= bit;
    tally->delivered++;
    tally->bytes += length;
    /* RFC 4737, section 3.3: reordered when the number is below the next one expected. */
    if (sequence < tally->next_expected)
        tally->reordered++;
    else
        tally->next_expected = sequence + 1;
}

/* The segment size of a coalesced message, or the whole length. UDP_GRO arrives as an int. */
static size_t segment_size(struct msghdr *message, size_t length)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
        if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(c), sizeof size);
            if (size > 0)
                return (size_t)size;
        }
    return length ? length : 1;
}

/* Takes what is there; false when nothing was. */
static bool receive_batch(int fd, struct tally *tally, uint8_t *buffers, size_t stride)
{
    static struct mmsghdr messages[MAX_BATCH];
    static struct iovec vectors[MAX_BATCH];
    static union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control[MAX_BATCH];

    for (unsigned i = 0; i < MAX_BATCH; i++) {
        vectors[i] = (struct iovec){buffers + i * stride, stride};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i],
                                              .msg_iovlen = 1,
                                              .msg_control = control[i].bytes,
                                              .msg_controllen = sizeof control[i].bytes};
    }
    int count = recvmmsg(fd, messages, MAX_BATCH, MSG_DONTWAIT, NULL);
    if (count < 0) {
        if (errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED)
            return false;
        die("recvmmsg");
    }
    tally->last_ns = now_ns();
    if (!tally->first_ns)
        tally->first_ns = tally->last_ns;
    for (int i = 0; i < count; i++) {
        const uint8_t *data = vectors[i].iov_base;
        size_t length = messages[i].msg_len, size = segment_size(&messages[i].msg_hdr, length);
        for (size_t at = 0; at < length; at += size)
            count_datagram(tally, data + at, length - at < size ? length - at : size);
    }
    return count > 0;
}

static void receive_all(int fd, struct tally *tally)
{
    size_t stride = MAX_DATAGRAM + 1;
    uint8_t *buffers = malloc(MAX_BATCH * stride);
    if (!buffers)
        die("malloc");
    struct pollfd polled[2] = {{.fd = fd, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    for (uint64_t end_ns = 0; !end_ns || now_ns() < end_ns;) {
        int ready = poll(polled, end_ns ? 1 : 2, end_ns ? QUIET_MS : -1);
        if (ready < 0 && errno != EINTR)
            die("poll");
        if (ready == 0)
            break;
        if (ready > 0 && polled[0].revents)
            receive_batch(fd, tally, buffers, stride);
        if (ready > 0 && !end_ns && polled[1].revents) {
            char byte;
            if (read(0, &byte, 1) <= 0)
                end_ns = now_ns() + DRAIN_MS * UINT64_C(1000000);
        }
    }
    free(buffers);
}

static int receive_main(char **arguments)
{
    struct sockaddr_in address = address_of(arguments[0], arguments[1]);
    struct tally tally = {.run_id = (uint32_t)number(arguments[2], UINT32_MAX, "run id")};
    int gro = (int)number(arguments[3], 1, "GRO");

    tally.seen = mmap(NULL, MAX_SEQUENCE / 8, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (tally.seen == MAP_FAILED)
        die("mmap");
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die("socket");
    enlarge(fd, SO_RCVBUFFORCE, SO_RCVBUF);
    if (gro && setsockopt(fd, SOL_UDP, UDP_GRO, &gro, sizeof gro) != 0)
        die("UDP_GRO");
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("bind");
    socklen_t length = sizeof address;
    getsockname(fd, (struct sockaddr *)&address, &length);
    printf("ready %u\n", ntohs(address.sin_port));
    fflush(stdout);

    receive_all(fd, &tally);

    uint32_t memory[SK_MEMINFO_VARS] = {0};
    length = sizeof memory;
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length) != 0)
        die("SO_MEMINFO");
    printf("{\"delivered\":%" PRIu64 ",\"duplicates\":%" PRIu64 ",\"reordered\":%" PRIu64
           ",\"foreign\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"socket_drops\":%" PRIu32
           ",\"seconds\":%.9f}\n",
           tally.delivered, tally.duplicates, tally.reordered, tally.foreign, tally.bytes,
           memory[SK_MEMINFO_DROPS], (double)(tally.last_ns - tally.first_ns) / 1e9);
    return 0;
}

/* ---- sending --------------------------------------------------------------------------------- */

struct sender {
    int fd;
    uint32_t run_id;
    size_t size;
    unsigned segments; /* datagrams per message */
    uint64_t sent, errors;
    uint8_t *payload; /* MAX_BATCH messages */
    struct mmsghdr messages[MAX_BATCH];
    struct iovec vectors[MAX_BATCH];
};

static void prepare(struct sender *sender)
{
    size_t stride = sender->size * sender->segments;
    sender->payload = calloc(MAX_BATCH, stride);
    if (!sender->payload)
        die("calloc");
    for (unsigned i = 0; i < MAX_BATCH; i++) {
        sender->vectors[i] = (struct iovec){sender->payload + i * stride, stride};
        sender->messages[i].msg_hdr =
            (struct msghdr){.msg_iov = &sender->vectors[i], .msg_iovlen = 1};
    }
}

/*
 * Numbers and sends up to `count` messages. A message the kernel refused keeps its number unused:
 * `sent` counts accepted datagrams only, and only those can be lost.
 */
static void send_batch(struct sender *sender, unsigned count)
{
    uint64_t sequence = sender->sent;
    for (unsigned i = 0; i < count * sender->segments; i++) {
        struct header header = {htobe32(MAGIC), htobe32(sender->run_id), htobe64(sequence++)};
        memcpy(sender->payload + i * sender->size, &header, sizeof header);
    }
    int accepted = sendmmsg(sender->fd, sender->messages, count, 0);
    if (accepted > 0) {
        sender->sent += (uint64_t)accepted * sender->segments;
        return;
    }
    if (errno != ENOBUFS && errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED)
        die("sendmmsg");
    sender->errors++;
}

static void sleep_until(uint64_t time_ns)
{
    struct timespec time = {(time_t)(time_ns / 1000000000u), (long)(time_ns % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* Sends at `rate` datagrams per second until `end_ns`; what a late sender cannot catch up within
 * MAX_BACKLOG_NS is skipped, so a stall shows as a lower offered rate and not as a burst. */
static void send_paced(struct sender *sender, uint64_t start_ns, uint64_t end_ns, double rate)
{
    uint64_t skipped = 0, backlog = (uint64_t)(rate * MAX_BACKLOG_NS / 1e9) + sender->segments;
    for (uint64_t now; (now = now_ns()) < end_ns;) {
        uint64_t due = (uint64_t)((double)(now - start_ns) * rate / 1e9) + sender->segments;
        uint64_t done = sender->sent + skipped;
        if (due > done + backlog) {
            skipped += due - done - backlog;
            done = due - backlog;
        }
        uint64_t count = due > done ? (due - done) / sender->segments : 0;
        if (count > 0) {
            send_batch(sender, count < MAX_BATCH ? (unsigned)count : MAX_BATCH);
            continue;
        }
        uint64_t next = start_ns + (uint64_t)((double)done * 1e9 / rate);
        if (next < now + QUANTUM_NS)
            next = now + QUANTUM_NS;
        sleep_until(next < end_ns ? next : end_ns);
    }
}

static int send_main(char **arguments)
{
    struct sockaddr_in address = address_of(arguments[0], arguments[1]);
    static struct sender sender;
    sender.run_id = (uint32_t)number(arguments[2], UINT32_MAX, "run id");
    sender.size = number(arguments[3], MAX_DATAGRAM, "size");
    double rate = (double)number(arguments[4], 1000000000, "rate");
    uint64_t duration_ns = (uint64_t)(strtod(arguments[5], NULL) * 1e9);
    sender.segments = (unsigned)number(arguments[6], MAX_SEGMENTS, "segments");
    if (sender.size < sizeof(struct header) || sender.segments < 1 ||
        sender.size * sender.segments > MAX_DATAGRAM || duration_ns > UINT64_C(600) * 1000000000u) {
        fprintf(stderr, "udp_load: size, segments or seconds out of range\n");
        return 2;
    }

    sender.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sender.fd < 0)
        die("socket");
    enlarge(sender.fd, SO_SNDBUFFORCE, SO_SNDBUF);
    int segment = (int)sender.size; /* a single datagram is sent without UDP_SEGMENT */
    if (sender.segments > 1 &&
        setsockopt(sender.fd, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0)
        die("UDP_SEGMENT");
    if (connect(sender.fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("connect");
    prctl(PR_SET_TIMERSLACK, 1);
    prepare(&sender);

    uint64_t start_ns = now_ns(), end_ns = start_ns + duration_ns;
    if (rate > 0)
        send_paced(&sender, start_ns, end_ns, rate);
    else
        while (now_ns() < end_ns && sender.sent < MAX_SEQUENCE - MAX_BATCH * MAX_SEGMENTS)
            send_batch(&sender, MAX_BATCH / 2);
    double seconds = (double)(now_ns() - start_ns) / 1e9;
    printf("{\"sent\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"seconds\":%.9f}\n",
           sender.sent, sender.sent * sender.size, sender.errors, seconds);
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 6 && strcmp(arguments[1], "receive") == 0)
        return receive_main(arguments + 2);
    if (count == 9 && strcmp(arguments[1], "send") == 0)
        return send_main(arguments + 2);
    fprintf(stderr, "usage: udp_load receive ADDRESS PORT RUN_ID GRO\n"
                    "       udp_load send ADDRESS PORT RUN_ID SIZE RATE SECONDS SEGMENTS\n");
    return 2;
}
