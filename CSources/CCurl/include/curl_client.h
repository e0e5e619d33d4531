/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl's easy interface, and what the Swift importer cannot express of it: typed forms of
 * functions with a variable number of arguments, and a look at the certificate that a TLS server
 * showed, also where it was refused.
 *
 * Thread-safety: one handle is used by one thread at a time.
 */
#ifndef NEXUSGUARD_CURL_CLIENT_H
#define NEXUSGUARD_CURL_CLIENT_H

#include <curl/curl.h>
#include <stddef.h>

CURLcode ccurl_set_number(CURL *curl, CURLoption option, long value);
CURLcode ccurl_set_size(CURL *curl, CURLoption option, curl_off_t value);
/* libcurl copies the text. */
CURLcode ccurl_set_text(CURL *curl, CURLoption option, const char *value);
/* It must live as long as `curl` may use it. */
CURLcode ccurl_set_pointer(CURL *curl, CURLoption option, void *value);
/* Copied. `size` must not be 0. */
CURLcode ccurl_set_bytes(CURL *curl, CURLoption option, const void *bytes, size_t size);

typedef size_t (*ccurl_receive)(char *bytes, size_t size, size_t count, void *context);

/* Where answers go. `headers` gets one line at a time. All three may run during
 * curl_easy_perform(3) only. `progress` other than 0 ends the transfer. */
void ccurl_set_callbacks(CURL *curl, ccurl_receive body, ccurl_receive headers,
                         curl_xferinfo_callback progress, void *context);

long ccurl_number(CURL *curl, CURLINFO info);

/* Of the last certificate that a server showed; all "" when it showed none. */
struct ccurl_certificate {
    char subject[256], issuer[256];
    char problem[128]; /* why it was not trusted; "": no reason was found by then */
    char pin[64];      /* "sha256//" and the base64 of the hash of its public key (SPKI) */
};

/* `seen` is written during curl_easy_perform(3). Verification is not changed by this. */
CURLcode ccurl_observe_certificate(CURL *curl, struct ccurl_certificate *seen);

#endif
