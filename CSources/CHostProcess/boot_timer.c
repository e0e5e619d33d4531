/* SPDX-License-Identifier: Apache-2.0 */
/* An alarm that is heard after the machine has slept through it. timerfd_create(2). */
#include "include/host_process.h"
#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>

int host_boot_timer_open(void)
{
    int fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void host_boot_timer_set(int fd, int64_t milliseconds)
{
    struct itimerspec alarm = {0}; /* all zero: never */
    if (milliseconds >= 0) {
        alarm.it_value.tv_sec = milliseconds / 1000;
        alarm.it_value.tv_nsec = milliseconds % 1000 * 1000000 + 1;
    }
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &alarm, NULL);
}
