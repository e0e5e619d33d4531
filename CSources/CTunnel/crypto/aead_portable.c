/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ChaCha20-Poly1305 in C with vector types: ChaCha20 on the vector units, one lane per block, and
 * Poly1305 on the integer units between its rounds. Made for arm64; x86 without AVX2 can run it.
 *
 * A batch is one sequence of blocks: first every packet's block 0, which is its Poly1305 key
 * (RFC 8439 §2.6), then the blocks of the first packet, of the second, and so on. Groups of as many
 * blocks as there are lanes are cut from it wherever packets end, so small packets share a group.
 * Poly1305 goes through the packets in the same order. Sealing, it follows what has been encrypted;
 * opening, it goes before, since decryption in place destroys what it reads.
 *
 * Constant time: branches and addresses depend on lengths, counts and positions, and on whether a
 * tag was right. That takes a multiplication whose time does not depend on its operands.
 */
#include "../lines.h"
#include "aead.h"

#if defined(__SIZEOF_INT128__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__

#define POLY1305_PORTABLE
#include "chacha20_vector.h"
#include "poly1305_scalar.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* A test that runs with secrets marked says here what becomes public. */
#ifndef DECLASSIFY
#define DECLASSIFY(pointer, size) ((void)0)
#endif

#define CHUNK 64 /* packets whose Poly1305 keys are made together */
/* Poly1305 blocks beside each double round, at least as many as a group's ChaCha20 blocks have in
 * ten of them: 16 with four lanes, 32 with eight. */
#define STEPS_PER_DOUBLE_ROUND (CHACHA20_LANES / 2)

/* All that depends on a key lives here, and forget() wipes it. */
struct portable_worker {
    struct aead_worker base;
    struct poly1305_key poly_keys[CHUNK];
    _Alignas(32) uint8_t keystream[CHACHA20_LANES][CHACHA20_BLOCK];
    struct poly1305 poly;
};

/* A place in a chunk: `bytes` into `packet`. */
struct place {
    size_t packet;
    uint32_t bytes;
};

struct chunk {
    struct portable_worker *worker;
    const uint8_t *key;
    struct aead_packet *packets;
    size_t count;
    bool sealing;

    size_t keys_cut;   /* packets whose block 0 is in a group */
    struct place cut;  /* the first byte whose block is in none */
    size_t keys;       /* packets whose Poly1305 key is known */
    struct place done; /* the first byte not encrypted or decrypted */
    struct place poly; /* the first byte not authenticated; its packet's state is worker->poly */
    size_t opened;
};

/* Blocks computed together: first `keys` lanes of keys, then data up to `used`. */
struct group {
    struct chacha20_lanes lanes;
    size_t keys, used;
    struct place starts[CHACHA20_LANES]; /* where each lane of data belongs */
    struct place end;                    /* where the next group's data begins */
};

static bool before(struct place a, struct place b)
{
    return a.packet < b.packet || (a.packet == b.packet && a.bytes < b.bytes);
}

/* ---- groups ------------------------------------------------------------------------------------
 */

/* The next blocks of the chunk; false where none are left. Lanes that are not used compute
 * something nobody reads. */
static bool group_cut(struct group *group, struct chunk *chunk)
{
    size_t lane = 0;
    for (; lane < CHACHA20_LANES && chunk->keys_cut < chunk->count; lane++)
        chacha20_set_lane(&group->lanes, lane, 0, chunk->packets[chunk->keys_cut++].counter);
    group->keys = lane;

    struct place at = chunk->cut;
    while (lane < CHACHA20_LANES && at.packet < chunk->count) {
        const struct aead_packet *packet = &chunk->packets[at.packet];
        const uint32_t left = packet->length - at.bytes;
        if (left) {
            group->starts[lane] = at;
            chacha20_set_lane(&group->lanes, lane++, 1 + at.bytes / CHACHA20_BLOCK,
                              packet->counter);
        }
        if (left <= CHACHA20_BLOCK)
            at = (struct place){at.packet + 1, 0};
        else
            at.bytes += CHACHA20_BLOCK;
    }
    group->used = lane;
    group->end = chunk->cut = at;
    return lane != 0;
}

CHACHA20_INLINE void xor_16(uint8_t *destination, const uint8_t *source, const uint8_t *keystream)
{
    chacha20_quad data, stream;
    memcpy(&data, source, sizeof(data));
    memcpy(&stream, keystream, sizeof(stream));
    data ^= stream;
    memcpy(destination, &data, sizeof(data));
}

static void xor_block(uint8_t *destination, const uint8_t *source, const uint8_t *keystream,
                      uint32_t length)
{
    uint32_t i = 0;
    if (length >= CHACHA20_BLOCK) {
        for (; i < CHACHA20_BLOCK; i += sizeof(chacha20_quad))
            xor_16(destination + i, source + i, keystream + i);
        return;
    }
    for (; length - i >= sizeof(chacha20_quad); i += sizeof(chacha20_quad))
        xor_16(destination + i, source + i, keystream + i);
    for (; i < length; i++)
        destination[i] = source[i] ^ keystream[i];
}

