/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many peers that reconnect at once, each from an address of its own: real handshakes, then an echo
 * through the new session. A peer is back when the echo's answer came.
 *
 *   reconnect config COUNT < SEED                          peers for `wg addconf`
 *   reconnect run ADDRESS PORT PUBLIC-KEY COUNT SECONDS < SEED
 *
 * SEED is a line that the peers' private keys are derived from. Peer i (from 0) has the outer
 * address 198.18.0.1 + i (RFC 2544, appendix C.2.2), which the namespace must hold (`ip route add
 * local 198.18.0.0/15 dev lo`), and the inner one 10.80.0.0 + i; the gateway's is 10.77.0.2. Where
 * others gave the addresses, COUNT lines follow SEED: the peer's address, the gateway's, and a
 * preshared key in base64 or a dash.
 *
 * Each behaves as the paper says (§6.4, §6.6): no answer within 5 s and up to a third of a second
 * of jitter, and it begins anew, with the cookie if it was given one. The first initiations are
 * made before the clock starts: they cost the peers' machines, not the gateway's. Prints one JSON
 * object.
 */
#include "cookie.h"
#include "crypto/hash.h"
#include "noise.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define MOST_PEERS   65536
#define MOST_SECONDS 120
#define FIRST_SOURCE 0xc6120001u /* 198.18.0.1 */
#define FIRST_INNER  0x0a500000u /* 10.80.0.0 */
#define GATEWAY      0x0a4d0002u /* 10.77.0.2 */
#define ECHO_LENGTH  32          /* IPv4, ICMP, 4 bytes; padded already */
#define ECHO_RETRY   NSEC_PER_SEC
#define RECEIVE_MOST 64

enum state { WAITS_FOR_RESPONSE, WAITS_FOR_ECHO, BACK };

struct client {
    enum state state;
    struct noise_identity identity;
    struct noise_handshake handshake;
    struct cookie_sender cookie;
    struct noise_session_keys keys;
    uint32_t remote_index, inner, gateway_inner;
    uint8_t psk[KEY_LENGTH];
    uint64_t counter, next_ns, back_ns;
    struct message_initiation message;
};

static struct client *clients;
static unsigned client_count, back, initiations, responses, cookies, echoes;
static struct sockaddr_in gateway = {.sin_family = AF_INET};
static uint8_t gateway_key[KEY_LENGTH];
static int fd;

