/* How it works: two lists under one lock, `todo` to the thread and `finished` back. An eventfd wakes the loop; it may
 * be written often and read once, because the loop empties the whole list each time. */
#include "queued/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "allocator/base/invariant.h"
#include "allocator/base/mem.h"

#include "allocator/base/banned.h"

struct task {
    struct task *next;
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
};

struct task_list {
    struct task *first, **end;
};

struct worker {
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct task_list todo, finished; /* under lock */
    bool is_stopping;                /* under lock */
    size_t n_out;                    /* given and not yet back; loop only */
    int fd;
    struct event *event;
};

static void list_init(struct task_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void list_add(struct task_list *list, struct task *task)
{
    task->next = NULL;
    *list->end = task;
    list->end = &task->next;
}

static struct task *list_take(struct task_list *list)
{
    struct task *task = list->first;

    if (task) {
        list->first = task->next;
        if (!list->first)
            list->end = &list->first;
    }
    return task;
}

static void wake_loop(struct worker *worker)
{
    const uint64_t one = 1;
    ssize_t n;

    do
        n = write(worker->fd, &one, sizeof(one));
    while (n < 0 && errno == EINTR);
    INVARIANT(n == sizeof(one) || errno == EAGAIN); /* EAGAIN: it is readable already */
}

static void *thread_main(void *arg)
{
    struct worker *worker = arg;
    struct task *task;

    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (!(task = list_take(&worker->todo)) && !worker->is_stopping)
            pthread_cond_wait(&worker->wake, &worker->lock);
        if (!task)
            break;
        pthread_mutex_unlock(&worker->lock);
        task->work(task->arg);
        pthread_mutex_lock(&worker->lock);
        list_add(&worker->finished, task);
        wake_loop(worker);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

static void bring_back(struct worker *worker)
{
    struct task *task;

    for (;;) {
        pthread_mutex_lock(&worker->lock);
        task = list_take(&worker->finished);
        pthread_mutex_unlock(&worker->lock);
        if (!task)
            return;
        worker->n_out--;
        task->done(task->arg);
        free(task);
    }
}

static void on_finished(evutil_socket_t fd, short what, void *arg)
{
    uint64_t count;
    ssize_t n = read(fd, &count, sizeof(count));

    (void)what;
    INVARIANT(n == sizeof(count) || errno == EAGAIN || errno == EINTR);
    bring_back(arg);
}

/* Signals are the loop's business: the thread is born with all of them blocked. */
static int start_thread(struct worker *worker)
{
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&worker->thread, NULL, thread_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    worker->has_thread = failed == 0;
    return failed;
}

int worker_new(struct event_base *base, struct worker **out, struct error *err)
{
    struct worker *worker = mem_new(struct worker);
    int failed;

    list_init(&worker->todo);
    list_init(&worker->finished);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->wake, NULL);
    worker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    failed = worker->fd < 0 ? errno : start_thread(worker);
    if (failed) {
        worker_free(worker);
        return error_set(err, ERR_IO, "start the worker thread: %s", strerror(failed));
    }
    worker->event = event_new(base, worker->fd, EV_READ | EV_PERSIST, on_finished, worker);
    INVARIANT(worker->event && event_add(worker->event, NULL) == 0);
    *out = worker;
    return 0;
}

void worker_run(void *arg_worker, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    struct worker *worker = arg_worker;
    struct task *task = mem_new(struct task);

    *task = (struct task){.work = work, .done = done, .arg = arg};
    worker->n_out++;
    pthread_mutex_lock(&worker->lock);
    list_add(&worker->todo, task);
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
}

bool worker_is_idle(const struct worker *worker)
{
    return worker->n_out == 0;
}

/* The thread takes what is left before it ends; what a `done` gives afterwards is done here. */
static void finish(struct worker *worker)
{
    struct task *task;

    pthread_mutex_lock(&worker->lock);
    worker->is_stopping = true;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    bring_back(worker);
    while ((task = list_take(&worker->todo))) {
        task->work(task->arg);
        list_add(&worker->finished, task);
        bring_back(worker);
    }
}

void worker_free(struct worker *worker)
{
    if (!worker)
        return;
    if (worker->has_thread)
        finish(worker);
    if (worker->event)
        event_free(worker->event);
    if (worker->fd >= 0)
        close(worker->fd);
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}
