/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ChaCha20-Poly1305 for AVX2: ChaCha20 on the vector units, eight blocks at once, and Poly1305 on
 * the integer units in the same instruction stream, where neither waits for the other.
 *
 * A batch is one sequence of blocks: first every packet's block 0, which is its Poly1305 key
 * (RFC 8439 §2.6), then the blocks of the first packet, of the second, and so on. Groups of eight
 * are cut from it wherever packets end, so small packets share a group. Poly1305 goes through the
 * packets in the same order. Sealing, it follows what has been encrypted; opening, it goes before,
 * since decryption in place destroys what it reads.
 *
 * Constant time: branches and addresses depend on lengths, counts and positions, and on whether a
 * tag was right.
 */
#include "../lines.h"
#include "aead.h"

#if defined(__x86_64__)

#include "chacha20_avx2.h"
#include "poly1305_scalar.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* A test that runs with secrets marked says here what becomes public. */
#ifndef DECLASSIFY
#define DECLASSIFY(pointer, size) ((void)0)
#endif

#define CHUNK 64 /* packets whose Poly1305 keys are made together */
/* Poly1305 blocks beside each double round. Three take about as long as it does, and ten times
 * three are nearly the 32 of eight ChaCha20 blocks. */
#define STEPS_PER_DOUBLE_ROUND 3

/* All that depends on a key lives here, and forget() wipes it. */
struct avx2_worker {
    struct aead_worker base;
    struct poly1305_key poly_keys[CHUNK];
    _Alignas(32) uint8_t keystream[CHACHA20_LANES][CHACHA20_BLOCK];
    __m256i resting[4]; /* state words 8-11 */
    struct poly1305 poly;
};

/* A place in a chunk: `bytes` into `packet`. */
struct place {
    size_t packet;
    uint32_t bytes;
};

