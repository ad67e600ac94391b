#include "api/routes.h"

#include <string.h>

#include "api/handlers.h"

#include "allocator/base/banned.h"

#define NO_PARAMS ((const struct param[]){{0}})
#define PAGE                                                                                                           \
    {"after", PARAM_INT, 0, INT64_MAX, "continue behind this id"},                                                     \
    {                                                                                                                  \
        "limit", PARAM_INT, 1, 1000, "at most so many (100)"                                                           \
    }

static const struct param submit_params[] = {
    {"namespace", PARAM_TEXT, 0, 0, "for documents that name none (default)"},
    {"queue", PARAM_TEXT, 0, 0, "overrides the manifests'"},
    {"oneJob", PARAM_FLAG, 0, 0, "all workloads are one gang"},
    {"dryRun", PARAM_FLAG, 0, 0, "check and predict only"},
    {0},
};
static const struct param list_params[] = {
    {"state", PARAM_TEXT, 0, 0, "jobs in this state"},
    {"queue", PARAM_TEXT, 0, 0, "jobs of this queue"},
    {"user", PARAM_TEXT, 0, 0, "jobs of this user"},
    {"namespace", PARAM_TEXT, 0, 0, "jobs of this namespace"},
    {"label", PARAM_TEXT, 0, 0, "jobs with this label, as key=value"},
    PAGE,
    {0},
};
static const struct param job_params[] = {
    {"waitFor", PARAM_TEXT, 0, 0, "answer when the job is in this state (or: running, ended), or has ended"},
    {"timeout", PARAM_INT, 0, 600, "seconds after which waitFor answers anyway (30)"},
    {0},
};
static const struct param event_params[] = {PAGE, {0}};
static const struct param log_params[] = {
    {"member", PARAM_TEXT, 0, 0, "as GROUP-INDEX; the first member when absent"},
    {"tail", PARAM_INT, 1, 100000, "the last so many lines (100)"},
    {0},
};

