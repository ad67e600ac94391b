/* Commands against a stand-in server: what they ask, what they print, how they end. */
#include "test/support/cmocka.h"

#include <unistd.h>

#include <curl/curl.h>

#include "test/cli/harness.h"
#include "test/cli/standin.h"

#include "allocator/base/str.h"

#define CLOCK                                                                                                          \
    {                                                                                                                  \
        "GET /v1/clock", 200,                                                                                          \
            "{\"now\":\"2026-01-01T00:10:00.000Z\",\"milliseconds\":1767226200000,\"virtual\":true}", 0                \
    }
#define JOB_17                                                                                                         \
    "{\"id\":17,\"name\":\"train\",\"namespace\":\"default\",\"queue\":\"a\",\"user\":\"me\",\"state\":\"Running\","   \
    "\"priority\":5,"                                                                                                  \
    "\"attempt\":1,\"submittedAt\":\"2026-01-01T00:00:00.000Z\",\"startedAt\":\"2026-01-01T00:08:00.000Z\","           \
    "\"members\":{\"total\":2,\"asked\":4,\"running\":2,\"succeeded\":0,\"failed\":0},\"reason\":\"all members "       \
    "run\",\"shape\":\"\","                                                                                            \
    "\"charges\":[{\"resource\":\"memory\",\"amount\":34359738368}],\"retriesLeft\":0,"                                \
    "\"effectivePlacement\":{\"placement\":\"pack\",\"from\":\"queue\",\"queue\":\"r\"},"                              \
    "\"placement\":{\"members\":[{\"group\":\"w\",\"index\":0,\"pod\":\"p-0\",\"node\":\"n1\",\"claims\":[{\"name\":"  \
    "\"c\",\"podClaim\":\"g\","                                                                                        \
    "\"devices\":[{\"request\":\"r\",\"device\":\"gpu-0\"},{\"request\":\"r\",\"device\":\"gpu-1\"}]}]}]}}"
#define JOB_18                                                                                                         \
    "{\"id\":18,\"name\":\"b\",\"namespace\":\"team\",\"queue\":\"a\",\"user\":\"me\",\"state\":\"Failed\","           \
    "\"submittedAt\":"                                                                                                 \
    "\"2026-01-01T00:09:00.000Z\",\"members\":{\"total\":1},\"reason\":\"exit \\u001b[31m1, \\\"x\\\"\"}"

