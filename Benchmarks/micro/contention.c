/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What workers cost each other: CPU time per packet with 1, 2, 4 and 8 of them at once, each on a
 * thread, over devices that cost nothing.
 *
 *   contention [--json] [AEAD]
 *
 *   own      each worker sends to and receives from a peer of its own; the usual case
 *   shared   all workers send to one peer, whose counter they share
 *   pair     per worker a peer of its own that one thread sends to and another receives from
 *
 * More threads than CPUs take turns, so that what they share is in another's cache more often than
 * not only up to the number of CPUs; beyond that the figures show that waiting costs no CPU time.
 * The last line is what one write costs to a cache line that one thread, or two at once, write:
 * what sharing would cost.
 *
 * The figure of a round is the sum of the threads' CPU time by that of their packets; rounds of all
 * cases are interleaved, medians reported.
 */
#include "../../Tests/CTunnelTests/workers.h"
#include "bench.h"

#define ROUNDS      7
#define MAX_WORKERS 8
#define PACKETS     10000 /* of a thread in a round, about */

enum mode { OWN, SHARED, PAIR, MODES };
static const char *const mode_names[MODES] = {"own", "shared", "pair"};
static const unsigned worker_counts[] = {1, 2, 4, 8};
static const struct {
    const char *name;
    struct load load;
    uint32_t packets; /* in a batch */
    const char *text;
} shapes[] = {
    {"single", {0, 1}, 1, "1 × 84 B"},
    {"small", {0, 64}, 64, "64 × 84 B"},
    {"full", {45, 1}, 45, "45 × 1420 B"},
};
#define COUNTS (sizeof worker_counts / sizeof *worker_counts)
#define SHAPES (sizeof shapes / sizeof *shapes)

struct job {
    _Alignas(CACHE_LINE) pthread_t id;
    struct thread *sender, *receiver; /* one may be NULL */
    struct session *session;
    unsigned worker;
    const struct load *load;
    uint32_t batches;
    pthread_barrier_t *barrier;
    double spent_ns;
};

/* The same train each time: the window forgets it. */
static void receive_again(struct job *job)
{
    memset(&job->session->replay, 0, sizeof job->session->replay);
    device[job->worker]->trains_left = 1;
    workers_receive(job->receiver, job->worker);
}

static void *run_job(void *argument)
{
    struct job *job = argument;
    pthread_barrier_wait(job->barrier);
    double start = cpu_ns();
    for (uint32_t i = 0; i < job->batches; i++) {
        if (job->sender)
            workers_send(job->sender, job->worker, job->load);
        if (job->receiver)
            receive_again(job);
    }
    job->spent_ns = cpu_ns() - start;
    return NULL;
}

/* Fills `jobs`, returns how many. */
static unsigned plan(struct job *jobs, enum mode mode, unsigned workers, size_t shape,
                     pthread_barrier_t *barrier)
{
    unsigned count = 0;
    for (unsigned i = 0; i < workers; i++) {
        struct worker *w = &workers_tunnel()->worker[i];
        struct job job = {.sender = &w->primary,
                          .session = workers_session(i),
                          .worker = i,
                          .load = &shapes[shape].load,
                          .batches = PACKETS / shapes[shape].packets,
                          .barrier = barrier};
        device[i]->to = mode == SHARED ? 0 : (uint8_t)i;
        device[i]->discard = false;
        workers_send(&w->primary, i, job.load); /* the train to receive */
        device[i]->discard = mode != OWN;
        if (mode == OWN)
            job.receiver = &w->primary;
        jobs[count++] = job;
        if (mode == PAIR) {
            job.sender = NULL;
            job.receiver = &w->secondary;
            jobs[count++] = job;
        }
    }
    return count;
}

/* ns of CPU time per packet: sent, received, or sent and received again, as the mode has it. */
static double run_round(enum mode mode, unsigned workers, size_t shape)
{
    static struct job jobs[2 * MAX_WORKERS];
    pthread_barrier_t barrier;
    double spent = 0;
    unsigned count = plan(jobs, mode, workers, shape, &barrier);
    pthread_barrier_init(&barrier, NULL, count);
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&jobs[i].id, NULL, run_job, &jobs[i]))
            abort();
    for (unsigned i = 0; i < count; i++) {
        pthread_join(jobs[i].id, NULL);
        spent += jobs[i].spent_ns;
    }
    pthread_barrier_destroy(&barrier);
    return spent / ((double)jobs[0].batches * shapes[shape].packets * workers);
}

