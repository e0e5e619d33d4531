// SPDX-License-Identifier: Apache-2.0
/* Errors that a healthy kernel does not produce, injected through tun_io. */
#include "tun_device.h"

/* ---- injected errors ----------------------------------------------------------------------- */

/* A device that refuses what it is told to, and records the packets it took. */
struct fake_device {
    int refuse_type; /* EINVAL to frames of this gso_type; -1: none */
    int errors[16];  /* first, one errno per call; 0: as usual */
    unsigned calls;
    unsigned taken; /* frames */
    uint8_t taken_bytes[64][2048];
    size_t taken_length[64];
};

static ssize_t fake_writev(void *context, int fd, const struct iovec *iov, int count)
{
    struct fake_device *fake = context;
    const struct virtio_net_hdr *header = iov[0].iov_base;
    size_t length = 0;
    (void)fd;

    unsigned call = fake->calls++;
    if (call < 16 && fake->errors[call] != 0) {
        errno = fake->errors[call];
        return -1;
    }
    if (header->gso_type == fake->refuse_type) {
        errno = EINVAL;
        return -1;
    }
    if (fake->taken < 64) {
        for (int i = 1; i < count; i++) {
            if (length + iov[i].iov_len <= sizeof(fake->taken_bytes[0]))
                memcpy(fake->taken_bytes[fake->taken] + length, iov[i].iov_base, iov[i].iov_len);
            length += iov[i].iov_len;
        }
        fake->taken_length[fake->taken] = length;
    }
    fake->taken++;
    return (ssize_t)(length + iov[0].iov_len);
}

static ssize_t fake_readv(void *context, int fd, const struct iovec *iov, int count)
{
    struct fake_device *fake = context;
    (void)fd;
    unsigned call = fake->calls++;
    if (call < 16 && fake->errors[call] != 0) {
        errno = fake->errors[call];
        return -1;
    }
    return (ssize_t)(iov[0].iov_len + (count > 1 ? iov[1].iov_len : 0) + 5); /* too long a frame */
}

static const struct tun_io fake_io = {.readv = fake_readv, .writev = fake_writev};
static struct fake_device fake;
static struct tun fake_tun;
static struct tun_queue fake_queue;

static void fake_begin(void)
{
    memset(&fake, 0, sizeof(fake));
    memset(&counters, 0, sizeof(counters));
    fake.refuse_type = -1;
    fake_tun = (struct tun){.vnet_hdr = true, .merge_tcp = true, .merge_udp = true};
    fake_queue.fd = -1;
    fake_queue.io = &fake_io;
    fake_queue.io_context = &fake;
    fake_queue.tun = &fake_tun;
}

static void expect_originals(const struct packet_spec *first, uint32_t from, uint32_t count)
{
    struct packet_spec spec = *first;
    for (uint32_t i = 0; i < count; i++, spec = follow(spec)) {
        static uint8_t original[2048];
        uint32_t length = packet_build(&spec, original);
        assert_int_equal(fake.taken_length[from + i], length);
        assert_memory_equal(fake.taken_bytes[from + i], original, length);
    }
}