static void die(const char *what)
{
    fprintf(stderr, "reconnect: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* ---- messages ------------------------------------------------------------------------------ */

static void send_from(unsigned i, void *data, size_t length)
{
    union {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
    } control = {0};
    struct in_pktinfo info = {.ipi_spec_dst.s_addr = htonl(FIRST_SOURCE + i)};
    struct iovec iov = {.iov_base = data, .iov_len = length};
    struct msghdr message = {.msg_name = &gateway,
                             .msg_namelen = sizeof gateway,
                             .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    control.header = (struct cmsghdr){
        .cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO, .cmsg_len = CMSG_LEN(sizeof info)};
    memcpy(CMSG_DATA(&control.header), &info, sizeof info);
    while (sendmsg(fd, &message, 0) < 0)
        if (errno != ENOBUFS && errno != EINTR)
            die("sendmsg");
}

/* Sender indices are the peers' numbers from 1. */
static void make_initiation(unsigned i, uint64_t now)
{
    struct client *c = &clients[i];
    struct timespec wall;
    uint8_t label[TAI64N_LENGTH];
    clock_gettime(CLOCK_REALTIME, &wall);
    noise_tai64n(label, (uint64_t)wall.tv_sec, (uint32_t)wall.tv_nsec);
    if (!noise_create_initiation(&c->handshake, &c->identity, i + 1, label, &c->message))
        die("noise_create_initiation");
    cookie_add_macs(&c->cookie, &c->message, sizeof c->message, now);
}

static void initiate(unsigned i, uint64_t now)
{
    send_from(i, &clients[i].message, sizeof clients[i].message);
    clients[i].next_ns = now + REKEY_TIMEOUT + randombytes_uniform(REKEY_TIMEOUT_JITTER);
    initiations++;
}

static uint16_t internet_checksum(const uint8_t *data, size_t length)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < length; i += 2)
        sum += (uint32_t)data[i] << 8 | data[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return htons((uint16_t)~sum);
}

static void data_nonce(uint8_t nonce[12], uint64_t counter)
{
    memset(nonce, 0, 4);
    memcpy(nonce + 4, &counter, 8);
}

static void send_echo(unsigned i, uint64_t now)
{
    struct client *c = &clients[i];
    uint32_t source = htonl(c->inner), destination = htonl(c->gateway_inner);
    uint8_t packet[ECHO_LENGTH] = {0x45, [3] = ECHO_LENGTH, [8] = 64, [9] = IPPROTO_ICMP,
                                   [20] = 8 /* echo request, RFC 792 */};
    uint8_t message[sizeof(struct message_data) + ECHO_LENGTH + TAG_LENGTH], nonce[12];
    struct message_data header = {
        .type = MESSAGE_DATA, .receiver_index = c->remote_index, .counter = c->counter++};
    memcpy(packet + 12, &source, 4);
    memcpy(packet + 16, &destination, 4);
    uint16_t sum = internet_checksum(packet, 20);
    memcpy(packet + 10, &sum, 2);
    sum = internet_checksum(packet + 20, ECHO_LENGTH - 20);
    memcpy(packet + 22, &sum, 2);
    memcpy(message, &header, sizeof header);
    data_nonce(nonce, header.counter);
    crypto_aead_chacha20poly1305_ietf_encrypt(message + sizeof header, NULL, packet, sizeof packet,
                                              NULL, 0, NULL, nonce, c->keys.send.bytes);
    send_from(i, message, sizeof message);
    c->next_ns = now + ECHO_RETRY;
    echoes++;
}

/* ---- what comes back ----------------------------------------------------------------------- */

static void receive_data(struct client *c, const uint8_t *data, size_t length, uint64_t now)
{
    struct message_data header;
    uint8_t plain[2048], nonce[12];
    memcpy(&header, data, sizeof header);
    data_nonce(nonce, header.counter);
    if (c->state != WAITS_FOR_ECHO || length < MESSAGE_DATA_MINIMUM + 21 || length > sizeof plain ||
        crypto_aead_chacha20poly1305_ietf_decrypt(plain, NULL, NULL, data + sizeof header,
                                                  length - sizeof header, NULL, 0, nonce,
                                                  c->keys.receive.bytes) ||
        plain[9] != IPPROTO_ICMP || plain[20] != 0 /* echo reply */)
        return;
    c->state = BACK;
    c->back_ns = now;
    back++;
}

static void receive(const uint8_t *data, size_t length, uint64_t now)
{
    uint32_t words[3] = {0};
    memcpy(words, data, length < sizeof words ? length : sizeof words);
    uint32_t index = words[0] == MESSAGE_RESPONSE ? words[2] : words[1];
    if (!index || index > client_count)
        return;
    struct client *c = &clients[index - 1];
    if (words[0] == MESSAGE_DATA && length > sizeof(struct message_data)) {
        receive_data(c, data, length, now);
    } else if (words[0] == MESSAGE_COOKIE_REPLY && length == sizeof(struct message_cookie_reply)) {
        cookies += cookie_consume_reply(&c->cookie, (const struct message_cookie_reply *)data, now);
    } else if (words[0] == MESSAGE_RESPONSE && length == sizeof(struct message_response) &&
               c->state == WAITS_FOR_RESPONSE) {
        const struct message_response *response = (const struct message_response *)data;
        if (!noise_consume_response(&c->handshake, &c->identity, response) ||
            !noise_begin_session(&c->handshake, &c->keys))
            return;
        responses++;
        c->remote_index = response->sender_index;
        c->state = WAITS_FOR_ECHO;
        send_echo(index - 1, now);
    }
}

static void receive_all(void)
{
    static _Alignas(8) uint8_t bytes[RECEIVE_MOST][2048];
    struct mmsghdr messages[RECEIVE_MOST];
    struct iovec iov[RECEIVE_MOST];
    int count;
    for (unsigned i = 0; i < RECEIVE_MOST; i++) {
        iov[i] = (struct iovec){bytes[i], sizeof bytes[i]};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
    }
    while ((count = recvmmsg(fd, messages, RECEIVE_MOST, MSG_DONTWAIT, NULL)) > 0)
        for (int i = 0; i < count; i++)
            receive(bytes[i], messages[i].msg_len, now_ns());
}

/* Every peer whose time has come tries again. */
static void retry(uint64_t now)
{
    for (unsigned i = 0; i < client_count; i++) {
        if (clients[i].state == BACK || now < clients[i].next_ns)
            continue;
        if (clients[i].state == WAITS_FOR_ECHO) {
            send_echo(i, now);
        } else {
            make_initiation(i, now);
            initiate(i, now);
        }
        if (i % RECEIVE_MOST == 0)
            receive_all();
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void derive(uint8_t private_key[KEY_LENGTH], const char *seed, uint32_t i)
{
    blake2s_256(private_key, (const struct hash_part[]){{seed, strlen(seed)}, {&i, sizeof i}}, 2);
}

static void print_config(const char *seed)
{
    for (unsigned i = 0; i < client_count; i++) {
        struct noise_identity identity = {0};
        uint8_t private_key[KEY_LENGTH];
        char text[sodium_base64_ENCODED_LEN(KEY_LENGTH, sodium_base64_VARIANT_ORIGINAL)];
        derive(private_key, seed, i);
        noise_identity_set(&identity, private_key);
        sodium_bin2base64(text, sizeof text, identity.public_key, KEY_LENGTH,
                          sodium_base64_VARIANT_ORIGINAL);
        printf("[Peer]\nPublicKey = %s\nAllowedIPs = 10.80.%u.%u/32\n", text, i >> 8, i & 255);
    }
}

static bool read_key(uint8_t key[KEY_LENGTH], const char *text)
{
    size_t length;
    return !sodium_base642bin(key, KEY_LENGTH, text, strlen(text), NULL, &length, NULL,
                              sodium_base64_VARIANT_ORIGINAL) &&
           length == KEY_LENGTH;
}

static bool read_address(uint32_t *address, const char *text)
{
    struct in_addr parsed;
    if (inet_pton(AF_INET, text, &parsed) != 1)
        return false;
    *address = ntohl(parsed.s_addr);
    return true;
}

/* What stands on the lines after the seed; the usual addresses where there is none. */
static bool read_clients(void)
{
    char line[256], inner[64], outer[64], psk[64];
    bool more = true;
    for (unsigned i = 0; i < client_count; i++) {
        struct client *c = &clients[i];
        c->inner = FIRST_INNER + i;
        c->gateway_inner = GATEWAY;
        more = more && fgets(line, sizeof line, stdin);
        if (!more && i && clients[0].gateway_inner != GATEWAY)
            return false;
        if (!more)
            continue;
        if (sscanf(line, "%63s %63s %63s", inner, outer, psk) != 3 ||
            !read_address(&c->inner, inner) || !read_address(&c->gateway_inner, outer) ||
            (strcmp(psk, "-") && !read_key(c->psk, psk)))
            return false;
    }
    return true;
}

static void make_clients(const char *seed)
{
    for (unsigned i = 0; i < client_count; i++) {
        uint8_t private_key[KEY_LENGTH];
        derive(private_key, seed, i);
        noise_identity_set(&clients[i].identity, private_key);
        noise_handshake_init(&clients[i].handshake, gateway_key, clients[i].psk);
        cookie_sender_init(&clients[i].cookie, gateway_key);
        make_initiation(i, now_ns());
    }
}

static void open_socket(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    int size = 32 << 20;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof any) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size))
        die("socket");
}

static int by_time(const void *a, const void *b)
{
    uint64_t x = ((const struct client *)a)->back_ns, y = ((const struct client *)b)->back_ns;
    return (x > y) - (x < y);
}

static void report(uint64_t start)
{
    for (unsigned i = 0; i < client_count; i++) /* those who are not back come last */
        clients[i].back_ns = clients[i].state == BACK ? clients[i].back_ns - start : UINT64_MAX;
    qsort(clients, client_count, sizeof *clients, by_time);
    printf("{\"peers\": %u, \"back\": %u, \"halfSeconds\": %.3f, \"lastSeconds\": %.3f, "
           "\"initiations\": %u, \"responses\": %u, \"cookies\": %u, \"echoes\": %u}\n",
           client_count, back,
           back * 2 >= client_count ? (double)clients[client_count / 2].back_ns / 1e9 : -1,
           back == client_count ? (double)clients[client_count - 1].back_ns / 1e9 : -1, initiations,
           responses, cookies, echoes);
}

static unsigned number(const char *text, unsigned most)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (!*text || *end || !value || value > most) {
        fprintf(stderr, "reconnect: %s is not in 1 to %u\n", text, most);
        exit(2);
    }
    return (unsigned)value;
}

