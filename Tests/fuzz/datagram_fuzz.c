/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What anybody may send to the UDP port of node 0, which has a session with node 1 and waits for
 * the answer to an initiation. The input is a sequence of records, each a datagram or a GRO train:
 *
 *     byte 0      bits 0–2, what to begin with: 0 nothing, 1 an initiation of node 1, 2 the
 * response to ours, 3 a cookie reply to ours, 4 data sealed by node 1 (the rest of the record
 *                 becomes the plaintext), 5 time passes; bits 3–7: how many damaged copies follow,
 *                 in units of 32
 *     byte 1      GRO segment size in units of 8; 0: one datagram
 *     byte 2, 3   length of what follows, little endian
 *     …           overwrites the beginning byte by byte (XOR), and goes on past its end
 *
 * Copies of handshake messages often have their mac1 mended, which a fuzzer would never find, and
 * copies of sealed data are damaged before or after sealing; some come from other addresses.
 *
 * Afterwards the engine must carry a good packet both ways. The engines live through all inputs;
 * ten minutes of their time between two of these make them forget every session.
 */
#include "../CTunnelTests/simulation.h"
#include "variants.h"

#define COPIES_UNIT    32
#define MOST_DATAGRAMS 8192 /* per input, so that one takes less than a second */

enum begin { NOTHING, INITIATION, RESPONSE, COOKIE_REPLY, SEALED, PAUSE, BEGINS };

static struct sim_datagram *sample[SEALED]; /* each valid once: a fuzzer finds no mac1 by itself */

static void discard_delivered(void)
{
    sim_discard(&sim.node[0].delivered);
    sim_discard(&sim.node[1].delivered);
}

/* The message of this type that `node` sends next, and that its peer does not get. */
static struct sim_datagram *intercept(enum message_type type, void (*provoke)(void))
{
    struct sim_datagram *d;
    sim.copied = sim.lost = 1u << type;
    provoke();
    sim_settle();
    sim.copied = sim.lost = 0;
    d = sim_pop(&sim.copies);
    if (!d)
        abort();
    sim_discard(&sim.copies);
    return d;
}

static struct sim_datagram *ours;

static void initiate_0(void)
{
    handshake_request(sim_peer(0, 1), false, sim.now);
}

static void initiate_1(void)
{
    handshake_request(sim_peer(1, 0), false, sim.now);
}

static void deliver_ours(void)
{
    sim_arrive(sim_copy(ours));
}

static struct sim_datagram *cookie_reply(void)
{
    struct message_cookie_reply reply;
    struct cookie_checker *checker = &sim.node[1].tunnel->handshakes.checker;
    uint32_t sender_index = ((struct message_initiation *)ours->data)->sender_index;
    cookie_create_reply(checker, ours->data, ours->length, sender_index, (const uint8_t *)"source",
                        6, sim.now, &reply);
    return sim_datagram(&reply, sizeof reply);
}

static void set_up(void)
{
    if (!sim.count) {
        sim_start(2, NULL);
        sim_add_peer(0, 1, true, 0);
        sim_add_peer(1, 0, true, 0);
    }
    sim_advance(SECONDS(600));
    if (!sim_carries(0, 1) || !sim_carries(1, 0))
        abort();
    sim_advance(SECONDS(6));
    ours = intercept(MESSAGE_INITIATION, initiate_0);
    sample[RESPONSE] = intercept(MESSAGE_RESPONSE, deliver_ours);
    sample[INITIATION] = intercept(MESSAGE_INITIATION, initiate_1);
    sample[COOKIE_REPLY] = cookie_reply();
}

static void tear_down(void)
{
    for (int i = 0; i < SEALED; i++) {
        free(sample[i]);
        sample[i] = NULL;
    }
    free(ours);
    discard_delivered();
    sim.train_count = 0;
}

static struct sim_datagram *begin(enum begin kind, const uint8_t *bytes, size_t length)
{
    if (kind == SEALED && atomic_load(&sim_peer(1, 0)->current_session))
        return sim_seal(1, 0, bytes, length, length ? bytes[0] : 0);
    struct sim_datagram *from = kind < SEALED ? sample[kind] : NULL;
    size_t size = from && from->length > length ? from->length : length;
    struct sim_datagram *d = calloc(1, sizeof *d + size);
    assert(d);
    if (from)
        memcpy(d->data, from->data, from->length);
    for (size_t i = 0; i < length; i++)
        d->data[i] ^= bytes[i];
    if (!from && size >= 8 && d->data[0] == MESSAGE_DATA && d->data[1] == 0xff) {
        /* data for an index that exists */
        struct session *s = atomic_load(&sim_peer(0, 1)->current_session);
        memcpy(d->data, (uint8_t[4]){MESSAGE_DATA}, 4);
        if (s)
            memcpy(d->data + 4, &s->entry.index, 4);
    }
    d->length = size;
    return d;
}

