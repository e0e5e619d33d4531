/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ChaCha20-Poly1305 over batches, for back-ends that compute several ChaCha20 blocks at once and
 * Poly1305 in the same instruction stream, so that neither waits for its own last result.
 *
 * A batch is one sequence of blocks: first every packet's block 0, which is its Poly1305 key
 * (RFC 8439 §2.6), then the blocks of the first packet, of the second, and so on. Groups of as many
 * blocks as there are lanes are cut from it wherever packets end, so small packets share a group.
 * Poly1305 goes through the packets in the same order. Sealing, it follows what has been encrypted;
 * opening, it goes before, since decryption in place destroys what it reads.
 *
 * Constant time: branches and addresses depend on lengths, counts and positions, and on whether a
 * tag was right.
 *
 * For one file to include, after its ChaCha20 (chacha20_lanes.h and rounds) and its Poly1305
 * (POLY1305_STEP, the bytes that it takes at a time, poly1305_load_keys(), poly1305_steps(),
 * poly1305_end()). It defines BATCH_TARGET, the attribute of functions that use its instructions,
 * STEPS_PER_DOUBLE_ROUND, the Poly1305 steps that stand beside one, group_run() and xor_run().
 */
#ifndef CTUNNEL_AEAD_BATCH_H
#define CTUNNEL_AEAD_BATCH_H

#include "../lines.h"
#include "aead.h"
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* A test that runs with secrets marked says here what becomes public. */
#ifndef DECLASSIFY
#define DECLASSIFY(pointer, size) ((void)0)
#endif

/* How deep their frames are, in bytes. */
#ifndef BATCH_STACK
#define BATCH_STACK 2048
#endif

#define CHUNK 64 /* packets whose Poly1305 keys are made together */

/* All that depends on a key lives here, and batch_forget() wipes it. A back-end's worker begins
 * with one. */
struct batch_worker {
    struct aead_worker base;
    size_t keys_held; /* so many of the next were made since the last batch_forget() */
    struct poly1305_key poly_keys[CHUNK];
    _Alignas(64) uint8_t keystream[CHACHA20_LANES][CHACHA20_BLOCK];
    struct poly1305 poly;
};

/* A place in a chunk: `bytes` into `packet`. */
struct place {
    size_t packet;
    uint32_t bytes;
};

struct chunk {
    struct batch_worker *worker;
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

/* Computes the group's keystream into the worker and authenticates meanwhile what there is up to
 * `end`, as poly_stretch() gives it. */
static void group_run(const struct group *group, struct chunk *chunk, struct place end);
/* `length` bytes, combined with keystream that follows on. */
static void xor_run(uint8_t *destination, const uint8_t *source, const uint8_t *keystream,
                    uint32_t length);

static bool before(struct place a, struct place b)
{
    return a.packet < b.packet || (a.packet == b.packet && a.bytes < b.bytes);
}

/* ---- groups ------------------------------------------------------------------------------------
 */

/* The next blocks of the chunk, one for each lane, or what is left of it; false where nothing is.
 * Lanes that are not used compute something nobody reads. */
BATCH_TARGET static bool group_cut(struct group *group, struct chunk *chunk)
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
            const size_t blocks = (length + CHACHA20_BLOCK - 1) / CHACHA20_BLOCK;
            group->runs[runs++] = (struct run){at, length, (uint32_t)lane};
            chacha20_set_lanes(&group->lanes, lane, 1 + at.bytes / CHACHA20_BLOCK, packet->counter);
            lane += blocks;
            at.bytes += length;
        }
        if (at.bytes == packet->length)
            at = (struct place){at.packet + 1, 0};
    }
    group->run_count = runs;
    group->end = chunk->cut = at;
    return lane != 0;
}