/* ---- what a shared line costs -------------------------------------------------------------- */

#define WRITES 2000000

struct writer {
    _Alignas(CACHE_LINE) pthread_t id;
    _Atomic uint64_t *line;
    pthread_barrier_t *barrier;
    double spent_ns;
};

static void *write_line(void *argument)
{
    struct writer *w = argument;
    pthread_barrier_wait(w->barrier);
    double start = cpu_ns();
    for (int i = 0; i < WRITES; i++)
        atomic_fetch_add_explicit(w->line, 1, memory_order_relaxed);
    w->spent_ns = cpu_ns() - start;
    return NULL;
}

/* ns of CPU time per write. */
static double run_writers(unsigned count)
{
    static _Alignas(CACHE_LINE) _Atomic uint64_t line;
    static struct writer writers[2];
    pthread_barrier_t barrier;
    double spent = 0;
    pthread_barrier_init(&barrier, NULL, count);
    for (unsigned i = 0; i < count; i++) {
        writers[i].line = &line;
        writers[i].barrier = &barrier;
        if (pthread_create(&writers[i].id, NULL, write_line, &writers[i]))
            abort();
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(writers[i].id, NULL);
        spent += writers[i].spent_ns;
    }
    pthread_barrier_destroy(&barrier);
    return spent / WRITES / count;
}

/* ---- rounds -------------------------------------------------------------------------------- */

static double line_figures[2][ROUNDS];

/* Where the two took turns instead of running at once, a round found nothing: the highest counts.
 */
static double contended_write(void)
{
    median(line_figures[1], ROUNDS); /* sorts */
    return line_figures[1][ROUNDS - 1];
}

static double figures[MODES][SHAPES][COUNTS][ROUNDS];

static void measure(void)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 2; i++)
            line_figures[i][round] = run_writers(i + 1);
        for (unsigned mode = 0; mode < MODES; mode++)
            for (size_t shape = 0; shape < SHAPES; shape++)
                for (size_t c = 0; c < COUNTS; c++)
                    figures[mode][shape][c][round] = run_round(mode, worker_counts[c], shape);
    }
    for (unsigned reason = 0; reason < DROP_COUNT; reason++)
        if (sim_drops(0, reason)) {
            fprintf(stderr, "contention: packets were dropped, the figures would lie\n");
            exit(1);
        }
}

static void print_json(const char *aead)
{
    const char *separator = "";
    printf("{\"schemaVersion\":1,\"aead\":\"%s\",\"cpus\":%ld,\"contention\":[", aead,
           sysconf(_SC_NPROCESSORS_ONLN));
    for (unsigned mode = 0; mode < MODES; mode++)
        for (size_t shape = 0; shape < SHAPES; shape++)
            for (size_t c = 0; c < COUNTS; c++, separator = ",")
                printf("%s{\"mode\":\"%s\",\"batch\":\"%s\",\"workers\":%u,\"nsPerPacket\":%.1f}",
                       separator, mode_names[mode], shapes[shape].name, worker_counts[c],
                       median(figures[mode][shape][c], ROUNDS));
    printf("],\"lineWriteNs\":{\"alone\":%.1f,\"contended\":%.1f}}\n",
           median(line_figures[0], ROUNDS), contended_write());
}

static void print_table(const char *aead)
{
    printf("CPU time per packet, ns, by the number of workers (AEAD: %s, %ld CPUs)\n%-24s", aead,
           sysconf(_SC_NPROCESSORS_ONLN), "");
    for (size_t c = 0; c < COUNTS; c++)
        printf(" %8u", worker_counts[c]);
    printf("\n");
    for (unsigned mode = 0; mode < MODES; mode++)
        for (size_t shape = 0; shape < SHAPES; shape++) {
            printf("%-8s %-15s", mode_names[mode], shapes[shape].text);
            for (size_t c = 0; c < COUNTS; c++)
                printf(" %8.0f", median(figures[mode][shape][c], ROUNDS));
            printf("\n");
        }
    printf("a write to a cache line: %.1f ns by one thread, %.1f ns by two at once\n",
           median(line_figures[0], ROUNDS), contended_write());
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && !strcmp(argv[1], "--json");
    struct tunnel_stats stats;
    workers_start(MAX_WORKERS, argc > 1 + json ? argv[1 + json] : "");
    tunnel_get_stats(workers_tunnel(), &stats);
    measure();
    if (json)
        print_json(stats.aead);
    else
        print_table(stats.aead);
    workers_stop();
    return 0;
}
