/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RFC 6479: the bitmap is a ring of words. Advancing clears whole words, so one word is always
 * partly in the future and the guaranteed window is a word shorter than the bitmap.
 */
#include "replay.h"

#define WORD_BITS 64
#define WORDS     (REPLAY_BITS / WORD_BITS)

static_assert((WORDS & (WORDS - 1)) == 0, "the ring is indexed by masking");
static_assert(REPLAY_WINDOW == REPLAY_BITS - WORD_BITS, "RFC 6479, appendix A: one word is spare");

static void advance(struct replay_window *window, uint64_t counter)
{
    uint64_t current = window->newest ? (window->newest - 1) / WORD_BITS : 0;
    uint64_t words = counter / WORD_BITS - current;
    if (words > WORDS)
        words = WORDS;
    for (uint64_t i = 1; i <= words; i++)
        window->bitmap[(current + i) % WORDS] = 0;
    window->newest = counter + 1;
}

bool replay_accept(struct replay_window *window, uint64_t counter)
{
    if (counter >= REJECT_AFTER_MESSAGES)
        return false;
    if (counter >= window->newest)
        advance(window, counter);
    else if (window->newest - 1 - counter > REPLAY_WINDOW)
        return false;

    uint64_t *word = &window->bitmap[counter / WORD_BITS % WORDS];
    uint64_t bit = 1ull << (counter % WORD_BITS);
    if (*word & bit)
        return false;
    *word |= bit;
    return true;
}