/* mac1 needs only our public key: an attacker has it. */
static void mend_mac1(struct sim_datagram *d)
{
    struct cookie_sender sender = {0};
    if (d->length != sizeof(struct message_initiation) &&
        d->length != sizeof(struct message_response))
        return;
    cookie_sender_init(&sender, sim.node[0].public_key);
    cookie_add_macs(&sender, d->data, d->length, sim.now);
}

static size_t arrive(struct sim_datagram *d, unsigned segment, uint64_t where)
{
    sim_address(&d->from, AF_INET, 1, SIM_PORT);
    sim_address(&d->to, AF_INET, 0, SIM_PORT);
    ((struct sockaddr_in *)&d->from)->sin_addr.s_addr ^= (uint32_t)where;
    d->segment = segment < d->length ? segment : 0;
    size_t count = d->segment ? (d->length + d->segment - 1) / d->segment : 1;
    sim_arrive(d);
    return count;
}

/* A damaged copy of what the record began with. `room` holds the record's own bytes. */
static struct sim_datagram *copy_of(enum begin kind, uint8_t *room, size_t length, uint64_t *state)
{
    uint64_t r = variant_random(state);
    if (kind == SEALED) {
        bool before = r & 1;
        size_t changed = before ? variant_make(state, room, length) : length;
        struct sim_datagram *d = begin(kind, room, changed);
        if (!before && d->length) /* nothing to seal, and no session */
            variant_edit(state, d->data, d->length);
        return d;
    }
    struct sim_datagram *plain = begin(kind, room, length);
    struct sim_datagram *d = calloc(1, sizeof *d + plain->length + VARIANT_GROWTH);
    assert(d);
    memcpy(d->data, plain->data, plain->length);
    d->length = variant_make(state, d->data, plain->length);
    free(plain);
    if ((kind == INITIATION || kind == RESPONSE) && r % 8 == 0)
        mend_mac1(d);
    return d;
}

static size_t copies(const uint8_t *record, enum begin kind, size_t length, size_t most)
{
    static uint8_t room[MAX_DATAGRAM];
    uint64_t state = variant_seed(record, 4 + length);
    size_t sent = 0;
    unsigned count = (record[0] >> 3) * COPIES_UNIT;
    if (length > MAX_DATAGRAM - MESSAGE_DATA_MINIMUM - VARIANT_GROWTH)
        return 0;
    for (unsigned i = 0; i < count && sent < most; i++) {
        memcpy(room, record + 4, length);
        struct sim_datagram *d = copy_of(kind, room, length, &state);
        uint64_t r = variant_random(&state);
        unsigned segment = r & 1 ? record[1] * 8u : (unsigned)(r >> 8 & 0xff) * 8u;
        /* One in 16 from another address of node 1's. */
        uint64_t where = r >> 16 & 15 ? 0 : htonl(0x10000u + (uint32_t)(r >> 32 & 0xff) * 0x100);
        sent += arrive(d, r & 2 ? segment : 0, where);
        if ((r >> 20 & 63) == 0)
            sim_settle();
    }
    return sent;
}

/* Returns the bytes used; `sent` grows by the datagrams that arrived. */
static size_t record(const uint8_t *data, size_t size, size_t *sent)
{
    size_t length = (size_t)data[2] | (size_t)data[3] << 8;
    if (length > size - 4)
        length = size - 4;
    if (length > MAX_DATAGRAM - MESSAGE_DATA_MINIMUM)
        length = MAX_DATAGRAM - MESSAGE_DATA_MINIMUM;
    enum begin kind = (data[0] & 7) % BEGINS;
    if (kind == PAUSE) {
        sim_advance(data[1] * NSEC_PER_SEC);
        return 4;
    }
    *sent += arrive(begin(kind, data + 4, length), data[1] * 8u, 0);
    *sent += copies(data, kind, length, *sent < MOST_DATAGRAMS ? MOST_DATAGRAMS - *sent : 0);
    return 4 + length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t sent = 0;
    set_up();
    while (size >= 4 && sent < MOST_DATAGRAMS) {
        size_t used = record(data, size, &sent);
        data += used;
        size -= used;
        if (data[-1] & 1) /* some records meet in one batch */
            sim_settle();
    }
    sim_settle();
    sim_advance(SECONDS(20)); /* handshakes that both ends began at once are retried */
    discard_delivered();
    if (!sim_carries(0, 1) || !sim_carries(1, 0))
        abort();
    tear_down();
    count_input("datagrams", sent);
    return 0;
}
