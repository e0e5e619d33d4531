// SPDX-License-Identifier: Apache-2.0
#include "tss.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static bool find(const char *library, const char *name, void *pointer)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *function = handle != NULL ? dlsym(handle, name) : NULL;
    /* POSIX has a function's address fit a void pointer (dlsym(3p)); ISO C has no cast for it. */
    memcpy(pointer, &function, sizeof function);
    return function != NULL;
}

const struct tss *tss_load(void)
{
    static struct tss tss;
    static bool is_loaded;
    if (!is_loaded) {
        /* It would write to standard error by itself; the codes are in our own messages. */
        setenv("TSS2_LOG", "all+NONE", 0);
#define TSS_FIND(library, function)                                                                \
    if (!find(library, #function, &tss.function))                                                  \
        return NULL;
        TSS_FUNCTIONS(TSS_FIND)
#undef TSS_FIND
        is_loaded = true;
    }
    return &tss;
}