static const struct command_case {
    const char *name;
    const char *line; /* "_" stands for a space within a word */
    struct reply replies[6];
    int status;
    const char *out, *err; /* NULL: not compared */
    const char *asked;     /* NULL: not compared */
} command_cases[] = {
    {"ls leaves out what has ended",
     "ls",
     {{"GET /v1/jobs?limit=1000", 200, "{\"items\":[" JOB_17 "," JOB_18 "]}", 0}, CLOCK},
     0,
     "JOB  NAME   QUEUE  USER  STATE    MEMBERS  AGE   TIME  REASON\n"
     " 17  train  a      me    Running      2/2  10m  2m00s  all members run\n",
     "",
     "GET /v1/jobs?limit=1000\nGET /v1/clock\n"},
    {"ls follows the pages and passes the filters on",
     "ls -a -q a/b -l k=v -o name",
     {{"GET /v1/jobs?queue=a%2Fb&label=k%3Dv&limit=1000", 200, "{\"items\":[" JOB_17 "],\"next\":\"17\"}", 0},
      {"GET /v1/jobs?queue=a%2Fb&label=k%3Dv&limit=1000&after=17", 200, "{\"items\":[" JOB_18 "]}", 0}},
     0,
     "job/17\njob/18\n",
     "",
     NULL},
    {"csv quotes, and control characters are gone",
     "ls -a -o csv --no-headers",
     {{"GET /v1/jobs?limit=1000", 200, "{\"items\":[" JOB_18 "]}", 0}, CLOCK},
     0,
     "18,team/b,a,me,Failed,1,1m00s,,,,,2026-01-01 00:09:00,,\"exit ?[31m1, \"\"x\"\"\"\r\n",
     "",
     NULL},
    {"an empty list says so",
     "ls",
     {{"GET /v1/jobs?limit=1000", 200, "{\"items\":[]}", 0}, CLOCK},
     0,
     "",
     "no jobs are waiting or running (--all lists those that have ended)\n",
     NULL},
    {"show",
     "show train -n default",
     {{"GET /v1/jobs/default%2Ftrain", 200, JOB_17, 0}, CLOCK},
     0,
     "Job 17 default/train\n"
     "  State        Running for 2m00s\n"
     "  Reason       all members run\n"
     "  Queue        a\n"
     "  User         me\n"
     "  Priority     5\n"
     "  Submitted    2026-01-01 00:00:00 UTC (10m ago)\n"
     "  Started      2026-01-01 00:08:00 UTC (2m00s ago)\n"
     "  Members      2 running of 2 (4 were asked for)\n"
     "  Charged      memory 32Gi\n"
     "  Placing      pack, as queue r says\n"
     "\nPlacement\n"
     "  MEMBER  NODE  POD  DEVICES\n"
     "  w-0     n1    p-0  gpu-[0-1]\n",
     "",
     NULL},
    {"show of one job as JSON is the job",
     "show job/17 -o json",
     {{"GET /v1/jobs/17", 200, "{\"id\":17}", 0}},
     0,
     "{\n  \"id\": 17\n}\n",
     "",
     NULL},
    {"show of several is a list",
     "show 17 18 -o yaml",
     {{"GET /v1/jobs/17", 200, "{\"id\":17}", 0}, {"GET /v1/jobs/18", 200, "{\"id\":18}", 0}},
     0,
     "items:\n- id: 17\n- id: 18\n",
     "",
     NULL},
    {"explain names holders and what is short",
     "explain 3",
     {{"GET /v1/jobs/3/explain", 200,
       "{\"id\":3,\"name\":\"c\",\"state\":\"Pending\",\"layer\":\"devices\",\"summary\":\"It "
       "waits.\",\"groups\":[{\"name\":\"w\","
       "\"members\":1,\"fit\":0,\"requests\":[{\"claim\":\"g\",\"request\":\"r\",\"class\":\"k\",\"count\":1,\"exist\":"
       "2,\"match\":2,"
       "\"free\":0,\"inUse\":1,\"tainted\":0,\"excluded\":[{\"counter\":\"memory\",\"devices\":1,\"asked\":\"40Gi\","
       "\"left\":\"20Gi\"}],"
       "\"holders\":[{\"devices\":2,\"job\":\"1\",\"jobName\":\"train\",\"claims\":2},{\"devices\":1,\"claim\":\"lab/"
       "mine\"}],"
       "\"moreHolders\":{\"holders\":3,\"devices\":5}}]}],\"blocking\":[{\"kind\":\"devices\",\"name\":\"job 1 "
       "(train)\",\"detail\":"
       "\"holds 2 devices\",\"nodes\":[\"n1\"]}],\"hints\":[\"when job 1 (train) ends\"],"
       "\"wouldFitWithNodes\":[{\"like\":\"n1\",\"count\":2,\"devices\":[{\"name\":\"H100\",\"count\":8},{\"name\":"
       "\"nic.x\","
       "\"count\":1}],\"cpu\":\"64\",\"memory\":\"512Gi\"},{\"like\":\"n7\",\"count\":3,\"devices\":[]}],"
       "\"askedForNodes\":{\"request\":\"c-3-ask-1\",\"state\":\"failed\",\"detail\":\"no such nodes\",\"againAt\":"
       "\"2026-01-01T00:01:00.000Z\"}}",
       0}},
     0,
     "Job 3 c: Pending, held up by devices\n"
     "  It waits.\n"
     "\n"
     "  Group w: 1 member, room for 0\n"
     "    REQUEST  CLASS  NEEDS  EXIST  MATCH  FREE  IN USE  TAINTED\n"
     "    g/r      k          1      2      2     0       1        0\n"
     "    - g/r: 1 device lacks what others use up of the shared counter memory: asked 40Gi, at most 20Gi left\n"
     "    - g/r: held are 2 by job 1 (train), 1 by claim lab/mine, and 5 by 3 more\n"
     "\n"
     "  What stands in the way\n"
     "    - job 1 (train) holds 2 devices (node n1)\n"
     "\n"
     "  What would help\n"
     "    - when job 1 (train) ends\n"
     "\n"
     "  Empty nodes more that would make it fit now\n"
     "    - 2 like n1: 8 x H100, 1 x nic.x, 64 cpu, 512Gi of memory\n"
     "    - 3 like n7\n"
     "\n"
     "  Asked for nodes: failed (ProvisioningRequest c-3-ask-1): no such nodes; again at "
     "2026-01-01T00:01:00.000Z\n",
     "",
     NULL},
    {"actions try all and tell the first failure",
     "cancel 1 2 3",
     {{"POST /v1/jobs/1/cancel", 200,
       "{\"id\":1,\"name\":\"a\",\"namespace\":\"n\",\"state\":\"Running\",\"ending\":\"Cancelled\"}", 0},
      {"POST /v1/jobs/2/cancel", 404, "{\"code\":\"not-found\",\"detail\":\"there is no job 2\"}", 0},
      {"POST /v1/jobs/3/cancel", 200, "{\"id\":3,\"name\":\"c\",\"namespace\":\"n\",\"state\":\"Cancelled\"}", 0}},
     4,
     "job 1 n/a: Running, will be Cancelled\njob 3 n/c: Cancelled\n",
     "dra-submit: there is no job 2\n",
     NULL},
    {"wait ends well",
     "wait 1",
     {{"GET /v1/jobs/1?waitFor=ended&timeout=0", 200,
       "{\"id\":1,\"name\":\"a\",\"namespace\":\"n\",\"state\":\"Running\"}", 0},
      {"GET /v1/jobs/1?waitFor=ended&timeout=20", 200,
       "{\"id\":1,\"name\":\"a\",\"namespace\":\"n\",\"state\":\"Succeeded\"}", 0}},
     0,
     "job 1 n/a: Succeeded\n",
     "",
     NULL},
    {"wait ends badly",
     "wait 1",
     {{"GET /v1/jobs/1?waitFor=ended&timeout=0", 200,
       "{\"id\":1,\"name\":\"a\",\"namespace\":\"n\",\"state\":\"Failed\",\"reason\":\"exit 3\"}", 0}},
     1,
     "job 1 n/a: Failed: exit 3\n",
     "",
     NULL},
    {"wait survives a server that is busy",
     "wait 1 --for running",
     {{"GET /v1/jobs/1?waitFor=running&timeout=0", 200,
       "{\"id\":1,\"name\":\"a\",\"namespace\":\"n\",\"state\":\"Pending\"}", 0},
      {"GET /v1/jobs/1?waitFor=running&timeout=20", 503, "{\"code\":\"unavailable\",\"detail\":\"starting\"}", 0},
      {"GET /v1/jobs/1?waitFor=running&timeout=20", 200,
       "{\"id\":1,\"name\":\"a\",\"namespace\":\"n\",\"state\":\"Running\"}", 0}},
     0,
     "job 1 n/a: Running\n",
     "",
     NULL},
    {"wait until the time is over",
     "wait 1 --timeout 0s",
     {{"GET /v1/jobs/1?waitFor=ended&timeout=0", 200, "{\"id\":1,\"state\":\"Pending\"}", 0}},
     7,
     "",
     "dra-submit: the time is over; job 1 is Pending\n",
     NULL},
    {"logs",
     "logs 1 -m w-1 --tail 5",
     {{"GET /v1/jobs/1/logs?member=w-1&tail=5", 200, "line one\nline two\n", 0}},
     0,
     "line one\nline two\n",
     "",
     NULL},
    {"events of a job",
     "events 1",
     {{"GET /v1/jobs/1/events?limit=1000", 200,
       "{\"items\":[{\"id\":4,\"at\":\"2026-01-01T00:00:00.000Z\",\"type\":\"Submitted\",\"from\":\"\",\"to\":\"\","
       "\"detail\":\"by me\"},{\"id\":5,"
       "\"at\":\"2026-01-01T00:00:01.000Z\",\"type\":\"Moved\",\"from\":\"Pending\",\"to\":\"Admitted\",\"detail\":"
       "\"\"}]}",
       0},
      {"GET /v1/jobs/1/events?limit=1000&after=5", 200, "{\"items\":[]}", 0}},
     0,
     "2026-01-01 00:00:00  Submitted: by me\n2026-01-01 00:00:01  Pending -> Admitted\n",
     "",
     NULL},
    {"events of all jobs",
     "events",
     {{"GET /v1/events?limit=1000", 200,
       "{\"items\":[{\"id\":4,\"job\":7,\"name\":\"train\",\"namespace\":\"default\",\"at\":\"2026-01-01T00:00:00."
       "000Z\",\"type\":"
       "\"Submitted\",\"from\":\"\",\"to\":\"\",\"detail\":\"by me\"}],\"next\":\"2000\"}",
       0},
      {"GET /v1/events?limit=1000&after=2000", 200, "{\"items\":[]}", 0}},
     0,
     "2026-01-01 00:00:00  job 7 train  Submitted: by me\n",
     "",
     NULL},
    {"queues",
     "queues -o wide",
     {{"GET /v1/queues", 200,
       "{\"items\":[{\"name\":\"a\",\"parent\":\"r\",\"state\":\"open\",\"placement\":null,"
       "\"effectivePlacement\":{\"placement\":\"pack\",\"from\":\"queue\",\"queue\":\"r\"},\"weight\":2,\"share\":0.25,"
       "\"jobs\":{"
       "\"pending\":1,\"running\":2},\"quotas\":[{"
       "\"resource\":\"gpu\",\"nominal\":8,\"borrowingLimit\":null,\"lendingLimit\":4,\"used\":9,\"borrowed\":1,"
       "\"capacity\":16},{\"resource\":\"memory\","
       "\"nominal\":1099511627776,\"used\":0,\"borrowed\":0,\"capacity\":0}]},{\"name\":\"b\",\"parent\":null,"
       "\"state\":\"held\",\"quotas\":[]},"
       "{\"name\":\"c\",\"state\":\"open\",\"placement\":\"spread\",\"effectivePlacement\":{\"placement\":"
       "\"spread\",\"from\":\"queue\",\"queue\":\"c\"},\"quotas\":[]},"
       "{\"name\":\"d\",\"state\":\"open\",\"placement\":null,\"effectivePlacement\":{\"placement\":"
       "\"fragmentation\",\"from\":\"default\"},\"quotas\":[]}]}",
       0}},
     0,
     "QUEUE  PARENT  STATE  WEIGHT  SHARE  PENDING  RUNNING  RESOURCE  USED  NOMINAL  BORROWED  MAY BORROW  MAY LEND  "
     "CLUSTER HAS  PLACEMENT\n"
     "a      r       open        2  0.250        1        2  gpu          9        8         1           -         4   "
     "        16  pack (r)\n"
     "                                                       memory       0      1Ti         0                         "
     "         0\n"
     "b              held\n"
     "c              open                                                                                             "
     "             spread\n"
     "d              open                                                                                             "
     "             -\n",
     "",
     NULL},
    {"devices are grouped by node and holder",
     "devices",
     {{"GET /v1/devices", 200,
       "{\"items\":[{\"node\":\"n2\",\"driver\":\"d\",\"name\":\"g-0\",\"state\":\"free\",\"job\":null,\"claim\":null},"
       "{\"node\":\"n1\",\"driver\":\"d\",\"name\":\"g-0\",\"state\":\"in-use\",\"job\":4,\"claim\":\"n/a\"},"
       "{\"node\":\"n1\",\"driver\":\"d\",\"name\":\"g-1\",\"state\":\"free\",\"job\":null,\"claim\":null},"
       "{\"node\":\"n1\",\"driver\":\"d\",\"name\":\"g-2\",\"state\":\"in-use\",\"job\":4,\"claim\":\"n/b\"},"
       "{\"node\":null,\"driver\":\"d\",\"name\":\"net\",\"state\":\"in-use\",\"job\":null,\"claim\":\"n/c\"}]}",
       0}},
     0,
     "NODE   DRIVER  STATE   JOB  COUNT  DEVICES\n"
     "(any)  d       in-use  n/c      1  net\n"
     "n1     d       in-use  4        2  g-[0,2]\n"
     "       d       free             1  g-1\n"
     "n2     d       free             1  g-0\n",
     "",
     NULL},
    {"a token is printed alone",
     "tokens create al_ice -r viewer -q a,b",
     {{"POST /v1/tokens", 201, "{\"id\":\"3\",\"name\":\"al ice\",\"role\":\"viewer\",\"token\":\"qd_x\"}", 0}},
     0,
     "qd_x\n",
     "token 3 for al ice (viewer); this is the only time that it is shown:\n",
     "POST /v1/tokens\n  {\"name\":\"al ice\",\"role\":\"viewer\",\"queues\":[\"a\",\"b\"]}\n"},
    {"tokens are revoked",
     "tokens delete 3",
     {{"DELETE /v1/tokens/3", 204, NULL, 0}},
     0,
     "token/3 revoked\n",
     "",
     NULL},
    {"the clock moves",
     "clock advance 1m30s",
     {{"POST /v1/clock/advance", 200, "{\"now\":\"2026-01-01T00:01:30.000Z\",\"virtual\":true}", 0}},
     0,
     "2026-01-01 00:01:30 UTC (virtual)\n",
     "",
     "POST /v1/clock/advance\n  {\"milliseconds\":90000}\n"},
    {"the cluster is told",
     "cluster command {\"nodeDown\":\"n1\"}",
     {{"POST /v1/cluster/command", 204, NULL, 0}},
     0,
     "",
     "",
     "POST /v1/cluster/command\n  {\"nodeDown\":\"n1\"}\n"},
    /* failures */
    {"no token",
     "ls",
     {{"GET /v1/jobs?limit=1000", 401, "{\"code\":\"denied\",\"detail\":\"no token\"}", 0}},
     5,
     "",
     NULL,
     NULL},
    {"not allowed",
     "apply test/cli/files/queue.yaml",
     {{"POST /v1/apply", 403, "{\"code\":\"denied\",\"detail\":\"needs admin\"}", 0}},
     5,
     "",
     "dra-submit: needs admin\n",
     NULL},
    {"a conflict",
     "hold 1",
     {{"POST /v1/jobs/1/hold", 409, "{\"code\":\"conflict\",\"detail\":\"it runs\"}", 0}},
     8,
     "",
     "dra-submit: it runs\n",
     NULL},
    {"not now",
     "hold 1",
     {{"POST /v1/jobs/1/hold", 503, "{\"code\":\"unavailable\",\"detail\":\"starting\"}", 0}},
     8,
     "",
     "dra-submit: starting\n",
     NULL},
    {"the server fails",
     "hold 1",
     {{"POST /v1/jobs/1/hold", 500, "{\"code\":\"io\",\"detail\":\"disk\"}", 0}},
     9,
     "",
     "dra-submit: disk\n",
     NULL},
    {"an answer without words", "hold 1", {{"POST /v1/jobs/1/hold", 502, "oops", 0}}, 9, "", NULL, NULL},
    {"broken JSON", "hold 1", {{"POST /v1/jobs/1/hold", 200, "{\"id\":", 0}}, 9, "", NULL, NULL},
    {"a silent server",
     "hold 1 --request-timeout 100ms",
     {{"POST /v1/jobs/1/hold", 200, "{}", 600}},
     7,
     "",
     NULL,
     NULL},
    {"an odd output",
     "ls -o xml",
     {{0}},
     2,
     "",
     "dra-submit: --output: \"xml\" is none of table, wide, name, json, yaml, csv\nFor help: dra-submit help ls\n",
     ""},
    {"no duration", "clock advance soon", {{0}}, 2, "", NULL, ""},
    {"no JSON", "cluster command [1]", {{0}}, 2, "", NULL, ""},
    /* files */
    {"submit sends all documents with a key",
     "test/cli/files/pod.yaml -q a",
     {{"POST /v1/jobs?queue=a", 201,
       "{\"jobs\":[{\"id\":1,\"name\":\"p\",\"namespace\":\"n\",\"queue\":\"a\",\"reason\":\"waits\"}]}", 0}},
     0,
     "job 1 n/p submitted to queue a\n",
     "",
     "POST /v1/jobs?queue=a\n  Idempotency-Key: present\n  "
     "{\"documents\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"},"
     "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}]}\n"},
    {"problems are shown at their file and line",
     "submit test/cli/files",
     {{"POST /v1/jobs", 400,
       "{\"code\":\"invalid\",\"detail\":\"two\",\"problems\":[{\"document\":0,\"field\":\"spec.containers[0].image\","
       "\"detail\":\"no such image\"},"
       "{\"document\":2,\"field\":\"spec.quotas[0].nominal\",\"detail\":\"too much\"}]}",
       0}},
     3,
     "",
     "test/cli/files/pod.yaml:5: spec.containers[0].image: no such image\n"
     "     5 |   containers: [{name: c, image: i}]\n"
     "       |                          ^~~~~\n"
     "test/cli/files/queue.yaml:12: spec.quotas[0].nominal: too much\n"
     "    12 |     nominal: 8\n"
     "       |     ^~~~~~~\n",
     NULL},
    {"documents are left out and counted right",
     "submit test/cli/files --skip pod,Nothing -1",
     {{"POST /v1/jobs?oneJob=true", 400,
       "{\"code\":\"invalid\",\"detail\":\"one\",\"problems\":[{\"document\":1,\"field\":\"spec.parent\",\"detail\":"
       "\"none\"}]}",
       0}},
     3,
     "",
     "test/cli/files/pod.yaml:1: left out: Pod p\n"
     "test/cli/files/queue.yaml:9: spec.parent: none\n"
     "     9 | spec:\n"
     "       | ^~~~\n",
     NULL},
    {"the namespace beside work is left out",
     "submit test/cli/with-namespace.yaml",
     {{"POST /v1/jobs", 201,
       "{\"jobs\":[{\"id\":1,\"name\":\"p\",\"namespace\":\"team\",\"queue\":\"a\",\"state\":\"Held\",\"reason\":"
       "\"held\"}"
       "]}",
       0}},
     0,
     "job 1 team/p submitted to queue a, held\n",
     "test/cli/with-namespace.yaml:1: left out: Namespace team\n",
     "POST /v1/jobs\n  Idempotency-Key: present\n  "
     "{\"documents\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":\"team\"},"
     "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}]}\n"},
    {"a mistake in the YAML",
     "test/cli/broken.txt",
     {{0}},
     3,
     "",
     "dra-submit: test/cli/broken.txt:2:1: key \"a\" is set twice, first in line 1\n     2 | a: 2\n       | ^\n",
     ""},
    {"no such file",
     "nothing-of-this-name",
     {{0}},
     4,
     "",
     "dra-submit: no such command, and as a file: nothing-of-this-name: No such file or directory\n",
     ""},
    {"a prediction",
     "test/cli/files/pod.yaml --dry-run",
     {{"POST /v1/jobs?dryRun=true", 200,
       "{\"jobs\":[{\"name\":\"p\",\"namespace\":\"n\",\"queue\":\"a\",\"prediction\":{\"summary\":\"The gang "
       "fits.\"}}]}",
       0}},
     0,
     "n/p would be accepted by queue a. The gang fits.\n",
     "",
     NULL},
    {"a prediction says who chose the placement",
     "test/cli/files/pod.yaml --dry-run",
     {{"POST /v1/jobs?dryRun=true", 200,
       "{\"jobs\":[{\"name\":\"p\",\"namespace\":\"n\",\"queue\":\"a\",\"prediction\":{\"summary\":\"The gang "
       "fits.\",\"effectivePlacement\":{\"placement\":\"pack\",\"from\":\"queue\",\"queue\":\"r\"}}}]}",
       0}},
     0,
     "n/p would be accepted by queue a. The gang fits. Placing: pack, as queue r says.\n",
     "",
     NULL},
    {"the default placement goes without saying",
     "test/cli/files/pod.yaml --dry-run",
     {{"POST /v1/jobs?dryRun=true", 200,
       "{\"jobs\":[{\"name\":\"p\",\"namespace\":\"n\",\"queue\":\"a\",\"prediction\":{\"summary\":\"The gang "
       "fits.\",\"effectivePlacement\":{\"placement\":\"fragmentation\",\"from\":\"default\"}}}]}",
       0}},
     0,
     "n/p would be accepted by queue a. The gang fits.\n",
     "",
     NULL},
    {"explain says who chose the placement",
     "explain 3",
     {{"GET /v1/jobs/3/explain", 200,
       "{\"id\":3,\"name\":\"c\",\"state\":\"Pending\",\"layer\":\"order\",\"summary\":\"It waits.\","
       "\"effectivePlacement\":{\"placement\":\"spread\",\"from\":\"job\"}}",
       0}},
     0,
     "Job 3 c: Pending, held up by others go first\n  It waits.\n  Placing: spread, as the job says\n",
     "",
     NULL},
    {"a submission is sent again with its key when the server was silent",
     "test/cli/files/pod.yaml --request-timeout 400ms",
     {{"POST /v1/jobs", 201, "{\"jobs\":[]}", 600},
      {"POST /v1/jobs", 201, "{\"jobs\":[{\"id\":1,\"name\":\"p\",\"namespace\":\"n\",\"queue\":\"a\"}]}", 0}},
     0,
     "job 1 n/p submitted to queue a\n",
     "",
     NULL},
    {"applied objects are named",
     "apply test/cli/files/queue.yaml",
     {{"POST /v1/apply", 200, "{\"applied\":[{\"kind\":\"Queue\",\"name\":\"a\",\"change\":\"created\"}]}", 0}},
     0,
     "Queue/a created\n",
     "",
     NULL},
};

