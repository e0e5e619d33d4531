// SPDX-License-Identifier: Apache-2.0
/* Devices made, refused, taken over: names, flags, the offload ladder, error texts. */
#include "tun_device.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <sys/wait.h>

/* ---- creation ------------------------------------------------------------------------------ */

static void creates_a_device_with_every_offload(void **state)
{
    (void)state;
    open_default();
    assert_true(tun.made_here && tun.vnet_hdr && tun.tso && tun.uso);
    assert_true(tun.merge_tcp && tun.merge_udp);
    assert_int_equal(tun.queue_count, 1);
    for (int i = 0; i < FALLBACK_COUNT; i++)
        assert_int_equal(fallbacks((enum fallback_reason)i), 0);

    int size = 0, fd = tun.queue[0]->fd;
    struct ifreq request = {0};
    assert_int_equal(ioctl(fd, TUNGETVNETHDRSZ, &size), 0);
    assert_int_equal(size, 10);
    assert_int_equal(ioctl(fd, TUNGETIFF, &request), 0);
    assert_int_equal(request.ifr_flags & (IFF_TUN | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE),
                     IFF_TUN | IFF_NO_PI | IFF_VNET_HDR);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);

    struct tun_link_state link;
    assert_true(tun_link_query(NAME, &link));
    assert_int_equal(link.mtu, DEFAULT_MTU);
    assert_false(link.up);
    int control = socket(AF_INET, SOCK_DGRAM, 0);
    strcpy(request.ifr_name, NAME);
    assert_int_equal(ioctl(control, SIOCGIFTXQLEN, &request), 0);
    assert_int_equal(request.ifr_qlen, 1000);
    close(control);
    tun_close(&tun);
    assert_int_equal(if_nametoindex(NAME), 0);
}

static void options_switch_rungs_off_without_counting_fallbacks(void **state)
{
    (void)state;
    struct {
        struct tunnel_options options;
        bool vnet_hdr, tso, uso, tcp, udp;
    } cases[] = {
        {{.no_tun_uso = true}, true, true, false, true, true},
        {{.no_tun_gso = true}, true, false, false, true, true},
        {{.no_tun_merge = true}, true, true, true, false, false},
        {{.no_tun_udp_merge = true}, true, true, true, true, false},
        {{.no_vnet_hdr = true}, false, false, false, false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tunnel_options options = cases[i].options;
        strcpy(options.name, NAME);
        options.tun_fd = -1;
        options.mtu = 1380;
        assert_int_equal(open_with(&options, 1), 0);
        assert_int_equal(tun.vnet_hdr, cases[i].vnet_hdr);
        assert_int_equal(tun.tso, cases[i].tso);
        assert_int_equal(tun.uso, cases[i].uso);
        assert_int_equal(tun.merge_tcp, cases[i].tcp);
        assert_int_equal(tun.merge_udp, cases[i].udp);
        for (int f = 0; f < FALLBACK_COUNT; f++)
            assert_int_equal(fallbacks((enum fallback_reason)f), 0);
        struct tun_link_state link;
        assert_true(tun_link_query(NAME, &link));
        assert_int_equal(link.mtu, 1380);
        tun_close(&tun);
    }
}

/* The kernel takes the sets together and no other way. */
static void pitfall_17_offloads_are_requested_together(void **state)
{
    (void)state;
    open_default();
    int fd = tun.queue[0]->fd;
    assert_true(tun.uso);
    errno = 0;
    assert_int_equal(ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | 0x20), -1); /* USO4 alone */
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ioctl(fd, TUNSETOFFLOAD, 0x20 | 0x40), -1); /* USO without CSUM */
    assert_int_equal(errno, EINVAL);
}

static void several_queues_are_queues_of_one_device(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    assert_int_equal(open_with(&options, 3), 0);
    assert_int_equal(tun.queue_count, 3);
    for (unsigned i = 0; i < 3; i++) {
        struct ifreq request = {0};
        assert_int_equal(ioctl(tun.queue[i]->fd, TUNGETIFF, &request), 0);
        assert_string_equal(request.ifr_name, NAME);
        assert_true(request.ifr_flags & IFF_MULTI_QUEUE);
        assert_true(request.ifr_flags & IFF_VNET_HDR);
        assert_true(fcntl(tun.queue[i]->fd, F_GETFL) & O_NONBLOCK);
    }
    tun_close(&tun);
    assert_int_equal(if_nametoindex(NAME), 0);
}

/* A second engine on one name must not become another queue of the first one's device. */
static void a_name_in_use_is_refused_with_what_to_do(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    for (unsigned queues = 1; queues <= 2; queues++) {
        assert_int_equal(open_with(&options, queues), 0);
        struct tun second;
        assert_int_equal(tun_open(&second, &options, queues, &counters, error_text), -EBUSY);
        assert_string_equal(error_text, "cannot create interface '" NAME
                                        "': name already in use by another interface; choose "
                                        "another name or delete it");
        assert_int_equal(tun.queue_count, queues);
        tun_close(&tun);
    }
    strcpy(options.name, "lo"); /* exists and is no TUN device */
    assert_int_equal(open_with(&options, 1), -EBUSY);
    assert_non_null(strstr(error_text, "'lo'"));
    assert_int_equal(open_with(&options, 2), -EBUSY);
}

static void invalid_names_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"", ".", "..", "a/b", "a b", "wg%d", "a:1", "tab\t"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct tunnel_options options = default_options();
        strcpy(options.name, names[i]);
        assert_int_equal(open_with(&options, 1), -EINVAL);
        assert_non_null(strstr(error_text, "interface name"));
    }
    struct tunnel_options options = default_options();
    memset(options.name, 'x', sizeof(options.name)); /* no terminator */
    assert_int_equal(open_with(&options, 1), -EINVAL);
}

