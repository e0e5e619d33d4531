/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handshakes per second and core, each role by itself, beside what the X25519 operations alone
 * allow. Two whole engines in memory; no kernel in it.
 *
 *   handshakes [--json]
 *
 * With the static-static secret kept, either role computes four X25519 results per handshake:
 * the initiator e, es, ee, se; the responder es, e, ee, se (one of them a multiplication of the
 * base point).
 */
#include "../../Tests/CTunnelTests/simulation.h"
#include "bench.h"
#include "crypto/curve25519.h"

/* Short rounds: the ratio of two that are close to each other holds on a busy machine too. */
#define ROUNDS     201
#define PER_ROUND  15
#define OPERATIONS 4
#define PASSES     2 /* of a handshake over both nodes: initiation and response, confirmation */

static double spent[2];

/* One pass of a node's receiving and handshake work, its time kept by node. */
static void work(int i)
{
    struct thread *t = &sim.node[i].tunnel->worker[0].primary;
    double start = cpu_ns();
    while (sim.node[i].udp4.head)
        receive_batch(t, &t->sockets->v4);
    while (handshake_step(&sim.node[i].tunnel->handshake, false))
        ;
    spent[i] += cpu_ns() - start;
}

static void handshake(void)
{
    sim.now += 6 * NSEC_PER_SEC;
    sim.wall += 6 * NSEC_PER_SEC;
    handshake_request(sim_peer(0, 1), false, sim.now);
    for (int pass = 0; pass < PASSES; pass++) {
        work(0);
        work(1);
    }
    control_step(&sim.node[0].tunnel->control);
    control_step(&sim.node[1].tunnel->control);
}

/* What reading the clock adds to a node's handshake. */
static double clock_alone(void)
{
    double sum = 0;
    for (int i = 0; i < PER_ROUND * PASSES; i++) {
        double start = cpu_ns();
        sum += cpu_ns() - start;
    }
    return sum / PER_ROUND;
}

static double x25519_alone(void)
{
    uint8_t secret[32], point[32], out[32];
    x25519_generate(secret);
    x25519_public(point, secret);
    double start = cpu_ns();
    for (int i = 0; i < PER_ROUND; i++) {
        x25519_public(out, secret);
        for (int k = 1; k < OPERATIONS; k++)
            if (!x25519(out, secret, point))
                abort();
    }
    return (cpu_ns() - start) / PER_ROUND;
}

int main(int argc, char **argv)
{
    static double initiator[ROUNDS], responder[ROUNDS], curve[ROUNDS];
    static double of_initiator[ROUNDS], of_responder[ROUNDS];
    bool json = argc > 1 && !strcmp(argv[1], "--json");
    sim_start(2, NULL);
    sim_add_peer(0, 1, true, 0);
    sim_add_peer(1, 0, false, 0);
    handshake();
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t before =
            counter_get(&sim.node[1].tunnel->worker[0].primary.counters.handshakes_completed);
        spent[0] = spent[1] = 0;
        for (int i = 0; i < PER_ROUND; i++)
            handshake();
        assert(counter_get(&sim.node[1].tunnel->worker[0].primary.counters.handshakes_completed) -
                   before ==
               PER_ROUND);
        double clock = clock_alone();
        initiator[r] = spent[0] / PER_ROUND - clock;
        responder[r] = spent[1] / PER_ROUND - clock;
        curve[r] = x25519_alone();
        of_initiator[r] = curve[r] / initiator[r];
        of_responder[r] = curve[r] / responder[r];
    }
    double i = median(initiator, ROUNDS), p = median(responder, ROUNDS), c = median(curve, ROUNDS);
    double of_i = median(of_initiator, ROUNDS), of_p = median(of_responder, ROUNDS);
    if (json)
        printf("{\"schemaVersion\":1,\"handshakes\":{\"initiatorPerSecond\":%.0f,"
               "\"responderPerSecond\":%.0f,\"x25519AloneAllows\":%.0f,"
               "\"initiatorShare\":%.3f,\"responderShare\":%.3f}}\n",
               1e9 / i, 1e9 / p, 1e9 / c, of_i, of_p);
    else
        printf("Handshakes per second and core\n"
               "  initiator %.0f (%.0f %% of what X25519 alone allows)\n"
               "  responder %.0f (%.0f %%)\n"
               "  X25519 alone: %.0f\n",
               1e9 / i, 100 * of_i, 1e9 / p, 100 * of_p, 1e9 / c);
    sim_stop();
    return 0;
}