static size_t n_replies(const struct command_case *c)
{
    size_t n = 0;

    while (n < ARRAY_SIZE(c->replies) && c->replies[n].request)
        n++;
    return n;
}

static void test_cli_commands__case(void **state)
{
    const struct command_case *c = *state;
    struct standin *standin = standin_new(NULL, c->replies, n_replies(c));
    struct run run;
    char server[64];

    snprintf(server, sizeof(server), "http://127.0.0.1:%d", standin_port(standin));
    setenv("DRA_SERVER", server, 1);
    run = run_line(c->line);
    if (c->out)
        assert_string_equal(run.out, c->out);
    if (c->err)
        assert_string_equal(run.err, c->err);
    assert_int_equal(run.status, c->status);
    if (c->asked)
        assert_string_equal(standin_log(standin), c->asked);
    run_release(&run);
    standin_free(standin);
}

static void test_cli_commands__a_unix_socket_needs_no_proxy_and_no_token(void **state)
{
    static const struct reply replies[] = {
        {"GET /v1/version", 200, "{\"version\":\"1\",\"cluster\":{\"kind\":\"embedded\"}}", 0}};
    char socket[] = "/tmp/queued-test-cli-XXXXXX", server[64];
    int fd = mkstemp(socket);
    struct standin *standin;
    struct run run;

    (void)state;
    close(fd);
    standin = standin_new(socket, replies, 1);
    snprintf(server, sizeof(server), "unix:%s", socket);
    setenv("DRA_SERVER", server, 1);
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    run = run_line("version");
    unsetenv("http_proxy");
    assert_int_equal(run.status, 0);
    assert_non_null(strstr(run.out, "queued     1\n"));
    assert_string_equal(standin_log(standin), "GET /v1/version\n");
    run_release(&run);
    standin_free(standin);
    unlink(socket);
}

