// SPDX-License-Identifier: Apache-2.0
/* Who has changed the link and then asks the engine is answered by one that knows. No thread of the
 * engine runs here: nobody but the asking call can have noticed. */
#include "tun_device.h"
#include "tunnel.h"

static struct tunnel *tunnel;

static int create(void **state)
{
    (void)state;
    struct tunnel_options options;
    tunnel_options_init(&options);
    strcpy(options.name, NAME);
    if (tunnel_create(&options, &tunnel, error_text) != 0)
        fail_msg("%s", error_text);
    return 0;
}

static int destroy(void **state)
{
    (void)state;
    tunnel_destroy(tunnel);
    return 0;
}

static struct tunnel_device_state device(void)
{
    struct tunnel_device_state out;
    tunnel_get_device(tunnel, &out);
    return out;
}

/* Whether a datagram to `port` finds a socket: without one the kernel refuses the next. */
static bool is_listening(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    bool refused;
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(send(fd, "", 1, 0), 1);
    refused = send(fd, "", 1, 0) < 0 && errno == ECONNREFUSED;
    close(fd);
    return !refused;
}

static void a_device_that_is_asked_knows_that_its_link_is_up(void **state)
{
    (void)state;
    assert_false(device().up);
    assert_int_equal(device().listen_port, 0);
    set_flags(NAME, IFF_UP, 0);
    struct tunnel_device_state now = device();
    assert_true(now.up);
    assert_int_not_equal(now.listen_port, 0);
    assert_true(is_listening(now.listen_port));
    set_flags(NAME, 0, IFF_UP);
    assert_false(device().up);
}

static void so_does_one_that_is_asked_for_counters(void **state)
{
    (void)state;
    struct tunnel_device_change port = {.fields = TUNNEL_DEVICE_LISTEN_PORT, .listen_port = 51820};
    struct tunnel_stats stats;

    assert_int_equal(tunnel_set_device(tunnel, &port), 0);
    set_flags(NAME, IFF_UP, 0);
    tunnel_get_stats(tunnel, &stats);
    assert_true(is_listening(51820));
    assert_true(device().up);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_device_that_is_asked_knows_that_its_link_is_up, create,
                                        destroy),
        cmocka_unit_test_setup_teardown(so_does_one_that_is_asked_for_counters, create, destroy),
    };
    enter_namespace();
    set_flags("lo", IFF_UP, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
