/* SPDX-License-Identifier: Apache-2.0 */
#include "include/host_process.h"

#include "cmocka_includes.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static char directory[64], path[HOST_PATH_CAPACITY], text[HOST_ERROR_CAPACITY];

static int make_directory(void **state)
{
    (void)state;
    umask(077);
    snprintf(directory, sizeof directory, "/tmp/nghp-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/a/b/wg0.sock", directory);
    memset(text, 0, sizeof text);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    char name[128];
    unlink(path);
    snprintf(name, sizeof name, "%s/a/b", directory);
    rmdir(name);
    snprintf(name, sizeof name, "%s/a", directory);
    rmdir(name);
    return rmdir(directory); /* fails when a test left something behind */
}

static mode_t mode_of(const char *name)
{
    struct stat status;
    assert_int_equal(lstat(name, &status), 0);
    return status.st_mode;
}

static int client(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int failure = -errno;
    close(fd);
    return failure;
}

/* A bound socket of any kind under `path`, as another program would leave it. */
static int foreign_socket(int type, bool listening)
{
    char parent[128];
    snprintf(parent, sizeof parent, "%s/a", directory);
    mkdir(parent, 0755);
    snprintf(parent, sizeof parent, "%s/a/b", directory);
    mkdir(parent, 0755);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, type, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    if (listening)
        assert_int_equal(listen(fd, 4), 0);
    return fd;
}

static bool readable(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    return poll(&poller, 1, 0) == 1;
}

static void case_c85_missing_directories_are_made_0755_and_the_socket_0600(void **state)
{
    (void)state;
    struct host_listener listener;
    assert_int_equal(host_listener_open(&listener, path, text), 0);
    char parent[128];
    snprintf(parent, sizeof parent, "%s/a", directory);
    assert_int_equal(mode_of(parent) & 07777, 0755);
    snprintf(parent, sizeof parent, "%s/a/b", directory);
    assert_int_equal(mode_of(parent) & 07777, 0755);
    assert_int_equal(mode_of(path) & 07777, 0600);
    assert_true(S_ISSOCK(mode_of(path)));
    host_listener_close(&listener);
    assert_int_equal(access(path, F_OK), -1);
}

static void accepting_never_blocks(void **state)
{
    (void)state;
    struct host_listener listener;
    assert_int_equal(host_listener_open(&listener, path, text), 0);
    assert_int_equal(host_listener_accept(&listener), -EAGAIN);
    int peer = client();
    assert_true(peer >= 0);
    int fd = host_listener_accept(&listener);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    close(fd);
    close(peer);
    host_listener_close(&listener);
}

static void stale_socket_is_replaced(void **state)
{
    (void)state;
    close(foreign_socket(SOCK_STREAM, true));
    assert_int_equal(client(), -ECONNREFUSED);
    assert_int_equal(host_listener_probe(path, text), 0);
    struct host_listener listener;
    assert_int_equal(host_listener_open(&listener, path, text), 0);
    int peer = client();
    assert_true(peer >= 0);
    close(peer);
    host_listener_close(&listener);
}

/* In the place of libc's: whether the name was there when the socket began to listen. */
static bool was_there;
int listen(int fd, int backlog)
{
    was_there = access(path, F_OK) == 0;
    return (int)syscall(SYS_listen, fd, backlog);
}

static void name_appears_when_the_socket_listens_and_no_other_stays(void **state)
{
    (void)state;
    struct host_listener listener;
    for (int round = 0; round < 2; round++) {
        was_there = true;
        assert_int_equal(host_listener_open(&listener, path, text), 0);
        assert_false(was_there);
        char parent[128];
        snprintf(parent, sizeof parent, "%s/a/b", directory);
        DIR *entries = opendir(parent);
        unsigned count = 0;
        for (const struct dirent *entry; (entry = readdir(entries));)
            count += entry->d_name[0] != '.';
        closedir(entries);
        assert_int_equal(count, 1);
        int peer = client();
        assert_true(peer >= 0);
        close(peer);
        host_listener_close(&listener);
        assert_int_equal(access(path, F_OK), -1);
    }
}