static void test_cli_commands__a_token_is_sent_and_never_printed(void **state)
{
    static const struct reply replies[] = {
        {"GET /v1/tokens", 401, "{\"code\":\"denied\",\"detail\":\"the token is not known\"}", 0}};
    struct standin *standin = standin_new(NULL, replies, 1);
    struct run run;
    char server[64];

    (void)state;
    snprintf(server, sizeof(server), "http://127.0.0.1:%d", standin_port(standin));
    setenv("DRA_SERVER", server, 1);
    setenv("DRA_TOKEN", "qd_secret", 1);
    run = run_line("tokens");
    unsetenv("DRA_TOKEN");
    assert_int_equal(run.status, 5);
    assert_string_equal(run.err, "dra-submit: the token is not known\n");
    assert_string_equal(standin_log(standin), "GET /v1/tokens\n  Authorization: Bearer qd_secret\n");
    run_release(&run);
    standin_free(standin);
}

static void test_cli_commands__no_server_is_told_apart(void **state)
{
    struct run run;

    (void)state;
    setenv("DRA_SERVER", "http://127.0.0.1:1", 1);
    run = run_line("ls");
    assert_int_equal(run.status, 6);
    assert_non_null(strstr(run.err, "cannot reach http://127.0.0.1:1 (from DRA_SERVER)"));
    run_release(&run);
}

