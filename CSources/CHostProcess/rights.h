/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by those who give up rights. The two filters need no_new_privs set and hold for the
 * calling thread and all it starts. */
#ifndef CHOSTPROCESS_RIGHTS_H
#define CHOSTPROCESS_RIGHTS_H

/* Of this process, or a negative errno. */
int thread_count(void);

/* Signals of crashes end the process and do nothing else. */
void crash_quietly(void);

/* No core files, no words at a crash, and nobody attaches. 0 or a negative errno. */
int forbid_dumps(void);

/* No file access but removing names beneath `removable` (NULL-terminated); no TCP; no signal to
 * and no abstract socket of another process, as far as the kernel knows these. Returns the ABI
 * version used, 0 without Landlock, or a negative errno. */
int landlock_enter(const char *const *removable);

/* The allow-list of system calls. 0 or a negative errno. */
int seccomp_enter(void);

#endif
