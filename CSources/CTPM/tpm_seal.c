// SPDX-License-Identifier: Apache-2.0
/*
 * The chain, as the TPM 2.0 Library specification builds it (part 1, chapters "Hierarchies" and
 * "Protected Storage"): a storage key that the TPM derives from its owner seed, the same each time,
 * so that none is kept; beneath it an object that holds the data and leaves the TPM encrypted.
 */
#include "include/tpm_seal.h"
#include "tss.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct chain {
    const struct tss *tss;
    TSS2_TCTI_CONTEXT *tcti;
    ESYS_CONTEXT *esys;
    ESYS_TR parent, session;
    char *error_text;
};

static int fail(const struct chain *chain, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(const struct chain *chain, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(chain->error_text, TPM_ERROR_CAPACITY, format, arguments);
    va_end(arguments);
    return error;
}

static int refused(const struct chain *chain, const char *what, TSS2_RC code)
{
    return fail(chain, -EIO, "the TPM refuses to %s (code 0x%x of tpm2_rc_decode(1))", what, code);
}

/* ECC P-256 with AES-128, as the TCG's TPM v2.0 Provisioning Guidance has it.
 */
static TPM2B_PUBLIC storage_key_template(void)
{
    TPM2B_PUBLIC template = {0};
    TPMT_PUBLIC *area = &template.publicArea;
    area->type = TPM2_ALG_ECC;
    area->nameAlg = TPM2_ALG_SHA256;
    area->objectAttributes = TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT |
                             TPMA_OBJECT_SENSITIVEDATAORIGIN | TPMA_OBJECT_USERWITHAUTH |
                             TPMA_OBJECT_NODA | TPMA_OBJECT_RESTRICTED | TPMA_OBJECT_DECRYPT;
    TPMS_ECC_PARMS *ecc = &area->parameters.eccDetail;
    ecc->symmetric.algorithm = TPM2_ALG_AES;
    ecc->symmetric.keyBits.aes = 128;
    ecc->symmetric.mode.aes = TPM2_ALG_CFB;
    ecc->scheme.scheme = TPM2_ALG_NULL;
    ecc->curveID = TPM2_ECC_NIST_P256;
    ecc->kdf.scheme = TPM2_ALG_NULL;
    return template;
}

/* Data that only the parent's TPM can decrypt. No password: who may open the device may ask. */
static TPM2B_PUBLIC sealed_template(void)
{
    TPM2B_PUBLIC template = {0};
    template.publicArea.type = TPM2_ALG_KEYEDHASH;
    template.publicArea.nameAlg = TPM2_ALG_SHA256;
    template.publicArea.objectAttributes = TPMA_OBJECT_FIXEDTPM | TPMA_OBJECT_FIXEDPARENT |
                                           TPMA_OBJECT_USERWITHAUTH | TPMA_OBJECT_NODA;
    template.publicArea.parameters.keyedHashDetail.scheme.scheme = TPM2_ALG_NULL;
    return template;
}

/* Opens the TPM, derives the storage key and, salted with it, a session that encrypts what passes
 * between here and the chip. */
static int chain_open(struct chain *chain, const char *tcti, char *error_text)
{
    *chain =
        (struct chain){.parent = ESYS_TR_NONE, .session = ESYS_TR_NONE, .error_text = error_text};
    chain->tss = tss_load();
    if (chain->tss == NULL)
        return fail(chain, -ENOSYS, "tpm2-tss is not installed");
    TSS2_RC code = chain->tss->Tss2_TctiLdr_Initialize(tcti, &chain->tcti);
    if (code == TSS2_RC_SUCCESS)
        code = chain->tss->Esys_Initialize(&chain->esys, chain->tcti, NULL);
    if (code != TSS2_RC_SUCCESS)
        return fail(chain, -ENODEV, "no TPM answers at %s (code 0x%x)", tcti, code);

    const TPM2B_SENSITIVE_CREATE sensitive = {0};
    const TPM2B_PUBLIC template = storage_key_template();
    const TPM2B_DATA outside = {0};
    const TPML_PCR_SELECTION no_pcr = {0};
    code = chain->tss->Esys_CreatePrimary(
        chain->esys, ESYS_TR_RH_OWNER, ESYS_TR_PASSWORD, ESYS_TR_NONE, ESYS_TR_NONE, &sensitive,
        &template, &outside, &no_pcr, &chain->parent, NULL, NULL, NULL, NULL);
    if (code != TSS2_RC_SUCCESS)
        return refused(chain, "derive a storage key", code);

    const TPMT_SYM_DEF symmetric = {
        .algorithm = TPM2_ALG_AES, .keyBits.aes = 128, .mode.aes = TPM2_ALG_CFB};
    code = chain->tss->Esys_StartAuthSession(chain->esys, chain->parent, ESYS_TR_NONE, ESYS_TR_NONE,
                                             ESYS_TR_NONE, ESYS_TR_NONE, NULL, TPM2_SE_HMAC,
                                             &symmetric, TPM2_ALG_SHA256, &chain->session);
    const TPMA_SESSION attributes =
        TPMA_SESSION_DECRYPT | TPMA_SESSION_ENCRYPT | TPMA_SESSION_CONTINUESESSION;
    if (code == TSS2_RC_SUCCESS)
        code = chain->tss->Esys_TRSess_SetAttributes(chain->esys, chain->session, attributes,
                                                     attributes);
    return code == TSS2_RC_SUCCESS ? 0 : refused(chain, "start a session", code);
}

static void flush(struct chain *chain, ESYS_TR handle)
{
    if (handle != ESYS_TR_NONE)
        chain->tss->Esys_FlushContext(chain->esys, handle);
}

static void chain_close(struct chain *chain)
{
    if (chain->esys != NULL) {
        flush(chain, chain->session);
        flush(chain, chain->parent);
        chain->tss->Esys_Finalize(&chain->esys);
    }
    if (chain->tcti != NULL)
        chain->tss->Tss2_TctiLdr_Finalize(&chain->tcti);
}

static int create(struct chain *chain, const uint8_t *data, size_t size, TPM2B_PRIVATE **private,
                  TPM2B_PUBLIC **public)
{
    TPM2B_SENSITIVE_CREATE sensitive = {0};
    sensitive.sensitive.data.size = (UINT16)size;
    memcpy(sensitive.sensitive.data.buffer, data, size);
    const TPM2B_PUBLIC template = sealed_template();
    const TPM2B_DATA outside = {0};
    const TPML_PCR_SELECTION no_pcr = {0};
    TSS2_RC code = chain->tss->Esys_Create(chain->esys, chain->parent, chain->session, ESYS_TR_NONE,
                                           ESYS_TR_NONE, &sensitive, &template, &outside, &no_pcr,
                                           private, public, NULL, NULL, NULL);
    explicit_bzero(&sensitive, sizeof sensitive);
    return code == TSS2_RC_SUCCESS ? 0 : refused(chain, "seal", code);
}

int tpm_seal(const char *tcti, const uint8_t *data, size_t size, uint8_t *blob, size_t *blob_size,
             char *error_text)
{
    struct chain chain;
    TPM2B_PRIVATE *private = NULL;
    TPM2B_PUBLIC *public = NULL;
    int result = chain_open(&chain, tcti, error_text);
    if (result == 0 && size > TPM_DATA_CAPACITY)
        result = fail(&chain, -EMSGSIZE, "%zu bytes are too many for a TPM", size);
    if (result == 0)
        result = create(&chain, data, size, &private, &public);
    if (result == 0) {
        size_t used = 0;
        TSS2_RC code =
            chain.tss->Tss2_MU_TPM2B_PRIVATE_Marshal(private, blob, TPM_BLOB_CAPACITY, &used);
        if (code == TSS2_RC_SUCCESS)
            code = chain.tss->Tss2_MU_TPM2B_PUBLIC_Marshal(public, blob, TPM_BLOB_CAPACITY, &used);
        *blob_size = used;
        if (code != TSS2_RC_SUCCESS)
            result = fail(&chain, -EMSGSIZE, "what the TPM sealed is too long");
    }
    if (chain.tss != NULL) {
        chain.tss->Esys_Free(private);
        chain.tss->Esys_Free(public);
    }
    chain_close(&chain);
    return result;
}

static int load(struct chain *chain, const uint8_t *blob, size_t blob_size, ESYS_TR *object)
{
    TPM2B_PRIVATE private = {0};
    TPM2B_PUBLIC public = {0};
    size_t used = 0;
    TSS2_RC code = chain->tss->Tss2_MU_TPM2B_PRIVATE_Unmarshal(blob, blob_size, &used, &private);
    if (code == TSS2_RC_SUCCESS)
        code = chain->tss->Tss2_MU_TPM2B_PUBLIC_Unmarshal(blob, blob_size, &used, &public);
    if (code != TSS2_RC_SUCCESS || used != blob_size)
        return fail(chain, -EBADMSG, "it is not what a TPM has sealed");
    code = chain->tss->Esys_Load(chain->esys, chain->parent, chain->session, ESYS_TR_NONE,
                                 ESYS_TR_NONE, &private, &public, object);
    if (code != TSS2_RC_SUCCESS)
        return fail(chain, -EBADMSG,
                    "it was sealed by another TPM, by this one before it was cleared, or is "
                    "damaged (code 0x%x)",
                    code);
    return 0;
}

int tpm_unseal(const char *tcti, const uint8_t *blob, size_t blob_size, uint8_t *data, size_t *size,
               char *error_text)
{
    struct chain chain;
    ESYS_TR object = ESYS_TR_NONE;
    TPM2B_SENSITIVE_DATA *unsealed = NULL;
    int result = chain_open(&chain, tcti, error_text);
    if (result == 0)
        result = load(&chain, blob, blob_size, &object);
    if (result == 0) {
        TSS2_RC code = chain.tss->Esys_Unseal(chain.esys, object, chain.session, ESYS_TR_NONE,
                                              ESYS_TR_NONE, &unsealed);
        if (code != TSS2_RC_SUCCESS)
            result = refused(&chain, "unseal", code);
        else if (unsealed->size > TPM_DATA_CAPACITY)
            result = fail(&chain, -EBADMSG, "it holds more than was ever sealed");
    }
    if (result == 0) {
        *size = unsealed->size;
        memcpy(data, unsealed->buffer, unsealed->size);
    }
    if (unsealed != NULL) {
        explicit_bzero(unsealed, sizeof *unsealed);
        chain.tss->Esys_Free(unsealed);
    }
    if (chain.esys != NULL)
        flush(&chain, object);
    chain_close(&chain);
    return result;
}