static void pitfall_15_a_refused_train_is_written_as_single_packets(void **state)
{
    (void)state;
    struct {
        struct packet_spec spec;
        int type;
        enum fallback_reason reason, other;
    } cases[] = {
        {packet_tcp(4), VIRTIO_NET_HDR_GSO_TCPV4, FALLBACK_TUN_TCP_MERGE_REFUSED,
         FALLBACK_TUN_UDP_MERGE_REFUSED},
        {packet_tcp(6), VIRTIO_NET_HDR_GSO_TCPV6, FALLBACK_TUN_TCP_MERGE_REFUSED,
         FALLBACK_TUN_UDP_MERGE_REFUSED},
        {packet_udp(4), VIRTIO_NET_HDR_GSO_UDP_L4, FALLBACK_TUN_UDP_MERGE_REFUSED,
         FALLBACK_TUN_TCP_MERGE_REFUSED},
        {packet_udp(6), VIRTIO_NET_HDR_GSO_UDP_L4, FALLBACK_TUN_UDP_MERGE_REFUSED,
         FALLBACK_TUN_TCP_MERGE_REFUSED},
    };
    for (size_t c = 0; c < 4; c++) {
        fake_begin();
        fake.refuse_type = cases[c].type;
        uint64_t calls = 0;
        build_train(cases[c].spec, 20);
        assert_true(tun_write(&fake_queue, packets, 20, &counters, &calls));
        assert_int_equal(calls, 21);
        assert_int_equal(fake.taken, 20);
        expect_originals(&cases[c].spec, 0, 20); /* byte for byte */
        assert_int_equal(fallbacks(cases[c].reason), 1);
        assert_int_equal(fallbacks(cases[c].other), 0);
        assert_int_equal(drops(DROP_TUN_WRITE_FAILED), 0);
        bool udp = cases[c].type == VIRTIO_NET_HDR_GSO_UDP_L4;
        assert_int_equal(fake_tun.merge_udp, !udp);
        assert_int_equal(fake_tun.merge_tcp, udp);

        /* from now on it is not even tried */
        build_train(cases[c].spec, 20);
        assert_true(tun_write(&fake_queue, packets, 20, &counters, &calls));
        assert_int_equal(calls, 41);
        assert_int_equal(fallbacks(cases[c].reason), 1);
    }
}

/* Frames of that kind later in the same batch are not tried again, the other kind still is. */
static void pitfall_15_one_refusal_settles_the_rest_of_the_batch(void **state)
{
    (void)state;
    struct packet_spec a = packet_udp(4), b = packet_udp(4), c = packet_tcp(4);
    fake_begin();
    fake.refuse_type = VIRTIO_NET_HDR_GSO_UDP_L4;
    b.source_port++;
    uint32_t n = 0;
    for (int i = 0; i < 5; i++, a = follow(a), b = follow(b), c = follow(c)) {
        packets[n] = (struct packet){bytes[n], packet_build(&a, bytes[n])}, n++;
        packets[n] = (struct packet){bytes[n], packet_build(&b, bytes[n])}, n++;
        packets[n] = (struct packet){bytes[n], packet_build(&c, bytes[n])}, n++;
    }
    uint64_t calls = 0;
    assert_true(tun_write(&fake_queue, packets, n, &counters, &calls));
    assert_int_equal(calls, 1 + 5 + 5 + 1);
    assert_int_equal(fake.taken, 11);
    assert_int_equal(fallbacks(FALLBACK_TUN_UDP_MERGE_REFUSED), 1);
    struct packet_spec first = packet_udp(4);
    expect_originals(&first, 0, 5);
    first.source_port++;
    expect_originals(&first, 5, 5);
}

static void a_refused_single_packet_is_counted_and_disables_nothing(void **state)
{
    (void)state;
    fake_begin();
    fake.errors[0] = EINVAL;
    fake.errors[1] = ENOBUFS;
    uint64_t calls = 0;
    struct packet_spec a = packet_udp(4), b = packet_udp(6);
    for (int i = 0; i < 2; i++) {
        packets[0] = (struct packet){bytes[0], packet_build(&a, bytes[0])};
        packets[1] = (struct packet){bytes[1], packet_build(&b, bytes[1])};
        assert_true(tun_write(&fake_queue, packets, 2, &counters, &calls));
    }
    assert_int_equal(drops(DROP_TUN_WRITE_FAILED), 2);
    assert_int_equal(fake.taken, 2);
    assert_true(fake_tun.merge_tcp && fake_tun.merge_udp);
}

