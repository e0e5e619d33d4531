/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a unix socket, and when that process has ended. */
#include "cmocka_includes.h"
#include "include/host_process.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kernel notes who called listen(2): a child of ours, on an abstract name that the kernel
 * draws. */
static pid_t serve(struct sockaddr_un *name, socklen_t *length)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    assert_int_equal(bind(listener, (struct sockaddr *)&any, sizeof any.sun_family), 0);
    *length = sizeof *name;
    assert_int_equal(getsockname(listener, (struct sockaddr *)name, length), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (listen(listener, 1) == 0)
            (void)!write(ready[1], "", 1);
        for (;;)
            pause();
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    close(listener);
    return child;
}

static void the_end_of_the_other_process_is_seen(void **state)
{
    (void)state;
    struct sockaddr_un name;
    socklen_t length;
    pid_t child = serve(&name, &length);
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(connection, (struct sockaddr *)&name, length), 0);

    struct host_peer peer;
    assert_int_equal(host_peer_identify(connection, &peer), 0);
    assert_int_equal(peer.process, child);
    int process = host_peer_process_open(connection);
    assert_true(process >= 0);
    struct pollfd entry = {.fd = process, .events = POLLIN};
    assert_int_equal(poll(&entry, 1, 0), 0);

    kill(child, SIGKILL);
    assert_int_equal(poll(&entry, 1, 10000), 1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(host_peer_process_open(connection), -ESRCH);
    close(process);
    close(connection);
}

static void a_process_does_not_wait_for_itself(void **state)
{
    (void)state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(host_peer_process_open(pair[0]), -EINVAL);
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_the_other_process_is_seen),
        cmocka_unit_test(a_process_does_not_wait_for_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
