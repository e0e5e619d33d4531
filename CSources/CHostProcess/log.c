/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines to standard error or to syslog(3). */
#include "include/host_process.h"
#include "io.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

#define LINE_CAPACITY 1024

static enum host_log_target target = HOST_LOG_STDERR;
static bool to_journal; /* standard error is the journal, which reads "<priority>" (sd-daemon(3)) */
static char program[32];
static pthread_mutex_t subject_lock = PTHREAD_MUTEX_INITIALIZER;
static char subject[32]; /* guarded by it */

void host_log_open(enum host_log_target where, const char *program_name, const char *subject_name)
{
    target = where;
    to_journal = getenv("JOURNAL_STREAM") != NULL;
    snprintf(program, sizeof program, "%s", program_name);
    host_log_rename(subject_name);
    if (where == HOST_LOG_SYSLOG) {
        tzset(); /* reads /etc/localtime while that is possible */
        openlog(program, LOG_NDELAY | LOG_PID, LOG_DAEMON);
    }
}

void host_log_rename(const char *subject_name)
{
    pthread_mutex_lock(&subject_lock);
    snprintf(subject, sizeof subject, "%s", subject_name);
    pthread_mutex_unlock(&subject_lock);
}

static const char *name_of(int priority)
{
    switch (priority) {
    case LOG_DEBUG:
        return "debug";
    case LOG_INFO:
        return "info";
    case LOG_WARNING:
        return "warning";
    default:
        return "error";
    }
}

void host_log(int priority, const char *text)
{
    char about[sizeof subject];
    pthread_mutex_lock(&subject_lock);
    memcpy(about, subject, sizeof about);
    pthread_mutex_unlock(&subject_lock);
    if (target == HOST_LOG_SYSLOG) {
        syslog(priority, "%s: %s", about, text);
        return;
    }
    /* One write, so that lines of several threads never mix. */
    char line[LINE_CAPACITY];
    int length;
    if (to_journal)
        length = snprintf(line, sizeof line, "<%d>%s: %s\n", priority, about, text);
    else
        length = snprintf(line, sizeof line, "%s[%s]: %s: %s\n", program, about, name_of(priority),
                          text);
    if (length >= (int)sizeof line) {
        length = sizeof line - 1;
        line[length - 1] = '\n';
    }
    write_all(STDERR_FILENO, line, (size_t)length);
}