static void a_write_that_would_block_is_retried_a_bounded_number_of_times(void **state)
{
    (void)state;
    uint64_t calls = 0;
    fake_begin();
    fake.errors[0] = fake.errors[1] = EAGAIN;
    fake.errors[2] = EINTR;
    build_train(packet_tcp(4), 10);
    assert_true(tun_write(&fake_queue, packets, 10, &counters, &calls));
    assert_int_equal(fake.taken, 1);
    assert_int_equal(calls, 4);
    assert_int_equal(drops(DROP_TUN_WRITE_FAILED), 0);

    fake_begin();
    for (int i = 0; i < 16; i++)
        fake.errors[i] = EAGAIN;
    calls = 0;
    build_train(packet_tcp(4), 10);
    assert_true(tun_write(&fake_queue, packets, 10, &counters, &calls));
    assert_int_equal(fake.taken, 0);
    assert_int_equal(calls, 6);
    assert_int_equal(drops(DROP_TUN_WRITE_FAILED), 10);
}

static void short_of_memory_a_train_is_tried_in_pieces(void **state)
{
    (void)state;
    uint64_t calls = 0;
    struct packet_spec spec = packet_tcp(6);
    fake_begin();
    fake.errors[0] = ENOMEM;
    build_train(spec, 5);
    assert_true(tun_write(&fake_queue, packets, 5, &counters, &calls));
    assert_int_equal(fake.taken, 5);
    expect_originals(&spec, 0, 5);
    assert_true(fake_tun.merge_tcp);
    assert_int_equal(fallbacks(FALLBACK_TUN_TCP_MERGE_REFUSED), 0);
}

static void pitfall_20_eio_is_survived_and_ebadfd_ends(void **state)
{
    (void)state;
    struct virtio_net_hdr header;
    size_t length = 0;
    uint64_t calls = 0;

    fake_begin();
    fake.errors[0] = EIO;
    fake.errors[1] = EAGAIN;
    fake.errors[2] = EINTR;
    fake.errors[3] = ENOBUFS;
    fake.errors[4] = EBADFD;
    assert_int_equal(tun_read(&fake_queue, &header, frame, &length), TUN_READ_DOWN);
    assert_int_equal(tun_read(&fake_queue, &header, frame, &length), TUN_READ_EMPTY);
    assert_int_equal(tun_read(&fake_queue, &header, frame, &length), TUN_READ_EMPTY);
    assert_int_equal(tun_read(&fake_queue, &header, frame, &length), TUN_READ_ENDED);
    /* a frame longer than the buffer: never a length beyond it */
    assert_int_equal(tun_read(&fake_queue, &header, frame, &length), TUN_READ_FRAME);
    assert_int_equal(length, TUN_FRAME_CAPACITY);

    fake_begin();
    fake.errors[0] = EIO;
    build_train(packet_tcp(4), 10);
    assert_true(tun_write(&fake_queue, packets, 10, &counters, &calls));
    assert_int_equal(drops(DROP_LINK_DOWN), 10);
    fake_begin();
    fake.errors[0] = EBADFD;
    build_train(packet_tcp(4), 10);
    assert_false(tun_write(&fake_queue, packets, 10, &counters, &calls));
    fake_begin();
    fake.errors[0] = EINVAL;
    fake.errors[3] = EBADFD;
    build_train(packet_tcp(4), 10);
    assert_false(tun_write(&fake_queue, packets, 10, &counters, &calls));
    assert_int_equal(fake.taken, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEVICE_TEST(pitfall_15_a_refused_train_is_written_as_single_packets),
        DEVICE_TEST(pitfall_15_one_refusal_settles_the_rest_of_the_batch),
        DEVICE_TEST(a_refused_single_packet_is_counted_and_disables_nothing),
        DEVICE_TEST(a_write_that_would_block_is_retried_a_bounded_number_of_times),
        DEVICE_TEST(short_of_memory_a_train_is_tried_in_pieces),
        DEVICE_TEST(pitfall_20_eio_is_survived_and_ebadfd_ends),
    };
    enter_namespace();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
