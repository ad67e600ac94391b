/* api/handlers.h - the functions that the route table names; one file per resource. No other room includes it. */
#ifndef QUEUED_API_HANDLERS_H
#define QUEUED_API_HANDLERS_H

struct request;

/* health.c */
void handle_healthz(struct request *request);
void handle_readyz(struct request *request);
void handle_version(struct request *request);
/* metrics.c, openapi.c */
void handle_metrics(struct request *request);
void handle_openapi(struct request *request);
/* jobs.c */
void handle_submit(struct request *request);
void handle_jobs(struct request *request);
void handle_job(struct request *request);
void handle_job_explain(struct request *request);
void handle_job_events(struct request *request);
void handle_job_logs(struct request *request);
void handle_job_action(struct request *request);
/* queues.c */
void handle_queues(struct request *request);
void handle_queue(struct request *request);
void handle_queue_delete(struct request *request);
void handle_apply(struct request *request);
void handle_resources(struct request *request);
/* devices.c */
void handle_devices(struct request *request);
void handle_nodes(struct request *request);
void handle_strays(struct request *request);
/* tokens.c */
void handle_tokens(struct request *request);
void handle_token_create(struct request *request);
void handle_token_delete(struct request *request);
/* machine.c: the virtual clock and the embedded cluster */
void handle_clock(struct request *request);
void handle_clock_advance(struct request *request);
void handle_cluster_command(struct request *request);

#endif