/* Applies the keystream to the group's data; leaves out packets whose tag was found wrong. */
static void group_xor(const struct group *group, struct chunk *chunk)
{
    for (size_t lane = group->keys; lane < group->used; lane++) {
        const struct place start = group->starts[lane];
        const struct aead_packet *packet = &chunk->packets[start.packet];
        const bool verified = start.packet < chunk->poly.packet;

        if (chunk->sealing || !verified || packet->ok)
            xor_block(packet->destination + start.bytes, packet->source + start.bytes,
                      chunk->worker->keystream[lane], packet->length - start.bytes);
    }
}

/* ---- Poly1305 ----------------------------------------------------------------------------------
 */

static const struct poly1305_key *poly_key(const struct chunk *chunk)
{
    return &chunk->worker->poly_keys[chunk->poly.packet];
}

static const uint8_t *ciphertext(const struct chunk *chunk)
{
    const struct aead_packet *packet = &chunk->packets[chunk->poly.packet];
    return (chunk->sealing ? packet->destination : packet->source) + chunk->poly.bytes;
}

/* Up to where there is ciphertext. */
static struct place ready(const struct chunk *chunk)
{
    return chunk->sealing ? chunk->done : (struct place){chunk->count, 0};
}

/* How many whole blocks of the packet being authenticated lie before `end`. */
static size_t poly_blocks(const struct chunk *chunk, struct place end)
{
    if (chunk->poly.packet >= chunk->keys || !before(chunk->poly, end))
        return 0;
    const uint32_t limit =
        chunk->poly.packet < end.packet ? chunk->packets[chunk->poly.packet].length : end.bytes;
    return (limit - chunk->poly.bytes) / POLY1305_BLOCK;
}

static bool tag_is_right(const struct aead_packet *packet, const uint64_t tag[2])
{
    uint64_t difference = (tag[0] ^ poly1305_load(packet->source + packet->length)) |
                          (tag[1] ^ poly1305_load(packet->source + packet->length + 8));
    DECLASSIFY(&difference, sizeof(difference));
    return difference == 0;
}

/* The last bytes, the lengths (RFC 8439 §2.8; no associated data) and the tag. */
static void poly_end(struct chunk *chunk, struct poly1305 poly)
{
    struct aead_packet *packet = &chunk->packets[chunk->poly.packet];
    const uint32_t left = packet->length - chunk->poly.bytes;
    const uint64_t length = packet->length;
    uint8_t last[2][POLY1305_BLOCK] = {0};
    uint64_t tag[2];

    if (left)
        memcpy(last[0], ciphertext(chunk), left);
    memcpy(last[1] + 8, &length, sizeof(length));
    poly1305_blocks(&poly, poly_key(chunk), left ? last[0] : last[1], left ? 2 : 1);
    poly1305_finish(&poly, poly_key(chunk), tag);
    if (chunk->sealing) {
        memcpy(packet->destination + packet->length, tag, sizeof(tag));
    } else {
        packet->ok = tag_is_right(packet, tag);
        chunk->opened += packet->ok;
        if (!packet->ok)
            sodium_memzero(packet->destination, packet->length);
    }
    chunk->poly = (struct place){chunk->poly.packet + 1, 0};
    chunk->worker->poly = (struct poly1305){0};
}

/* Ends the current packet where only its end is left and there. */
static void poly_end_if_left(struct chunk *chunk, struct place end)
{
    if (chunk->poly.packet < chunk->keys && chunk->poly.packet < end.packet &&
        chunk->packets[chunk->poly.packet].length - chunk->poly.bytes < POLY1305_BLOCK)
        poly_end(chunk, chunk->worker->poly);
}

/* Authenticates up to `target` by itself. */
static void poly_catch_up(struct chunk *chunk, struct place target)
{
    while (before(chunk->poly, target)) {
        const size_t blocks = poly_blocks(chunk, target);
        struct poly1305 poly = chunk->worker->poly;
        if (blocks)
            poly1305_blocks(&poly, poly_key(chunk), ciphertext(chunk), blocks);
        chunk->poly.bytes += (uint32_t)blocks * POLY1305_BLOCK;
        if (chunk->poly.packet < target.packet)
            poly_end(chunk, poly);
        else
            chunk->worker->poly = poly;
    }
}

/* ---- both --------------------------------------------------------------------------------------
 */

/* A double round and the blocks of Poly1305 beside it; what follows is the block after them. */
CHACHA20_INLINE void double_round_and_steps(chacha20_vector x[CHACHA20_WORDS],
                                            struct poly1305 *poly, const struct poly1305_key *key,
                                            const uint8_t *data, bool last)
{
    const uint8_t *following = data + STEPS_PER_DOUBLE_ROUND * POLY1305_BLOCK;
    chacha20_half(x, 0);
    if (STEPS_PER_DOUBLE_ROUND == 4)
        poly1305_multiply(poly, key, data += POLY1305_BLOCK, 1);
    chacha20_half(x, 1);
    poly1305_multiply(poly, key, data += POLY1305_BLOCK, 1);
    chacha20_half(x, 2);
    if (STEPS_PER_DOUBLE_ROUND == 4)
        poly1305_multiply(poly, key, data += POLY1305_BLOCK, 1);
    chacha20_half(x, 3);
    poly1305_multiply(poly, key, last ? poly1305_zero : following, !last);
}

