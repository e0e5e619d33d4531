/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CTPM: seals a few bytes to the machine's TPM 2.0 and gets them back, by tpm2-tss, which is loaded
 * at run time: a host without it has no TPM as far as this is concerned.
 *
 * What is sealed opens on that TPM only, in whatever state the machine is (no PCR is part of it),
 * and no longer once the TPM's owner hierarchy was cleared. On the wire to the chip it is
 * encrypted.
 *
 * Thread-safety: one call at a time. Errors: 0 or a negative errno, with one line in `error_text`
 * (TPM_ERROR_CAPACITY bytes) that names what was tried and why it failed.
 */
#ifndef NEXUSGUARD_TPM_SEAL_H
#define NEXUSGUARD_TPM_SEAL_H

#include <stddef.h>
#include <stdint.h>

#define TPM_ERROR_CAPACITY 256
#define TPM_DATA_CAPACITY  128 /* of what is sealed; TPM 2.0 part 2, MAX_SYM_DATA */
#define TPM_BLOB_CAPACITY  2048

/*
 * `tcti` says how to reach the TPM, as Tss2_TctiLdr_Initialize(3) has it, for instance
 * "device:/dev/tpmrm0". Fills `blob`, which only that TPM can open. -ENOSYS: tpm2-tss is not
 * installed; -ENODEV: no TPM answers; -EIO: it refuses.
 */
int tpm_seal(const char *tcti, const uint8_t *data, size_t size, uint8_t *blob, size_t *blob_size,
             char *error_text);

/* Fills `data`; the caller erases it. -EBADMSG: `blob` is damaged, or another TPM's; else as
 * above. */
int tpm_unseal(const char *tcti, const uint8_t *blob, size_t blob_size, uint8_t *data, size_t *size,
               char *error_text);

#endif