static void storm(const char *seed, unsigned seconds)
{
    open_socket();
    make_clients(seed);
    uint64_t start = now_ns(), end = start + seconds * NSEC_PER_SEC;
    for (unsigned i = 0; i < client_count; i++)
        initiate(i, start);
    while (back < client_count && now_ns() < end) {
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        poll(&readable, 1, 10);
        receive_all();
        retry(now_ns());
    }
    report(start);
}

int main(int argc, char **argv)
{
    char seed[256];
    bool config = argc == 3 && !strcmp(argv[1], "config");
    bool run = argc == 7 && !strcmp(argv[1], "run");
    if (sodium_init() < 0 || (!config && !run) || !fgets(seed, sizeof seed, stdin) ||
        (run && (inet_pton(AF_INET, argv[2], &gateway.sin_addr) != 1 ||
                 !read_key(gateway_key, argv[4])))) {
        fprintf(stderr, "usage: reconnect config COUNT < SEED\n"
                        "       reconnect run ADDRESS PORT PUBLIC-KEY COUNT SECONDS < SEED\n");
        return 2;
    }
    client_count = number(argv[config ? 2 : 5], MOST_PEERS);
    clients = calloc(client_count, sizeof *clients);
    if (!clients)
        die("memory");
    if (config) {
        print_config(seed);
    } else {
        gateway.sin_port = htons((uint16_t)number(argv[3], 65535));
        if (!read_clients()) {
            fputs("reconnect: a line is not ADDRESS GATEWAY-ADDRESS KEY\n", stderr);
            return 2;
        }
        storm(seed, number(argv[6], MOST_SECONDS));
    }
    return 0;
}