/* Computes the group's keystream; authenticates meanwhile what there is of one packet up to `end`.
 */
static void group_run(const struct group *group, struct chunk *chunk, struct place end)
{
    const size_t available = poly_blocks(chunk, end) / STEPS_PER_DOUBLE_ROUND;
    const size_t both = available < CHACHA20_DOUBLE_ROUNDS ? available : CHACHA20_DOUBLE_ROUNDS;
    chacha20_vector x[CHACHA20_WORDS];

    for (int i = 0; i < CHACHA20_WORDS; i++)
        x[i] = chacha20_initial(i, chunk->key, &group->lanes);
    if (both) {
        const struct poly1305_key *key = poly_key(chunk);
        const uint8_t *data = ciphertext(chunk);
        struct poly1305 poly = chunk->worker->poly;
        poly1305_add(&poly, data);
        for (size_t left = both; left; left--) {
            double_round_and_steps(x, &poly, key, data, left == 1);
            data += STEPS_PER_DOUBLE_ROUND * POLY1305_BLOCK;
        }
        chunk->worker->poly = poly;
        chunk->poly.bytes += (uint32_t)both * STEPS_PER_DOUBLE_ROUND * POLY1305_BLOCK;
    }
    for (size_t round = both; round < CHACHA20_DOUBLE_ROUNDS; round++) {
        chacha20_half(x, 0);
        chacha20_half(x, 1);
        chacha20_half(x, 2);
        chacha20_half(x, 3);
    }
    chacha20_finish(x, chunk->key, &group->lanes, chunk->worker->keystream);
}

static void group_take_keys(const struct group *group, struct chunk *chunk)
{
    for (size_t lane = 0; lane < group->keys; lane++)
        chunk->worker->poly_keys[chunk->keys++] = poly1305_load_key(chunk->worker->keystream[lane]);
}

static void run_chunk(struct chunk *chunk)
{
    struct group group;

    chunk->worker->poly = (struct poly1305){0};
    while (group_cut(&group, chunk)) {
        poly_end_if_left(chunk, ready(chunk));
        group_run(&group, chunk, ready(chunk));
        group_take_keys(&group, chunk);
        if (!chunk->sealing)
            poly_catch_up(chunk, group.end);
        group_xor(&group, chunk);
        chunk->done = group.end;
        /* One packet may wait for the rounds of the next group; small ones, several to a group,
         * may not pile up. */
        if (chunk->sealing && chunk->done.packet)
            poly_catch_up(chunk, (struct place){chunk->done.packet - 1, 0});
    }
    poly_catch_up(chunk, (struct place){chunk->count, 0});
}

static size_t run(struct aead_worker *base, const struct aead_key *key, struct aead_packet *packets,
                  size_t count, bool sealing)
{
    size_t opened = 0;
    while (count) {
        struct chunk chunk = {.worker = (struct portable_worker *)base,
                              .key = key->bytes,
                              .packets = packets,
                              .count = count < CHUNK ? count : CHUNK,
                              .sealing = sealing};
        run_chunk(&chunk);
        opened += chunk.opened;
        packets += chunk.count;
        count -= chunk.count;
    }
    return opened;
}

/* ---- the back-end ------------------------------------------------------------------------------
 */

static void seal_n(struct aead_worker *base, const struct aead_key *key,
                   struct aead_packet *packets, size_t count)
{
    run(base, key, packets, count, true);
}

static size_t open_n(struct aead_worker *base, const struct aead_key *key,
                     struct aead_packet *packets, size_t count)
{
    return run(base, key, packets, count, false);
}

static void forget(struct aead_worker *base)
{
    struct portable_worker *worker = (struct portable_worker *)base;
    sodium_memzero(worker->poly_keys, sizeof(worker->poly_keys));
    sodium_memzero(worker->keystream, sizeof(worker->keystream));
    sodium_memzero(&worker->poly, sizeof(worker->poly));
    sodium_stackzero(2048); /* what the functions above kept in their frames */
}

static void destroy(struct aead_worker *base)
{
    forget(base);
    free(base);
}

static struct aead_worker *create(void)
{
    struct portable_worker *worker = lines_alloc(sizeof(*worker));
    if (!worker)
        return NULL;
    worker->base.backend = &aead_portable;
    return &worker->base;
}

const struct aead_backend aead_portable = {
    .name = "portable",
    .create = create,
    .destroy = destroy,
    .seal_n = seal_n,
    .open_n = open_n,
    .forget = forget,
};

#else

static struct aead_worker *create(void)
{
    return NULL;
}

/* Without a worker the rest is never called. */
const struct aead_backend aead_portable = {.name = "portable", .create = create};

#endif