static void live_socket_stays_and_says_already_running(void **state)
{
    (void)state;
    struct host_listener first, second;
    assert_int_equal(host_listener_open(&first, path, text), 0);
    assert_int_equal(host_listener_probe(path, text), -EADDRINUSE);
    assert_non_null(strstr(text, "already running"));
    assert_int_equal(host_listener_open(&second, path, text), -EADDRINUSE);
    assert_non_null(strstr(text, path));
    int peer = client();
    assert_true(peer >= 0);
    close(peer);
    assert_false(host_listener_removed(&first));
    host_listener_close(&first);
}

static void live_socket_of_another_type_stays(void **state)
{
    (void)state;
    int foreign = foreign_socket(SOCK_DGRAM, false);
    struct host_listener listener;
    assert_int_equal(host_listener_open(&listener, path, text), -EADDRINUSE);
    assert_true(S_ISSOCK(mode_of(path)));
    close(foreign);
}

static void what_is_not_a_socket_is_refused_and_stays(void **state)
{
    (void)state;
    close(foreign_socket(SOCK_STREAM, false));
    unlink(path);
    struct host_listener listener;
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_int_equal(write(file, "mine", 4), 4);
    close(file);
    assert_int_equal(host_listener_open(&listener, path, text), -EEXIST);
    assert_non_null(strstr(text, path));
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    assert_int_equal(status.st_size, 4);

    unlink(path);
    assert_int_equal(symlink("/nowhere", path), 0);
    assert_int_equal(host_listener_open(&listener, path, text), -EEXIST);
    assert_true(S_ISLNK(mode_of(path)));
}

static void impossible_paths_are_named(void **state)
{
    (void)state;
    struct host_listener listener;
    assert_int_equal(host_listener_open(&listener, "relative.sock", text), -EINVAL);
    assert_non_null(strstr(text, "relative.sock"));
    char longest[300];
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(host_listener_open(&listener, longest, text), -ENAMETOOLONG);
    assert_int_equal(host_listener_open(&listener, "/proc/none/wg0.sock", text), -ENOENT);
    assert_non_null(strstr(text, "/proc/none"));
}

static void pitfall_62_removal_of_the_name_is_told(void **state)
{
    (void)state;
    struct host_listener listener;
    assert_int_equal(host_listener_open(&listener, path, text), 0);
    assert_false(readable(listener.watch_fd));
    assert_int_equal(chmod(path, 0660), 0); /* an event, but no removal */
    assert_true(readable(listener.watch_fd));
    assert_false(host_listener_removed(&listener));
    assert_false(readable(listener.watch_fd));
    assert_int_equal(unlink(path), 0);
    assert_true(readable(listener.watch_fd));
    assert_true(host_listener_removed(&listener));
    host_listener_close(&listener);
}

static void a_new_name_in_the_directory_is_followed_and_removed_at_the_end(void **state)
{
    (void)state;
    struct host_listener listener;
    char other[256], third[128], elsewhere[128];
    snprintf(other, sizeof other, "%s/a/b/other.sock", directory);
    snprintf(third, sizeof third, "%s/a/b/third.sock", directory);
    snprintf(elsewhere, sizeof elsewhere, "%s/a/b/below", directory);
    assert_int_equal(host_listener_open(&listener, path, text), 0);
    assert_int_equal(rename(path, other), 0);
    assert_true(readable(listener.watch_fd));
    assert_false(host_listener_removed(&listener));
    assert_string_equal(listener.path, other);
    /* Others that come into the directory are not it. */
    close(open(path, O_WRONLY | O_CREAT, 0600));
    assert_int_equal(rename(path, third), 0);
    assert_false(host_listener_removed(&listener));
    assert_string_equal(listener.path, other);
    assert_int_equal(unlink(third), 0);
    /* Nobody has asked for it since. */
    assert_int_equal(rename(other, third), 0);
    host_listener_close(&listener);
    assert_int_equal(access(third, F_OK), -1);

    assert_int_equal(host_listener_open(&listener, path, text), 0);
    assert_int_equal(mkdir(elsewhere, 0700), 0);
    snprintf(other, sizeof other, "%s/other.sock", elsewhere);
    assert_int_equal(rename(path, other), 0);
    assert_true(host_listener_removed(&listener)); /* beyond its directory it is gone */
    host_listener_close(&listener);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(rmdir(elsewhere), 0);
}

