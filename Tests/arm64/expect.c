/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on the host: the batches as libsodium seals them, to standard output. */
#include "batch.h"

#include <stdio.h>

static struct batch batch;

int main(void)
{
    struct aead_worker *worker = aead_worker_create(&aead_libsodium);
    if (!worker)
        return 1;
    for (uint64_t number = 0; number < BATCHES; number++) {
        batch_fill(&batch, number);
        batch_point(&batch, batch.sealed, batch.plain);
        aead_seal_n(worker, &batch.key, batch.packets, batch.count);
        if (fwrite(batch.sealed, 1, batch.size, stdout) != batch.size)
            return 1;
    }
    return fflush(stdout) != 0;
}