/* Applies the keystream to the group's data; leaves out packets whose tag was found wrong. */
static void group_xor(const struct group *group, struct chunk *chunk)
{
    for (size_t i = 0; i < group->run_count; i++) {
        const struct run *run = &group->runs[i];
        const struct aead_packet *packet = &chunk->packets[run->start.packet];
        const bool verified = run->start.packet < chunk->poly.packet;

        if (chunk->sealing || !verified || packet->ok)
            xor_run(packet->destination + run->start.bytes, packet->source + run->start.bytes,
                    chunk->worker->keystream[run->lane], run->length);
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

/* How many whole steps of the packet being authenticated lie before `end`. */
static size_t poly_steps(const struct chunk *chunk, struct place end)
{
    if (chunk->poly.packet >= chunk->keys || !before(chunk->poly, end))
        return 0;
    const uint32_t limit =
        chunk->poly.packet < end.packet ? chunk->packets[chunk->poly.packet].length : end.bytes;
    return (limit - chunk->poly.bytes) / POLY1305_STEP;
}

/* The last bytes and the tag. */
BATCH_TARGET static void poly_end(struct chunk *chunk, struct poly1305 *poly)
{
    struct aead_packet *packet = &chunk->packets[chunk->poly.packet];
    const uint8_t *data = ciphertext(chunk, chunk->poly.packet) + chunk->poly.bytes;
    uint64_t tag[2];

    poly1305_end(poly, poly_key(chunk), data, packet->length - chunk->poly.bytes, packet->length,
                 tag);
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
        chunk->packets[chunk->poly.packet].length - chunk->poly.bytes < POLY1305_STEP)
        poly_end(chunk, &chunk->worker->poly);
}

/* Authenticates up to `target` by itself. */
BATCH_TARGET static void poly_catch_up(struct chunk *chunk, struct place target)
{
    while (before(chunk->poly, target)) {
        const uint8_t *data = ciphertext(chunk, chunk->poly.packet) + chunk->poly.bytes;
        const size_t steps = poly_steps(chunk, target);
        struct poly1305 poly = chunk->worker->poly;
        if (steps)
            poly1305_steps(&poly, poly_key(chunk), data, steps);
        chunk->poly.bytes += (uint32_t)steps * POLY1305_STEP;
        if (chunk->poly.packet < target.packet)
            poly_end(chunk, &poly);
        else
            chunk->worker->poly = poly;
    }
}

/* The first place not before `place` where a step ends, if only with its packet. */
static struct place poly_step_end(const struct chunk *chunk, struct place place)
{
    const uint32_t bytes = (place.bytes + POLY1305_STEP - 1) / POLY1305_STEP * POLY1305_STEP;
    if (place.bytes && bytes > chunk->packets[place.packet].length)
        return (struct place){place.packet + 1, 0};
    return (struct place){place.packet, bytes};
}

/* ---- both --------------------------------------------------------------------------------------
 */

/* Steps within one packet that can be made beside a group. */
struct stretch {
    const uint8_t *data;
    const struct poly1305_key *key;
    size_t turns;
};

/* What there is up to `end`, for at most `turns` double rounds. */
static struct stretch poly_stretch(struct chunk *chunk, struct place end, size_t turns)
{
    const size_t available = poly_steps(chunk, end) / STEPS_PER_DOUBLE_ROUND;
    if (!available)
        return (struct stretch){0};
    const struct stretch stretch = {ciphertext(chunk, chunk->poly.packet) + chunk->poly.bytes,
                                    poly_key(chunk), available < turns ? available : turns};
    chunk->poly.bytes += (uint32_t)stretch.turns * STEPS_PER_DOUBLE_ROUND * POLY1305_STEP;
    return stretch;
}

/* Ends the current packet, where all of it is there, and continues with the next; for a
 * group_run() that goes on across packets. */
__attribute__((noinline, unused)) static struct stretch
poly_next_packet(struct chunk *chunk, struct place end, size_t turns)
{
    if (chunk->poly.packet >= chunk->keys || chunk->poly.packet >= end.packet)
        return (struct stretch){0};
    poly_catch_up(chunk, (struct place){chunk->poly.packet + 1, 0});
    return poly_stretch(chunk, end, turns);
}

BATCH_TARGET static void group_take_keys(const struct group *group, struct chunk *chunk)
{
    struct batch_worker *worker = chunk->worker;
    poly1305_load_keys(worker->poly_keys + chunk->keys, (const uint8_t(*)[64])worker->keystream,
                       group->keys);
    chunk->keys += group->keys;
    if (worker->keys_held < chunk->keys)
        worker->keys_held = chunk->keys;
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
            poly_catch_up(chunk, poly_step_end(chunk, group->end));
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
        struct chunk chunk = {.worker = (struct batch_worker *)base,
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

static void batch_seal_n(struct aead_worker *base, const struct aead_key *key,
                         struct aead_packet *packets, size_t count)
{
    run(base, key, packets, count, true);
}

static size_t batch_open_n(struct aead_worker *base, const struct aead_key *key,
                           struct aead_packet *packets, size_t count)
{
    return run(base, key, packets, count, false);
}

static void batch_forget(struct aead_worker *base)
{
    struct batch_worker *worker = (struct batch_worker *)base;
    /* A thread forgets before each sleep, most often after one packet. */
    sodium_memzero(worker->poly_keys, worker->keys_held * sizeof(worker->poly_keys[0]));
    worker->keys_held = 0;
    sodium_memzero(worker->keystream, sizeof(worker->keystream));
    sodium_memzero(&worker->poly, sizeof(worker->poly));
    sodium_stackzero(BATCH_STACK); /* what the functions above kept in their frames */
}

/* `size` of the back-end's worker. */
static struct aead_worker *batch_create(const struct aead_backend *backend, size_t size)
{
    struct aead_worker *worker = lines_alloc(size);
    if (worker)
        worker->backend = backend;
    return worker;
}

static void batch_destroy(struct aead_worker *worker)
{
    aead_forget(worker);
    free(worker);
}

#endif
