/* SPDX-License-Identifier: Apache-2.0 */
#include "curl_client.h"

#include <stdint.h>

CURLcode ccurl_set_number(CURL *curl, CURLoption option, long value)
{
    return curl_easy_setopt(curl, option, value);
}

CURLcode ccurl_set_size(CURL *curl, CURLoption option, curl_off_t value)
{
    return curl_easy_setopt(curl, option, value);
}

CURLcode ccurl_set_text(CURL *curl, CURLoption option, const char *value)
{
    return curl_easy_setopt(curl, option, value);
}

CURLcode ccurl_set_pointer(CURL *curl, CURLoption option, void *value)
{
    return curl_easy_setopt(curl, option, value);
}

CURLcode ccurl_set_bytes(CURL *curl, CURLoption option, const void *bytes, size_t size)
{
    struct curl_blob blob = {(void *)(uintptr_t)bytes, size, CURL_BLOB_COPY};
    return curl_easy_setopt(curl, option, &blob);
}

void ccurl_set_callbacks(CURL *curl, ccurl_receive body, ccurl_receive headers,
                         curl_xferinfo_callback progress, void *context)
{
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, context);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, headers);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, context);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, context);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
}

long ccurl_number(CURL *curl, CURLINFO info)
{
    long value = 0;
    return curl_easy_getinfo(curl, info, &value) == CURLE_OK ? value : 0;
}
