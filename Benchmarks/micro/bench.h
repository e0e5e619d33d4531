/* SPDX-License-Identifier: Apache-2.0 */
/* What the micro-benchmarks share: thread CPU time and medians. */
#ifndef MICRO_BENCH_H
#define MICRO_BENCH_H

#include <stdlib.h>
#include <time.h>

/* CPU time of this thread in ns: other load on the machine does not count. */
static inline double cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts `values`. */
static inline double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

#endif