static void an_impossible_mtu_leaves_no_device_behind(void **state)
{
    (void)state;
    struct tunnel_options options = default_options();
    options.mtu = 70000;
    assert_int_equal(open_with(&options, 1), -EINVAL);
    assert_non_null(strstr(error_text, "cannot set MTU 70000 on interface '" NAME "'"));
    assert_int_equal(if_nametoindex(NAME), 0);
}

/* In a child that gave up root: cmocka's state stays in the parent. */
static void without_cap_net_admin_the_error_names_it(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct tunnel_options options = default_options();
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(2);
        int result = tun_open(&tun, &options, 1, &counters, error_text);
        _exit(result == -EPERM && strstr(error_text, NAME) != NULL ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- descriptors handed in ----------------------------------------------------------------- */

static int make_device(unsigned flags)
{
    struct ifreq request = {.ifr_name = NAME, .ifr_flags = (short)flags};
    int fd = open("/dev/net/tun", O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, TUNSETIFF, &request), 0);
    return fd;
}

static void takes_over_a_descriptor_and_sets_its_header_size(void **state)
{
    (void)state;
    struct tunnel_options options = {.tun_fd = make_device(IFF_TUN | IFF_NO_PI | IFF_VNET_HDR)};
    int size = 12;
    assert_int_equal(ioctl(options.tun_fd, TUNSETVNETHDRSZ, &size), 0);
    assert_int_equal(open_with(&options, 4), 0);
    assert_string_equal(tun.name, NAME);
    assert_false(tun.made_here);
    assert_true(tun.vnet_hdr && tun.tso && tun.uso && tun.merge_tcp);
    assert_int_equal(tun.queue_count, 1);
    assert_int_equal(ioctl(options.tun_fd, TUNGETVNETHDRSZ, &size), 0);
    assert_int_equal(size, 10);
    assert_true(fcntl(options.tun_fd, F_GETFL) & O_NONBLOCK);
    struct tun_link_state link;
    assert_true(tun_link_query(NAME, &link));
    assert_int_equal(link.mtu, 1500); /* unchanged */
}

static void a_descriptor_without_vnet_header_runs_without_offloads(void **state)
{
    (void)state;
    struct tunnel_options options = {.tun_fd = make_device(IFF_TUN | IFF_NO_PI), .mtu = 1300};
    assert_int_equal(open_with(&options, 1), 0);
    assert_false(tun.vnet_hdr || tun.tso || tun.uso || tun.merge_tcp || tun.merge_udp);
    assert_int_equal(fallbacks(FALLBACK_TUN_WITHOUT_VNET_HDR), 1);
    set_flags(NAME, IFF_UP, 0);
    set_addresses();
    int fd = udp_socket(AF_INET, 7000);
    struct packet_spec spec = packet_udp(4);
    spec.destination_port = 7000;
    build_train(spec, 3);
    uint64_t calls = 0;
    assert_true(tun_write(tun.queue[0], packets, 3, &counters, &calls));
    assert_int_equal(calls, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(recv(fd, segment, sizeof(segment), 0), 100);
    close(fd);
}

static void a_descriptor_that_is_no_tun_device_is_refused_and_stays_open(void **state)
{
    (void)state;
    struct tunnel_options options = {.tun_fd = open("/dev/null", O_RDWR)};
    assert_int_equal(open_with(&options, 1), -EINVAL);
    assert_true(fcntl(options.tun_fd, F_GETFD) >= 0);
    close(options.tun_fd);
    options.tun_fd = make_device(IFF_TAP | IFF_NO_PI);
    assert_int_equal(open_with(&options, 1), -EINVAL);
    assert_non_null(strstr(error_text, NAME));
    close(options.tun_fd);
    options.tun_fd = make_device(IFF_TUN); /* with packet information in front */
    assert_int_equal(open_with(&options, 1), -EINVAL);
    close(options.tun_fd);
}

/* `ip tuntap add mode tun`: a device without owner process is there to be used. */
static void adopts_a_persistent_device_that_nobody_uses(void **state)
{
    (void)state;
    int fd = make_device(IFF_TUN | IFF_NO_PI);
    assert_int_equal(ioctl(fd, TUNSETPERSIST, 1), 0);
    close(fd);
    open_default();
    assert_false(tun.made_here);
    assert_true(tun.vnet_hdr && tun.uso);
    struct tun second;
    struct tunnel_options options = default_options();
    assert_int_equal(tun_open(&second, &options, 1, &counters, error_text), -EBUSY);
    assert_int_equal(ioctl(tun.queue[0]->fd, TUNSETPERSIST, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(creates_a_device_with_every_offload),
        DEVICE_TEST(options_switch_rungs_off_without_counting_fallbacks),
        DEVICE_TEST(pitfall_17_offloads_are_requested_together),
        DEVICE_TEST(several_queues_are_queues_of_one_device),
        DEVICE_TEST(a_name_in_use_is_refused_with_what_to_do),
        DEVICE_TEST(invalid_names_are_refused),
        DEVICE_TEST(an_impossible_mtu_leaves_no_device_behind),
        DEVICE_TEST(without_cap_net_admin_the_error_names_it),
        DEVICE_TEST(takes_over_a_descriptor_and_sets_its_header_size),
        DEVICE_TEST(a_descriptor_without_vnet_header_runs_without_offloads),
        DEVICE_TEST(a_descriptor_that_is_no_tun_device_is_refused_and_stays_open),
        DEVICE_TEST(adopts_a_persistent_device_that_nobody_uses),
    };
    enter_namespace();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