static const struct route routes[] = {
    {"GET", "/healthz", ROLE_NONE, handle_healthz, BODY_NONE, 200, NO_PARAMS, "Health", "The process is alive.", 0},
    {"GET", "/readyz", ROLE_NONE, handle_readyz, BODY_NONE, 200, NO_PARAMS, "Health",
     "The cluster has been read and jobs are being started; 503 with the reason until then.", 0},
    {"GET", "/v1/version", ROLE_NONE, handle_version, BODY_NONE, 200, NO_PARAMS, "Version",
     "Versions of the server and of the cluster.", 0},
    {"GET", "/openapi.json", ROLE_VIEWER, handle_openapi, BODY_NONE, 200, NO_PARAMS, NULL, "This description.", 0},
    {"GET", "/metrics", ROLE_VIEWER, handle_metrics, BODY_NONE, 200, NO_PARAMS, NULL,
     "Measurements in the text form of Prometheus.", 0},

    {"POST", "/v1/jobs", ROLE_SUBMITTER, handle_submit, BODY_DOCUMENTS, 201, submit_params, "Jobs",
     "Submit manifests; all their jobs are accepted or none.", 0},
    {"GET", "/v1/jobs", ROLE_VIEWER, handle_jobs, BODY_NONE, 200, list_params, "JobList",
     "Jobs in the order of their ids.", 0},
    {"GET", "/v1/jobs/{job}", ROLE_VIEWER, handle_job, BODY_NONE, 200, job_params, "Job",
     "One job by id, name or namespace/name (with the slash percent-encoded).", 0},
    {"GET", "/v1/jobs/{job}/explain", ROLE_VIEWER, handle_job_explain, BODY_NONE, 200, NO_PARAMS, "Explanation",
     "Why a job waits, or where it runs.", 0},
    {"GET", "/v1/jobs/{job}/events", ROLE_VIEWER, handle_job_events, BODY_NONE, 200, event_params, "EventList",
     "What happened to a job; as a live stream with Accept: text/event-stream.", 0},
    {"GET", "/v1/events", ROLE_VIEWER, handle_job_events, BODY_NONE, 200, event_params, "EventList",
     "What happened to all jobs; as a live stream with Accept: text/event-stream.", 0},
    {"GET", "/v1/jobs/{job}/logs", ROLE_VIEWER, handle_job_logs, BODY_NONE, 200, log_params, NULL,
     "Output of a member as text.", 0},
    {"POST", "/v1/jobs/{job}/cancel", ROLE_SUBMITTER, handle_job_action, BODY_NONE, 200, NO_PARAMS, "Job", "End a job.",
     JOB_ACTION_CANCEL},
    {"POST", "/v1/jobs/{job}/hold", ROLE_SUBMITTER, handle_job_action, BODY_NONE, 200, NO_PARAMS, "Job",
     "Keep a waiting job from starting.", JOB_ACTION_HOLD},
    {"POST", "/v1/jobs/{job}/release", ROLE_SUBMITTER, handle_job_action, BODY_NONE, 200, NO_PARAMS, "Job",
     "Let a held job start again.", JOB_ACTION_RELEASE},
    {"POST", "/v1/jobs/{job}/requeue", ROLE_SUBMITTER, handle_job_action, BODY_NONE, 200, NO_PARAMS, "Job",
     "Stop a job and queue it again.", JOB_ACTION_REQUEUE},

    {"GET", "/v1/queues", ROLE_VIEWER, handle_queues, BODY_NONE, 200, NO_PARAMS, "QueueList",
     "The queues with quota and use.", 0},
    {"GET", "/v1/queues/{queue}", ROLE_VIEWER, handle_queue, BODY_NONE, 200, NO_PARAMS, "Queue", "One queue.", 0},
    {"DELETE", "/v1/queues/{queue}", ROLE_ADMIN, handle_queue_delete, BODY_NONE, 204, NO_PARAMS, NULL,
     "Remove a queue that has neither jobs nor children.", 0},
    {"POST", "/v1/apply", ROLE_ADMIN, handle_apply, BODY_DOCUMENTS, 200, NO_PARAMS, "Applied",
     "Create or change queues, resources and priority classes; all or none.", 0},
    {"GET", "/v1/resources", ROLE_VIEWER, handle_resources, BODY_NONE, 200, NO_PARAMS, "ResourceList",
     "What quota counts.", 0},

    {"GET", "/v1/devices", ROLE_VIEWER, handle_devices, BODY_NONE, 200, NO_PARAMS, "DeviceList",
     "The devices with their holders.", 0},
    {"GET", "/v1/nodes", ROLE_VIEWER, handle_nodes, BODY_NONE, 200, NO_PARAMS, "NodeList", "The nodes.", 0},
    {"GET", "/v1/strays", ROLE_ADMIN, handle_strays, BODY_NONE, 200, NO_PARAMS, "StrayList",
     "Objects in the cluster with the labels of another server, which this one leaves alone.", 0},

    {"GET", "/v1/tokens", ROLE_ADMIN, handle_tokens, BODY_NONE, 200, NO_PARAMS, "TokenList",
     "Bearer tokens, without their text.", 0},
    {"POST", "/v1/tokens", ROLE_ADMIN, handle_token_create, BODY_OBJECT, 201, NO_PARAMS, "Token",
     "Create a token; its text is in this answer and nowhere else.", 0},
    {"DELETE", "/v1/tokens/{id}", ROLE_ADMIN, handle_token_delete, BODY_NONE, 204, NO_PARAMS, NULL, "Revoke a token.",
     0},

    {"GET", "/v1/clock", ROLE_ADMIN, handle_clock, BODY_NONE, 200, NO_PARAMS, "Clock", "The server's time.", 0},
    {"POST", "/v1/clock/advance", ROLE_ADMIN, handle_clock_advance, BODY_OBJECT, 200, NO_PARAMS, "Clock",
     "Virtual clock only: move time by {\"milliseconds\": N} and let everything that is due happen.", 0},
    {"POST", "/v1/cluster/command", ROLE_ADMIN, handle_cluster_command, BODY_OBJECT, 204, NO_PARAMS, NULL,
     "Embedded cluster only: make something fail.", 0},
    {0},
};

const struct route *routes_all(void)
{
    return routes;
}

/* Compare a pattern with the decoded segments; "{name}" takes any segment. */
static bool path_matches(const char *pattern, const struct uri *uri, const char **args)
{
    size_t n = 0, n_args = 0;

    while (*pattern == '/') {
        size_t len = strcspn(++pattern, "/");

        if (n == uri->n_segments)
            return false;
        if (*pattern == '{')
            args[n_args++] = uri->segments[n];
        else if (strncmp(pattern, uri->segments[n], len) != 0 || uri->segments[n][len] != '\0')
            return false;
        pattern += len;
        n++;
    }
    return n == uri->n_segments;
}

static void allow(const char *method, struct buf *out)
{
    buf_addf(out, "%s%s", out->len ? ", " : "", method);
    if (strcmp(method, "GET") == 0)
        buf_adds(out, ", HEAD");
}

const struct route *route_find(struct str method, const struct uri *uri, const char **args, struct buf *out_allow)
{
    if (str_is(method, "HEAD"))
        method = STR("GET");
    for (const struct route *route = routes; route->method; route++) {
        if (!path_matches(route->path, uri, args))
            continue;
        if (str_is(method, route->method))
            return route;
        allow(route->method, out_allow);
    }
    return NULL;
}
