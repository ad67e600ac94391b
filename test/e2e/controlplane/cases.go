package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What most cases begin with: a server of their own, a gang, and its end.

// queuedAt makes a server that reaches the cluster at `url`; it is not started. It ends with the case, and then nothing of
// it may be left in the cluster.
func (t *T) queuedAt(url string, args ...string) *server {
	t.n++
	dir := filepath.Join(t.dir, fmt.Sprintf("queued-%d", t.n))
	t.must(os.MkdirAll(dir, 0o700), "folder")
	kubeconfig := filepath.Join(dir, "kubeconfig")
	t.must(t.queuedKubeconfig(kubeconfig, url), "kubeconfig")
	q := newServer(t.options.binary, dir, append([]string{"--kubeconfig", kubeconfig, "--lease", "none"}, args...)...)
	t.last = q
	t.cleanup(func() {
		if q.proc == nil {
			return
		}
		if len(t.failures) > 0 && q == t.last {
			t.logf("the end of %s:\n%s", q.log(), q.tail(15))
		}
		q.wrapUp(t)
	})
	return q
}

// queued starts a server with one queue, `main`, that has no limits.
func (t *T) queued(args ...string) *server { return t.queuedThrough(t.plane.server, args...) }

func (t *T) queuedThrough(url string, args ...string) *server {
	q := t.queuedAt(url, args...)
	t.must(q.start(), "start queued")
	t.must(q.apply(mainQueue), "make the queue")
	return q
}

const mainQueue = "apiVersion: queue.dra/v1\nkind: Queue\nmetadata: {name: main}\nspec: {}\n"

// wrapUp cancels what still lives, waits until nothing of it is left, and ends the server.
func (s *server) wrapUp(t *T) {
	if s.proc.hasEnded() {
		return
	}
	defer func() {
		if err := s.stop(); err != nil {
			t.errorf("%v", err)
		}
	}()
	jobs, err := s.items("/v1/jobs?limit=1000")
	if err != nil {
		return // a passive one has no jobs
	}
	spaces := map[string]bool{}
	for _, j := range jobs {
		spaces[fmt.Sprint(j["namespace"])] = true
		switch j["state"] {
		case "Succeeded", "Failed", "Cancelled":
		default:
			_ = s.cancel(int64(j["id"].(float64)))
		}
	}
	for ns := range spaces {
		t.nothingLeft(ns)
	}
}

// nothingLeft: no object of queued exists in the namespace any more, or soon.
func (t *T) nothingLeft(ns string) {
	t.eventually(20*time.Second, func() string {
		if left := t.checker.left(ns); len(left) > 0 {
			return fmt.Sprintf("%d objects are left over: %s", len(left), strings.Join(left[:min(4, len(left))], ", "))
		}
		return ""
	})
}

// gangOptions describe a GangJob of equal members with one claim each.
type gangOptions struct {
	name, ns string
	members  int
	devices  int               // of each; 0: one
	class    string            // empty: gpu
	extra    string            // further lines of spec, indented by two
	notes    map[string]string // annotations of the pods
	pod      string            // further lines of the pods' spec, indented by ten
	grace    int               // seconds that a pod has to end; with 0 it is gone at once, also from a node that is silent
}

func gangText(o gangOptions) string {
	if o.devices == 0 {
		o.devices = 1
	}
	if o.class == "" {
		o.class = "gpu"
	}
	return fmt.Sprintf(`apiVersion: queue.dra/v1
kind: GangJob
metadata: {name: %s, namespace: %s}
spec:
  queue: main
%s  groups:
    - name: worker
      replicas: %d
      template:
        metadata: {annotations: {%s}}
        spec:
          terminationGracePeriodSeconds: %d
%s          containers:
            - name: main
              image: registry.example/trainer:1
              resources: {claims: [{name: gpu}]}
          resourceClaims: [{name: gpu, resourceClaimTemplateName: devices}]
  claimTemplates:
    - name: devices
      spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: %s, count: %d}}]}}
`, o.name, o.ns, o.extra, o.members, quoted(o.notes), o.grace, o.pod, o.class, o.devices)
}

// gang submits one.
func (s *server) gang(t *T, o gangOptions) job {
	jobs, err := s.submit("", gangText(o))
	t.must(err, "submit %s", o.name)
	if len(jobs) != 1 {
		t.fatalf("%d jobs were made of one", len(jobs))
	}
	return jobs[0]
}

// runs waits until the job runs, and checks that all was allocated as planned.
func (s *server) runs(t *T, id int64, limit time.Duration) job {
	j, err := s.wait(id, "Running", limit)
	if err != nil {
		t.whyNot(j.Namespace)
	}
	t.must(err, "wait for it to run")
	t.asPlanned(s, &j)
	return j
}

// restart of a component of the control plane; the watches of the tests suffer too.
func (t *T) restart(component string, hard bool, pause time.Duration) error {
	t.checker.forgive(time.Hour)
	defer t.checker.forgive(20 * time.Second)
	return t.plane.restart(component, hard, pause)
}

// whyNot tells what kube-scheduler says of the pods of a namespace that are not bound.
func (t *T) whyNot(ns string) {
	pods, err := t.k.CoreV1().Pods(ns).List(context.Background(), meta.ListOptions{})
	if err != nil {
		return
	}
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" {
			continue
		}
		said := fmt.Sprintf("pod %s, %d gates", pod.Name, len(pod.Spec.SchedulingGates))
		for _, c := range pod.Status.Conditions {
			said += fmt.Sprintf("; %s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
		t.logf("%s", said)
	}
}

// ends waits for the job's end in a state.
func (s *server) ends(t *T, id int64, state string, limit time.Duration) job {
	j, err := s.wait(id, "ended", limit)
	t.must(err, "wait for its end")
	if j.State != state {
		t.fatalf("job %s is %s, not %s: %s", j.Name, j.State, state, j.Reason)
	}
	return j
}

// waits waits until the job is pending and its explanation says something, and returns this sentence.
func (s *server) waits(t *T, id int64, layer string) string {
	said := ""
	t.eventually(15*time.Second, func() string {
		why, err := s.explain(id)
		if err != nil {
			return err.Error()
		}
		if why["state"] != "Pending" || why["layer"] != layer {
			return fmt.Sprintf("it is %v, held up by %v: %v", why["state"], why["layer"], why["summary"])
		}
		said = fmt.Sprint(why["summary"])
		return ""
	})
	return said
}
