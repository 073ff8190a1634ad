/* A few threads that share the items of a job. Idle ones spin for some microseconds, then sleep.

   Items are claimed one by one, so a thread that the system has put aside delays a job by one item at most; a job on a
   busy machine is done by the caller alone. */
#ifndef MIDSPAN_POOL_H
#define MIDSPAN_POOL_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define MOST_THREADS 16
#define SPINS 4000
#define ITEM_BITS 24

typedef void (*Work)(void *context, size_t item, size_t thread);

typedef struct {
    _Atomic uint64_t state; /* round << 48 | items << 24 | next item: claimed and published in one operation */
    _Atomic size_t done;
    _Atomic int sleeping, ending;
    Work work;
    void *context;
    size_t threads; /* the caller included */
    pthread_t thread[MOST_THREADS];
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} Pool;

typedef struct {
    Pool *pool;
    size_t number;
} Worker;

#define ITEM_MASK ((1u << ITEM_BITS) - 1)

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Do items of the current round until none is left. */
static void take_part(Pool *pool, size_t thread) {
    uint64_t state = atomic_load(&pool->state), round = state >> 48;
    while (state >> 48 == round && (state & ITEM_MASK) < (state >> ITEM_BITS & ITEM_MASK)) {
        if (!atomic_compare_exchange_weak(&pool->state, &state, state + 1)) continue;
        pool->work(pool->context, state & ITEM_MASK, thread);
        atomic_fetch_add(&pool->done, 1);
        state = atomic_load(&pool->state);
    }
}

static void *serve(void *argument) {
    Worker worker = *(Worker *)argument;
    Pool *pool = worker.pool;
    uint64_t seen = atomic_load(&pool->state) >> 48;
    free(argument);
    /* The first round may have begun before this thread did. */
    take_part(pool, worker.number);
    while (!atomic_load(&pool->ending)) {
        for (int spin = 0; spin < SPINS && atomic_load(&pool->state) >> 48 == seen; spin++) relax();
        if (atomic_load(&pool->state) >> 48 == seen) {
            pthread_mutex_lock(&pool->mutex);
            atomic_fetch_add(&pool->sleeping, 1);
            while (atomic_load(&pool->state) >> 48 == seen && !atomic_load(&pool->ending))
                pthread_cond_wait(&pool->changed, &pool->mutex);
            atomic_fetch_sub(&pool->sleeping, 1);
            pthread_mutex_unlock(&pool->mutex);
        }
        seen = atomic_load(&pool->state) >> 48;
        take_part(pool, worker.number);
    }
    return NULL;
}

static void wake_all(Pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}

/* Start the threads beside the caller's. A system that gives fewer gets along with these. */
static Pool *new_pool(size_t threads) {
    Pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->changed, NULL);
    for (pool->threads = 1; pool->threads < threads && pool->threads < MOST_THREADS; pool->threads++) {
        Worker *worker = malloc(sizeof *worker);
        if (!worker) break;
        *worker = (Worker){pool, pool->threads};
        if (pthread_create(&pool->thread[pool->threads], NULL, serve, worker)) {
            free(worker);
            break;
        }
    }
    return pool;
}

static void free_pool(Pool *pool) {
    if (!pool) return;
    atomic_store(&pool->ending, 1);
    wake_all(pool);
    for (size_t thread = 1; thread < pool->threads; thread++) pthread_join(pool->thread[thread], NULL);
    pthread_mutex_destroy(&pool->mutex);
    pthread_cond_destroy(&pool->changed);
    free(pool);
}

/* Do `items` items, fewer than 2 ** 24, on the threads of a pool, or here if there is none. Each is done when this returns. */
static void share(Pool *pool, Work work, void *context, size_t items) {
    if (!pool || items < 2) {
        for (size_t item = 0; item < items; item++) work(context, item, 0);
        return;
    }
    pool->work = work, pool->context = context;
    atomic_store(&pool->done, 0);
    uint64_t round = (atomic_load(&pool->state) >> 48) + 1;
    atomic_store(&pool->state, round << 48 | (uint64_t)items << ITEM_BITS);
    if (atomic_load(&pool->sleeping)) wake_all(pool);
    take_part(pool, 0);
    for (int spin = 0; atomic_load(&pool->done) < items; spin++)
        if (spin < SPINS) relax();
        else sched_yield();
}
#endif