static void test_cli_commands__help_names_every_command_and_status(void **state)
{
    static const char *const some[] = {"submit FILE...", "explain JOB...", "tokens create USER",
                                       "  7  the time was over"};
    struct run run = run_line("help");

    (void)state;
    assert_int_equal(run.status, 0);
    for (size_t i = 0; i < ARRAY_SIZE(some); i++)
        assert_non_null(strstr(run.out, some[i]));
    run_release(&run);
    run = run_line("help tokens create");
    assert_non_null(strstr(run.out, "-r, --role ROLE"));
    run_release(&run);
    run = run_line("help nothing");
    assert_int_equal(run.status, 2);
    run_release(&run);
}

static void test_cli_commands__completion_is_a_script(void **state)
{
    struct run run = run_line("completion bash");
    FILE *shell = popen("bash -n", "w");

    (void)state;
    assert_non_null(shell);
    fputs(run.out, shell);
    assert_int_equal(pclose(shell), 0);
    assert_non_null(strstr(run.out, "complete -o filenames -F _dra_submit dra-submit"));
    run_release(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_commands__a_unix_socket_needs_no_proxy_and_no_token),
        cmocka_unit_test(test_cli_commands__a_token_is_sent_and_never_printed),
        cmocka_unit_test(test_cli_commands__no_server_is_told_apart),
        cmocka_unit_test(test_cli_commands__help_names_every_command_and_status),
        cmocka_unit_test(test_cli_commands__completion_is_a_script),
    };
    int failed;

    unsetenv("DRA_TOKEN");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    failed = RUN_TABLE(test_cli_commands__case, command_cases) + cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failed;
}