struct chunk {
    struct avx2_worker *worker;
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

/* Consecutive lanes with consecutive blocks of one packet. */
struct run {
    struct place start;
    uint32_t length; /* in bytes; a multiple of the block except at the packet's end */
    uint32_t lane;   /* the first */
};

struct group {
    struct chacha20_lanes lanes;
    size_t keys; /* the first so many lanes are keys */
    struct run runs[CHACHA20_LANES];
    size_t run_count;
    struct place end; /* where the next group's data begins */
};

static bool before(struct place a, struct place b)
{
    return a.packet < b.packet || (a.packet == b.packet && a.bytes < b.bytes);
}

/* ---- groups ------------------------------------------------------------------------------------
 */

/* The next eight blocks of the chunk, or what is left of it; false where nothing is. Lanes that are
 * not used compute something nobody reads. */
AVX2 static bool group_cut(struct group *group, struct chunk *chunk)
{
    size_t lane = 0, runs = 0;
    for (; lane < CHACHA20_LANES && chunk->keys_cut < chunk->count; lane++)
        chacha20_set_lanes(&group->lanes, lane, 0, chunk->packets[chunk->keys_cut++].counter);
    group->keys = lane;

    struct place at = chunk->cut;
    while (chunk->keys_cut == chunk->count && at.packet < chunk->count) {
        const struct aead_packet *packet = &chunk->packets[at.packet];
        const uint32_t left = packet->length - at.bytes;
        const uint32_t room = (uint32_t)(CHACHA20_LANES - lane) * CHACHA20_BLOCK;
        if (left && !room)
            break;
        if (left) {
            const uint32_t length = left < room ? left : room;
            group->runs[runs++] = (struct run){at, length, (uint32_t)lane};
            chacha20_set_lanes(&group->lanes, lane, 1 + at.bytes / CHACHA20_BLOCK, packet->counter);
            lane += (length + CHACHA20_BLOCK - 1) / CHACHA20_BLOCK;
            at.bytes += length;
        }
        if (at.bytes == packet->length)
            at = (struct place){at.packet + 1, 0};
    }
    group->run_count = runs;
    group->end = chunk->cut = at;
    return lane != 0;
}

AVX2_INLINE void xor_32(uint8_t *destination, const uint8_t *source, const uint8_t *keystream)
{
    const __m256i data = _mm256_loadu_si256((const __m256i *)source);
    const __m256i stream = _mm256_load_si256((const __m256i *)keystream);
    _mm256_storeu_si256((__m256i *)destination, _mm256_xor_si256(data, stream));
}

AVX2 static void xor_tail(uint8_t *destination, const uint8_t *source, const uint8_t *keystream,
                          uint32_t length)
{
    uint32_t i = 0;
    if (length & 32) {
        xor_32(destination, source, keystream);
        i = 32;
    }
    if (length & 16) {
        const __m128i data = _mm_loadu_si128((const __m128i *)(source + i));
        const __m128i stream = _mm_load_si128((const __m128i *)(keystream + i));
        _mm_storeu_si128((__m128i *)(destination + i), _mm_xor_si128(data, stream));
        i += 16;
    }
    for (; i < length; i++)
        destination[i] = source[i] ^ keystream[i];
}

AVX2 static void xor_run(const struct aead_packet *packet, const struct run *run,
                         const uint8_t (*keystream)[CHACHA20_BLOCK])
{
    uint8_t *destination = packet->destination + run->start.bytes;
    const uint8_t *source = packet->source + run->start.bytes;
    uint32_t left = run->length;

    for (; left >= CHACHA20_BLOCK; left -= CHACHA20_BLOCK) {
        xor_32(destination, source, keystream[0]);
        xor_32(destination + 32, source + 32, keystream[0] + 32);
        destination += CHACHA20_BLOCK;
        source += CHACHA20_BLOCK;
        keystream++;
    }
    if (left)
        xor_tail(destination, source, keystream[0], left);
}

/* Applies the keystream to the group's data; leaves out packets whose tag was found wrong. */
static void group_xor(const struct group *group, struct chunk *chunk)
{
    for (size_t i = 0; i < group->run_count; i++) {
        const struct run *run = &group->runs[i];
        const struct aead_packet *packet = &chunk->packets[run->start.packet];
        const bool verified = run->start.packet < chunk->poly.packet;

        if (chunk->sealing || !verified || packet->ok)
            xor_run(packet, run, chunk->worker->keystream + run->lane);
    }
}

/* ---- Poly1305 ----------------------------------------------------------------------------------
 */

static const struct poly1305_key *poly_key(const struct chunk *chunk)
{
    return &chunk->worker->poly_keys[chunk->poly.packet];
}

static const uint8_t *ciphertext(const struct chunk *chunk, size_t packet)
{
    return chunk->sealing ? chunk->packets[packet].destination : chunk->packets[packet].source;
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

/* The last bytes, the lengths (RFC 8439 §2.8; no associated data) and the tag. */
AVX2 static void poly_end(struct chunk *chunk, struct poly1305 poly)
{
    struct aead_packet *packet = &chunk->packets[chunk->poly.packet];
    const struct poly1305_key *key = poly_key(chunk);
    const uint8_t *data = ciphertext(chunk, chunk->poly.packet) + chunk->poly.bytes;
    const uint32_t left = packet->length - chunk->poly.bytes;
    const uint64_t length = packet->length;
    uint64_t tag[2];

    uint8_t last[2][POLY1305_BLOCK] = {0};
    if (left)
        memcpy(last[0], data, left);
    memcpy(last[1] + 8, &length, sizeof(length));
    if (left)
        poly1305_blocks(&poly, key, last[0], 2);
    else
        poly1305_blocks(&poly, key, last[1], 1);
    poly1305_finish(&poly, key, tag);
    if (chunk->sealing) {
        memcpy(packet->destination + packet->length, tag, sizeof(tag));
    } else {
        uint64_t difference = (tag[0] ^ poly1305_load(packet->source + packet->length)) |
                              (tag[1] ^ poly1305_load(packet->source + packet->length + 8));
        DECLASSIFY(&difference, sizeof(difference));
        packet->ok = difference == 0;
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
AVX2 static void poly_catch_up(struct chunk *chunk, struct place target)
{
    while (before(chunk->poly, target)) {
        const uint8_t *data = ciphertext(chunk, chunk->poly.packet) + chunk->poly.bytes;
        const size_t blocks = poly_blocks(chunk, target);
        struct poly1305 poly = chunk->worker->poly;
        if (blocks)
            poly1305_blocks(&poly, poly_key(chunk), data, blocks);
        chunk->poly.bytes += (uint32_t)blocks * POLY1305_BLOCK;
        if (chunk->poly.packet < target.packet)
            poly_end(chunk, poly);
        else
            chunk->worker->poly = poly;
    }
}

/* ---- both --------------------------------------------------------------------------------------
 */

/* Blocks of one packet that can be authenticated beside a group. */
struct stretch {
    const uint8_t *data;
    const struct poly1305_key *key;
    size_t turns;
};

/* What there is up to `end`, for at most `turns` double rounds. */
static struct stretch poly_stretch(struct chunk *chunk, struct place end, size_t turns)
{
    const size_t available = poly_blocks(chunk, end) / STEPS_PER_DOUBLE_ROUND;
    if (!available)
        return (struct stretch){0};
    const struct stretch stretch = {ciphertext(chunk, chunk->poly.packet) + chunk->poly.bytes,
                                    poly_key(chunk), available < turns ? available : turns};
    chunk->poly.bytes += (uint32_t)stretch.turns * STEPS_PER_DOUBLE_ROUND * POLY1305_BLOCK;
    return stretch;
}

/* Ends the current packet, where all of it is there, and continues with the next. */
__attribute__((noinline)) static struct stretch poly_next_packet(struct chunk *chunk,
                                                                 struct place end, size_t turns)
{
    if (chunk->poly.packet >= chunk->keys || chunk->poly.packet >= end.packet)
        return (struct stretch){0};
    poly_catch_up(chunk, (struct place){chunk->poly.packet + 1, 0});
    return poly_stretch(chunk, end, turns);
}

/* Computes the group's keystream and authenticates meanwhile what there is up to `end`. */
AVX2 static void group_run(const struct group *group, struct chunk *chunk, struct place end)
{
    struct stretch stretch = poly_stretch(chunk, end, CHACHA20_DOUBLE_ROUNDS);
    struct chacha20 x = {.c_rest = chunk->worker->resting};
    size_t round = 0;

    chacha20_initialise(&x, chunk->key, &group->lanes);
    while (stretch.turns) {
        struct poly1305 poly = chunk->worker->poly;
        poly1305_add(&poly, stretch.data);
        round += stretch.turns;
        for (; stretch.turns; stretch.turns--) {
            const bool last = stretch.turns == 1;
            chacha20_half(&x, 0);
            poly1305_multiply(&poly, stretch.key, stretch.data + 16, 1);
            chacha20_half(&x, 1);
            poly1305_multiply(&poly, stretch.key, stretch.data + 32, 1);
            chacha20_half(&x, 2);
            stretch.data += STEPS_PER_DOUBLE_ROUND * POLY1305_BLOCK;
            poly1305_multiply(&poly, stretch.key, last ? poly1305_zero : stretch.data, !last);
            chacha20_half(&x, 3);
        }
        chunk->worker->poly = poly;
        if (round < CHACHA20_DOUBLE_ROUNDS - 1)
            stretch = poly_next_packet(chunk, end, CHACHA20_DOUBLE_ROUNDS - round);
    }
    for (; round < CHACHA20_DOUBLE_ROUNDS; round++) {
        chacha20_half(&x, 0);
        chacha20_half(&x, 1);
        chacha20_half(&x, 2);
        chacha20_half(&x, 3);
    }
    chacha20_finish(&x, chunk->key, &group->lanes, chunk->worker->keystream);
}

AVX2 static void group_take_keys(const struct group *group, struct chunk *chunk)
{
    for (size_t lane = 0; lane < group->keys; lane++)
        chunk->worker->poly_keys[chunk->keys++] = poly1305_load_key(chunk->worker->keystream[lane]);
}

static void run_chunk(struct chunk *chunk)
{
    /* A group is cut before the one ahead of it is run: its lanes, written word by word, have
     * reached the cache when they are read as vectors. */
    struct group groups[2];
    struct group *group = &groups[0], *following = &groups[1];

    chunk->worker->poly = (struct poly1305){0};
    for (bool more = group_cut(group, chunk); more;) {
        more = group_cut(following, chunk);
        poly_end_if_left(chunk, ready(chunk));
        group_run(group, chunk, ready(chunk));
        group_take_keys(group, chunk);
        if (!chunk->sealing)
            poly_catch_up(chunk, group->end);
        group_xor(group, chunk);
        chunk->done = group->end;
        if (chunk->sealing && chunk->done.packet)
            poly_catch_up(chunk, (struct place){chunk->done.packet - 1, 0});

        struct group *const spent = group;
        group = following;
        following = spent;
    }
    poly_catch_up(chunk, (struct place){chunk->count, 0});
}

static size_t run(struct aead_worker *base, const struct aead_key *key, struct aead_packet *packets,
                  size_t count, bool sealing)
{
    size_t opened = 0;
    while (count) {
        struct chunk chunk = {.worker = (struct avx2_worker *)base,
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
    struct avx2_worker *worker = (struct avx2_worker *)base;
    sodium_memzero(worker->poly_keys, sizeof(worker->poly_keys));
    sodium_memzero(worker->keystream, sizeof(worker->keystream));
    sodium_memzero(worker->resting, sizeof(worker->resting));
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
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2"))
        return NULL;
    struct avx2_worker *worker = lines_alloc(sizeof(*worker));
    if (!worker)
        return NULL;
    worker->base.backend = &aead_avx2;
    return &worker->base;
}

const struct aead_backend aead_avx2 = {
    .name = "avx2",
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
const struct aead_backend aead_avx2 = {.name = "avx2", .create = create};

#endif
