/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who signed what (C70). libcurl tells of certificates after a successful handshake only, and a
 * refused one is what people need to hear of; so OpenSSL's callback for each certificate of a chain
 * takes notes (SSL_CTX_set_verify(3)) and passes OpenSSL's own verdict on unchanged.
 */
#include "curl_client.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_once_t index_once = PTHREAD_ONCE_INIT;
static int note_index = -1;

static void make_index(void)
{
    note_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

/* Control characters and whatever is not ASCII come out escaped: the text is the server's. */
static void write_name(const X509_NAME *name, char *text, int size)
{
    BIO *bio = BIO_new(BIO_s_mem());
    if (bio == NULL)
        return;
    if (X509_NAME_print_ex(bio, name, 0, XN_FLAG_ONELINE) >= 0) {
        int length = BIO_read(bio, text, size - 1);
        text[length > 0 ? length : 0] = '\0';
    }
    BIO_free(bio);
}

/* RFC 7469 section 2.4: the hash covers the DER form of SubjectPublicKeyInfo. */
static void write_pin(X509 *certificate, char *text, size_t size)
{
    unsigned char *info = NULL, digest[EVP_MAX_MD_SIZE], base64[2 * EVP_MAX_MD_SIZE];
    unsigned digest_length = 0;
    int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &info);
    if (length <= 0)
        return;
    if (EVP_Digest(info, (size_t)length, digest, &digest_length, EVP_sha256(), NULL) == 1) {
        EVP_EncodeBlock(base64, digest, (int)digest_length);
        snprintf(text, size, "sha256//%s", (const char *)base64);
    }
    OPENSSL_free(info);
}

static int note(int verdict, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct ccurl_certificate *seen = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), note_index);
    X509 *leaf = X509_STORE_CTX_get0_cert(store);
    if (seen == NULL || leaf == NULL)
        return verdict;
    if (seen->pin[0] == '\0') {
        write_name(X509_get_subject_name(leaf), seen->subject, sizeof seen->subject);
        write_name(X509_get_issuer_name(leaf), seen->issuer, sizeof seen->issuer);
        write_pin(leaf, seen->pin, sizeof seen->pin);
    }
    if (verdict == 0 && seen->problem[0] == '\0') {
        const char *text = X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));
        snprintf(seen->problem, sizeof seen->problem, "%s", text);
    }
    return verdict;
}

static CURLcode install(CURL *curl, void *context, void *seen)
{
    (void)curl;
    pthread_once(&index_once, make_index);
    if (note_index >= 0 && SSL_CTX_set_ex_data(context, note_index, seen) == 1) {
        memset(seen, 0, sizeof(struct ccurl_certificate));
        SSL_CTX_set_verify(context, SSL_CTX_get_verify_mode(context), note);
    }
    return CURLE_OK;
}

CURLcode ccurl_observe_certificate(CURL *curl, struct ccurl_certificate *seen)
{
    CURLcode status = curl_easy_setopt(curl, CURLOPT_SSL_CTX_DATA, seen);
    if (status != CURLE_OK)
        return status;
    return curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, install);
}
