/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of tpm2-tss that are used, found at run time. */
#ifndef NEXUSGUARD_TSS_H
#define NEXUSGUARD_TSS_H

#include <stdbool.h>
#include <tss2/tss2_esys.h>
#include <tss2/tss2_mu.h>
#include <tss2/tss2_tctildr.h>

/* Library, function: each becomes a member of struct tss with the function's own type. */
#define TSS_FUNCTIONS(FUNCTION)                                                                    \
    FUNCTION("libtss2-esys.so.0", Esys_Initialize)                                                 \
    FUNCTION("libtss2-esys.so.0", Esys_Finalize)                                                   \
    FUNCTION("libtss2-esys.so.0", Esys_Free)                                                       \
    FUNCTION("libtss2-esys.so.0", Esys_CreatePrimary)                                              \
    FUNCTION("libtss2-esys.so.0", Esys_StartAuthSession)                                           \
    FUNCTION("libtss2-esys.so.0", Esys_TRSess_SetAttributes)                                       \
    FUNCTION("libtss2-esys.so.0", Esys_Create)                                                     \
    FUNCTION("libtss2-esys.so.0", Esys_Load)                                                       \
    FUNCTION("libtss2-esys.so.0", Esys_Unseal)                                                     \
    FUNCTION("libtss2-esys.so.0", Esys_FlushContext)                                               \
    FUNCTION("libtss2-mu.so.0", Tss2_MU_TPM2B_PRIVATE_Marshal)                                     \
    FUNCTION("libtss2-mu.so.0", Tss2_MU_TPM2B_PRIVATE_Unmarshal)                                   \
    FUNCTION("libtss2-mu.so.0", Tss2_MU_TPM2B_PUBLIC_Marshal)                                      \
    FUNCTION("libtss2-mu.so.0", Tss2_MU_TPM2B_PUBLIC_Unmarshal)                                    \
    FUNCTION("libtss2-tctildr.so.0", Tss2_TctiLdr_Initialize)                                      \
    FUNCTION("libtss2-tctildr.so.0", Tss2_TctiLdr_Finalize)

#define TSS_MEMBER(library, function) __typeof__(&(function)) function;
struct tss {
    TSS_FUNCTIONS(TSS_MEMBER)
};
#undef TSS_MEMBER

/* The libraries stay loaded. NULL when one is missing. */
const struct tss *tss_load(void);

#endif
