/* SPDX-License-Identifier: Apache-2.0 */
/* Moments as RFC 3339 writes them, in UTC. */
#include "include/host_process.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

void host_time_text(int64_t milliseconds, char text[HOST_TIME_CAPACITY])
{
    int64_t part = (milliseconds % 1000 + 1000) % 1000; /* rounded down, also before 1970 */
    time_t seconds = (time_t)((milliseconds - part) / 1000);
    struct tm moment;
    char whole[HOST_TIME_CAPACITY - 5] = "";
    if (gmtime_r(&seconds, &moment) != NULL)
        strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S", &moment);
    snprintf(text, HOST_TIME_CAPACITY, "%s.%03dZ", whole, (int)part);
}

/* Reads ".5" as 500; any number of digits. */
static const char *read_fraction(const char *text, int64_t *milliseconds)
{
    size_t digits = *text == '.' ? strspn(text + 1, "0123456789") : 0;
    *milliseconds = 0;
    if (digits == 0)
        return text;
    for (size_t i = 0; i < 3; i++)
        *milliseconds = *milliseconds * 10 + (i < digits ? text[1 + i] - '0' : 0);
    return text + 1 + digits;
}

bool host_time_parse(const char *text, int64_t *milliseconds)
{
    static const char *const formats[] = {
        "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d",
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct tm moment = {0}, zone = {0};
        int64_t part;
        const char *rest = strptime(text, formats[i], &moment);
        if (rest == NULL)
            continue;
        rest = read_fraction(rest, &part);
        if (*rest != '\0') {
            rest = strptime(rest, "%z", &zone);
            if (rest == NULL || *rest != '\0')
                continue;
        }
        int day = moment.tm_mday;
        time_t seconds = timegm(&moment);
        if (moment.tm_mday != day) /* the 31st of February is not the 3rd of March */
            return false;
        *milliseconds = ((int64_t)seconds - zone.tm_gmtoff) * 1000 + part;
        return true;
    }
    return false;
}