static void pitfall_62_name_taken_by_another_is_told_and_left_alone(void **state)
{
    (void)state;
    struct host_listener listener;
    char other[128];
    assert_int_equal(host_listener_open(&listener, path, text), 0);
    snprintf(other, sizeof other, "%s/other", directory);
    close(open(other, O_WRONLY | O_CREAT, 0600));
    assert_int_equal(rename(other, path), 0);
    assert_true(readable(listener.watch_fd));
    assert_true(host_listener_removed(&listener));
    host_listener_close(&listener);
    assert_true(S_ISREG(mode_of(path)));
}

static void pitfall_62_adopted_socket_is_watched_but_not_removed(void **state)
{
    (void)state;
    struct host_listener listener;
    assert_int_equal(host_listener_adopt(&listener, foreign_socket(SOCK_STREAM, true), text), 0);
    assert_string_equal(listener.path, path);
    int peer = client();
    int fd = host_listener_accept(&listener);
    assert_true(fd >= 0);
    assert_int_equal(host_listener_accept(&listener), -EAGAIN);
    close(fd);
    close(peer);
    host_listener_close(&listener);
    assert_true(S_ISSOCK(mode_of(path)));

    unlink(path);
    assert_int_equal(host_listener_adopt(&listener, foreign_socket(SOCK_STREAM, true), text), 0);
    unlink(path);
    assert_true(readable(listener.watch_fd));
    assert_true(host_listener_removed(&listener));
    host_listener_close(&listener);
}

static void unnamed_socket_is_adopted_without_a_watch(void **state)
{
    (void)state;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un abstract = {.sun_family = AF_UNIX}; /* autobind */
    assert_int_equal(bind(fd, (struct sockaddr *)&abstract, sizeof abstract.sun_family), 0);
    assert_int_equal(listen(fd, 1), 0);
    struct host_listener listener;
    assert_int_equal(host_listener_adopt(&listener, fd, text), 0);
    assert_int_equal(listener.watch_fd, -1);
    assert_false(host_listener_removed(&listener));
    host_listener_close(&listener);
}

static void what_does_not_listen_is_not_adopted(void **state)
{
    (void)state;
    struct host_listener listener;
    int file = open("/dev/null", O_RDWR), bound = foreign_socket(SOCK_STREAM, false);
    int udp = socket(AF_INET, SOCK_DGRAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(listen(tcp, 1), 0);
    assert_int_equal(host_listener_adopt(&listener, file, text), -ENOTSOCK);
    assert_int_equal(host_listener_adopt(&listener, bound, text), -EINVAL);
    assert_int_equal(host_listener_adopt(&listener, udp, text), -EINVAL);
    assert_int_equal(host_listener_adopt(&listener, tcp, text), -EINVAL);
    assert_non_null(strstr(text, "not a listening unix stream socket"));
    close(file);
    close(bound);
    close(udp);
    close(tcp);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(case_c85_missing_directories_are_made_0755_and_the_socket_0600),
        TEST(accepting_never_blocks),
        TEST(stale_socket_is_replaced),
        TEST(name_appears_when_the_socket_listens_and_no_other_stays),
        TEST(live_socket_stays_and_says_already_running),
        TEST(live_socket_of_another_type_stays),
        TEST(what_is_not_a_socket_is_refused_and_stays),
        TEST(impossible_paths_are_named),
        TEST(pitfall_62_removal_of_the_name_is_told),
        TEST(a_new_name_in_the_directory_is_followed_and_removed_at_the_end),
        TEST(pitfall_62_name_taken_by_another_is_told_and_left_alone),
        TEST(pitfall_62_adopted_socket_is_watched_but_not_removed),
        TEST(unnamed_socket_is_adopted_without_a_watch),
        TEST(what_does_not_listen_is_not_adopted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
