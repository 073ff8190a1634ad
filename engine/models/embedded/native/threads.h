/* Threads that help with a pass. They sleep between passes.

   Who calls hands out the tasks of one step after the other; every thread takes the next task that nobody has. So a
   helper that the system keeps from running delays a step by one task at most, and the caller alone would do as well. */
#ifndef MIDSPAN_THREADS_H
#define MIDSPAN_THREADS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_THREADS 64
#define MOST_TASKS ((1u << 20) - 1)
#define SPINS 2000 /* looks before a thread sleeps: an estimate of some ten microseconds, not measured */

typedef void Work(void *argument, size_t task, size_t thread);

typedef struct {
    /* The step's number, its count of tasks and the next task: 24, 20 and 20 bits. One number, so that a late helper
       cannot take a task of a step that has ended. */
    _Atomic uint64_t word;
    char apart[56]; /* What a thread reads often must not share a cache line with what another writes. */
    _Atomic size_t done;
    _Atomic int sleepers, caller_sleeps, active, stop;
    Work *work;
    void *argument;
    pthread_mutex_t lock;
    pthread_cond_t work_is_there, step_is_done;
    pthread_t helper[MOST_THREADS];
    size_t helpers;
    pid_t process;
} Team;

typedef struct {
    Team *team;
    size_t number;
} Helper;

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline int has_tasks(uint64_t word) { return (word & MOST_TASKS) < (word >> 20 & MOST_TASKS); }

/* Do tasks of the step, as long as there are any. */
static void do_tasks(Team *team, size_t thread) {
    uint64_t word = atomic_load(&team->word);
    while (has_tasks(word))
        if (atomic_compare_exchange_weak(&team->word, &word, word + 1)) {
            size_t count = word >> 20 & MOST_TASKS;
            team->work(team->argument, word & MOST_TASKS, thread);
            if (atomic_fetch_add(&team->done, 1) + 1 == count && atomic_load(&team->caller_sleeps)) {
                pthread_mutex_lock(&team->lock);
                pthread_cond_signal(&team->step_is_done);
                pthread_mutex_unlock(&team->lock);
            }
            word = atomic_load(&team->word);
        }
}

static void sleep_until_work(Team *team) {
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(&team->sleepers, 1);
    while (!has_tasks(atomic_load(&team->word)) && !atomic_load(&team->stop))
        pthread_cond_wait(&team->work_is_there, &team->lock);
    atomic_fetch_sub(&team->sleepers, 1);
    pthread_mutex_unlock(&team->lock);
}

static void *help(void *argument) {
    Helper helper = *(Helper *)argument;
    Team *team = helper.team;
    free(argument);
    while (!atomic_load(&team->stop)) {
        for (int spins = 0; spins < SPINS && atomic_load(&team->active) && !has_tasks(atomic_load(&team->word)); spins++)
            relax();
        if (!has_tasks(atomic_load(&team->word))) sleep_until_work(team);
        do_tasks(team, helper.number);
    }
    return NULL;
}

/* Do all tasks of a step. Without a team the caller does them. */
static void do_step(Team *team, Work *work, void *argument, size_t tasks) {
    if (!team || tasks < 2 || tasks > MOST_TASKS) {
        for (size_t task = 0; task < tasks; task++) work(argument, task, 0);
        return;
    }
    team->work = work, team->argument = argument;
    atomic_store(&team->done, 0);
    uint64_t step = (atomic_load(&team->word) >> 40) + 1;
    atomic_store(&team->word, step << 40 | (uint64_t)tasks << 20);
    if (atomic_load(&team->sleepers)) {
        pthread_mutex_lock(&team->lock);
        pthread_cond_broadcast(&team->work_is_there);
        pthread_mutex_unlock(&team->lock);
    }
    do_tasks(team, 0);
    for (int spins = 0; spins < SPINS && atomic_load(&team->done) < tasks; spins++) relax();
    if (atomic_load(&team->done) == tasks) return;
    pthread_mutex_lock(&team->lock);
    atomic_store(&team->caller_sleeps, 1);
    while (atomic_load(&team->done) < tasks) pthread_cond_wait(&team->step_is_done, &team->lock);
    atomic_store(&team->caller_sleeps, 0);
    pthread_mutex_unlock(&team->lock);
}

/* Start up to `helpers` threads: fewer where the system gives no more. Return NULL if there is no memory. */
static Team *start_team(size_t helpers) {
    Team *team = NULL;
    if (posix_memalign((void **)&team, 64, sizeof *team)) return NULL;
    memset(team, 0, sizeof *team);
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->work_is_there, NULL), pthread_cond_init(&team->step_is_done, NULL);
    team->process = getpid();
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* Signals are for the threads of Python. */
    for (; team->helpers < helpers; team->helpers++) {
        Helper *helper = malloc(sizeof *helper);
        if (!helper) break;
        *helper = (Helper){team, team->helpers + 1};
        if (pthread_create(&team->helper[team->helpers], NULL, help, helper)) {
            free(helper);
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return team;
}

static void end_team(Team *team) {
    if (!team) return;
    if (team->process != getpid()) return; /* After a fork the threads are in the other process. */
    pthread_mutex_lock(&team->lock);
    atomic_store(&team->stop, 1);
    pthread_cond_broadcast(&team->work_is_there);
    pthread_mutex_unlock(&team->lock);
    for (size_t helper = 0; helper < team->helpers; helper++) pthread_join(team->helper[helper], NULL);
    pthread_cond_destroy(&team->work_is_there), pthread_cond_destroy(&team->step_is_done);
    pthread_mutex_destroy(&team->lock);
    free(team);
}
#endif
