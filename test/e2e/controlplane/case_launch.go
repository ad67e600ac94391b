package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What a launch does when nothing gets in its way.

func launchCases(*options) []testCase {
	return []testCase{
		{name: "launch/members-find-each-other", profile: "usual", run: launchNames},
		{name: "launch/exit-code-of-a-member", profile: "usual", run: launchExitCode},
		{name: "launch/retry-after-a-failure", profile: "usual", run: launchRetry},
		{name: "launch/output-of-a-member", profile: "usual", run: launchLogs},
		{name: "launch/command-line", profile: "usual", run: launchCommandLine},
		{name: "launch/client-certificate", profile: "usual", run: launchCertificate},
		{name: "launch/shared-claim-for-all-nodes-beside-one-per-member", profile: "usual", run: launchShared},
		{name: "launch/claim-with-256-consumers-at-most", profile: "usual", run: launchTooManyConsumers},
		{name: "launch/class-that-appears-later", profile: "usual", run: launchLateClass},
		{name: "launch/v1beta1-and-v1beta2-manifests", profile: "usual", run: launchOldManifests},
		{name: "launch/devices-that-are-not-prepared", profile: "usual", run: launchPreparing},
		{name: "launch/no-pod-groups-where-there-are-none", profile: "usual", run: launchNoGroups},
		{name: "bind/allocated-by-queued", profile: "usual", run: func(t *T) { bindPlain(t, 0) }},
		{name: "bind/bound-by-queued", profile: "usual", run: func(t *T) { bindPlain(t, 4, "--bind-pods", "true") }},
		{name: "bind/a-rival-with-the-same-device", profile: "usual", run: bindRival},
	}
}

func launchNames(t *T) {
	t.plainWorld(4, 8)
	ns, q := t.namespace(), t.queued()
	j := q.runs(t, q.gang(t, gangOptions{name: "names", ns: ns, members: 3, devices: 2}).ID, 20*time.Second)
	ranks := map[string]bool{}
	for _, member := range j.Placement.Members {
		pod, err := t.k.CoreV1().Pods(ns).Get(t.ctx, member.Pod, meta.GetOptions{})
		t.must(err, "get member")
		env := map[string]string{}
		for _, variable := range pod.Spec.Containers[0].Env {
			env[variable.Name] = variable.Value
		}
		ranks[env["RANK"]] = true
		if env["WORLD_SIZE"] != "3" || env["MASTER_PORT"] == "" || !strings.HasPrefix(env["MASTER_ADDR"], "worker-0.") {
			t.errorf("environment of %s: %v", member.Pod, env)
		}
		if want := fmt.Sprintf("worker-%d", member.Index); pod.Spec.Hostname != want {
			t.errorf("host name of %s is %s, not %s", member.Pod, pod.Spec.Hostname, want)
		}
		service, err := t.k.CoreV1().Services(ns).Get(t.ctx, pod.Spec.Subdomain, meta.GetOptions{})
		t.must(err, "the service of the members' domain")
		if service.Spec.ClusterIP != core.ClusterIPNone {
			t.errorf("the service has the address %s", service.Spec.ClusterIP)
		}
	}
	if len(ranks) != 3 {
		t.errorf("ranks: %v", ranks)
	}
	t.agent.setDuration(50 * time.Millisecond)
	q.ends(t, j.ID, "Succeeded", 20*time.Second)
	t.nothingLeft(ns)
}

func launchExitCode(t *T) {
	t.plainWorld(4, 8)
	ns, q := t.namespace(), t.queued()
	j := q.runs(t, q.gang(t, gangOptions{name: "fails", ns: ns, members: 3}).ID, 20*time.Second)
	t.exitNow(ns, j.Placement.Members[1].Pod, 3)
	j = q.ends(t, j.ID, "Failed", 20*time.Second)
	if j.ExitCode == nil || *j.ExitCode != 3 {
		t.errorf("exit code: %v, reason: %s", j.ExitCode, j.Reason)
	}
	t.nothingLeft(ns)
}

// exitNow ends a running pod.
func (t *T) exitNow(ns, pod string, code int) {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, annExitNow, code)
	_, err := t.k.CoreV1().Pods(ns).Patch(t.ctx, pod, types.MergePatchType, []byte(patch), meta.PatchOptions{})
	t.must(err, "end %s", pod)
}

func launchRetry(t *T) {
	t.plainWorld(4, 8)
	ns, q := t.namespace(), t.queued()
	j := q.runs(t, q.gang(t, gangOptions{name: "again", ns: ns, members: 2, extra: "  retries: 1\n"}).ID, 20*time.Second)
	t.exitNow(ns, j.Placement.Members[0].Pod, 1)
	t.eventually(20*time.Second, func() string {
		now, err := q.job(j.ID)
		if err != nil || now.State != "Running" || now.Attempt != 2 {
			return fmt.Sprintf("it is %s, attempt %d (%v)", now.State, now.Attempt, err)
		}
		return ""
	})
	t.agent.setDuration(50 * time.Millisecond)
	q.ends(t, j.ID, "Succeeded", 20*time.Second)
}

func launchLogs(t *T) {
	t.plainWorld(4, 8)
	ns, q := t.namespace(), t.queued()
	j := q.runs(t, q.gang(t, gangOptions{name: "talks", ns: ns, members: 2}).ID, 20*time.Second)
	var text string
	t.must(q.call("GET", fmt.Sprintf("/v1/jobs/%d/logs?member=worker-1&tail=2", j.ID), "", nil, &text), "logs")
	pod := j.Placement.Members[1].Pod
	if want := logLine(ns, pod, "main", logLines-2) + "\n" + logLine(ns, pod, "main", logLines-1); strings.TrimSpace(text) != want {
		t.errorf("the output is %q, not %q", text, want)
	}
}

func launchCommandLine(t *T) {
	t.plainWorld(4, 8)
	ns, q := t.namespace(), t.queued()
	file := filepath.Join(t.dir, "job.yaml")
	t.must(writeFile(file, gangText(gangOptions{name: "typed", ns: ns, members: 2})), "write")
	t.agent.setDuration(200 * time.Millisecond)
	for _, args := range [][]string{{"submit", file}, {"wait", "typed", "--timeout", "30s"}, {"show", "typed"}} {
		cmd := exec.CommandContext(t.ctx, t.options.submit, append([]string{"--server", "unix:" + filepath.Join(q.dir, "s")}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.fatalf("dra-submit %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

func launchCertificate(t *T) {
	t.plainWorld(4, 8)
	ns := t.namespace()
	dir := filepath.Join(t.dir, "certificate")
	q := newServer(t.options.binary, dir, "--kubeconfig", t.plane.kubeconfig("admin"), "--lease", "none")
	t.cleanup(func() { q.wrapUp(t) })
	t.must(q.start(), "start")
	t.must(q.apply(mainQueue), "queue")
	q.runs(t, q.gang(t, gangOptions{name: "certified", ns: ns, members: 2}).ID, 20*time.Second)
}

const fabric = `apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: fabric}
spec: {selectors: [{cel: {expression: 'device.driver == "fabric.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: fabric}
spec:
  driver: fabric.example.com
  allNodes: true
  pool: {name: fabric, generation: 1, resourceSliceCount: 1}
  devices: [{name: plane-0}, {name: plane-1}]
`

func launchShared(t *T) {
	t.inWorld("fabric", func() {
		for i := range 4 {
			name := fmt.Sprintf("node-%d", i)
			t.must(t.agent.addNode(plainNode(name, nil)), "node")
			t.must(t.agent.publish(plainSlice(name, driver, 8)), "slice")
		}
		_, err := t.k.ResourceV1().DeviceClasses().Create(t.ctx, plainClass("gpu"), meta.CreateOptions{})
		t.must(err, "class")
		t.must(t.createText(t.ctx, fabric), "fabric")
	})
	ns, q := t.namespace(), t.queued()
	jobs, err := q.submit("", fmt.Sprintf(`apiVersion: queue.dra/v1
kind: GangJob
metadata: {name: ring, namespace: %s}
spec:
  queue: main
  groups:
    - name: worker
      replicas: 4
      template:
        spec:
          containers:
            - name: main
              image: registry.example/trainer:1
              resources: {claims: [{name: gpus}, {name: net}]}
          resourceClaims:
            - {name: gpus, resourceClaimTemplateName: eight}
            - {name: net, resourceClaimName: plane}
  claimTemplates:
    - name: eight
      spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 8}}]}}
  sharedClaims:
    - name: plane
      spec: {devices: {requests: [{name: net, exactly: {deviceClassName: fabric}}]}}
`, ns))
	t.must(err, "submit")
	j := q.runs(t, jobs[0].ID, 20*time.Second)
	nodes := map[string]bool{}
	for _, member := range j.Placement.Members {
		nodes[member.Node] = true
	}
	if len(nodes) != 4 {
		t.errorf("the members are on %d nodes, not 4", len(nodes))
	}
	t.agent.setDuration(50 * time.Millisecond)
	q.ends(t, j.ID, "Succeeded", 20*time.Second)
	t.nothingLeft(ns)
}

func launchTooManyConsumers(t *T) {
	t.plainWorld(4, 8)
	ns, q, began := t.namespace(), t.queued(), time.Now()
	text := fmt.Sprintf(`apiVersion: queue.dra/v1
kind: GangJob
metadata: {name: crowd, namespace: %s}
spec:
  queue: main
  groups:
    - name: worker
      replicas: 257
      template:
        spec:
          containers: [{name: main, image: registry.example/trainer:1, resources: {claims: [{name: gpu}]}}]
          resourceClaims: [{name: gpu, resourceClaimName: one}]
  sharedClaims:
    - name: one
      spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
`, ns)
	jobs, err := q.submit("", text)
	reason := fmt.Sprint(err)
	if err == nil {
		reason = q.waits(t, jobs[0].ID, "devices")
	}
	if !strings.Contains(reason, "256") {
		t.errorf("the reason does not say that 256 is the limit: %s", reason)
	}
	t.logf("%s", reason)
	t.nothingAppeared([]job{{Namespace: ns}}, began)
}

// A class that does not exist is a mistake in the manifest, refused with its field. It is known from the moment that it appears; a job that
// loses its class waits for it.
func launchLateClass(t *T) {
	t.plainWorld(2, 8)
	t.cleanup(func() { t.world = "" })
	ns, q := t.namespace(), t.queued()
	o := gangOptions{name: "early", ns: ns, members: 2, class: "late"}
	if _, err := q.submit("", gangText(o)); err == nil || !strings.Contains(err.Error(), "late") {
		t.errorf("a class that does not exist is not refused: %v", err)
	}
	classes := t.k.ResourceV1().DeviceClasses()
	_, err := classes.Create(t.ctx, plainClass("late"), meta.CreateOptions{})
	t.must(err, "class")
	var jobs []job
	t.eventually(5*time.Second, func() string {
		jobs, err = q.submit("", gangText(o))
		return errText(err)
	})
	q.runs(t, jobs[0].ID, 10*time.Second)
	o.name, o.extra = "held", "  hold: true\n"
	held := q.gang(t, o)
	t.must(classes.Delete(t.ctx, "late", meta.DeleteOptions{}), "delete the class")
	t.must(q.call("POST", fmt.Sprintf("/v1/jobs/%d/release", held.ID), "", nil, nil), "release")
	if reason := q.waits(t, held.ID, "devices"); !strings.Contains(reason, "late") {
		t.errorf("the reason does not name the class: %s", reason)
	}
	_, err = classes.Create(t.ctx, plainClass("late"), meta.CreateOptions{})
	t.must(err, "class again")
	q.runs(t, held.ID, 10*time.Second)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func launchOldManifests(t *T) {
	t.plainWorld(4, 8)
	ns, q := t.namespace(), t.queued()
	jobs, err := q.submit("queue=main", fmt.Sprintf(`apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata: {name: flat, namespace: %[1]s}
spec: {spec: {devices: {requests: [{name: gpu, deviceClassName: gpu, count: 2}]}}}
---
apiVersion: resource.k8s.io/v1beta2
kind: ResourceClaimTemplate
metadata: {name: exact, namespace: %[1]s}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 1}}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: old, namespace: %[1]s}
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: registry.example/trainer:1, resources: {claims: [{name: a}, {name: b}]}}]
      resourceClaims:
        - {name: a, resourceClaimTemplateName: flat}
        - {name: b, resourceClaimTemplateName: exact}
`, ns))
	t.must(err, "submit")
	q.runs(t, jobs[0].ID, 20*time.Second)
	t.agent.setDuration(50 * time.Millisecond)
	q.ends(t, jobs[0].ID, "Succeeded", 20*time.Second)
}

func launchPreparing(t *T) {
	t.plainWorld(4, 8)
	ns, q := t.namespace(), t.queued()
	j := q.gang(t, gangOptions{name: "stuck", ns: ns, members: 2, notes: map[string]string{annPrepare: "true"}})
	said := ""
	t.eventually(15*time.Second, func() string {
		why, err := q.explain(j.ID)
		if said = fmt.Sprint(why["summary"]); err != nil || why["state"] != "Launching" || why["cause"] != "node" {
			return fmt.Sprintf("%v: %v (%v)", why["cause"], said, err)
		}
		return ""
	})
	t.logf("%s", said)
	t.must(q.cancel(j.ID), "cancel")
	q.ends(t, j.ID, "Cancelled", 20*time.Second)
	t.nothingLeft(ns)
}

func launchNoGroups(t *T) {
	t.plainWorld(4, 8)
	ns, q, began := t.namespace(), t.queued("--pod-groups", "auto"), time.Now()
	q.runs(t, q.gang(t, gangOptions{name: "plain", ns: ns, members: 2}).ID, 20*time.Second)
	log, err := t.plane.audit(began)
	t.must(err, "audit log")
	for _, r := range log {
		if r.Object.Resource == "podgroups" && r.isQueued() && r.isWrite() {
			t.errorf("queued asked for %s %s", r.Verb, r.URI)
		}
	}
}

// ---- bind mode ----

// writesOf counts what queued asked for since a moment: verb and resource.
func (t *T) writesOf(since time.Time) map[string]int {
	log, err := t.plane.audit(since)
	t.must(err, "audit log")
	n := map[string]int{}
	for _, r := range log {
		if r.isQueued() && r.isWrite() {
			n[strings.TrimSuffix(r.Verb+" "+r.Object.Resource+"/"+r.Object.Subresource, "/")]++
		}
	}
	return n
}

// bindPlain: queued writes the allocations, and kube-scheduler or queued itself the bindings.
func bindPlain(t *T, bindings int, flags ...string) {
	t.plainWorld(4, 8)
	ns, q, began := t.namespace(), t.queued(append(flags, "--bind-classes", "gpu")...), time.Now()
	j := q.runs(t, q.gang(t, gangOptions{name: "bound", ns: ns, members: 4, devices: 4}).ID, 20*time.Second)
	writes := t.writesOf(began)
	if writes["update resourceclaims/status"] != 4 || writes["create pods/binding"] != bindings {
		t.errorf("queued wrote %v, not 4 allocations and %d bindings", writes, bindings)
	}
	t.agent.setDuration(50 * time.Millisecond)
	q.ends(t, j.ID, "Succeeded", 20*time.Second)
	t.nothingLeft(ns)
}

// Somebody else allocates the very device in the same moment: the API server refuses neither.
func bindRival(t *T) {
	t.plainWorld(1, 1)
	x, err := startProxy(t.plane)
	t.must(err, "proxy")
	t.cleanup(x.stop)
	ns, other := t.namespace(), t.namespace()
	hold := make(chan struct{})
	x.set(&fault{Method: "POST", Part: "/pods", Times: 1, Hold: hold})
	q := t.queuedThrough(x.url, "--bind-classes", "gpu", "--launch-timeout", "10s")
	j := q.gang(t, gangOptions{name: "first", ns: ns, members: 1})
	t.eventually(10*time.Second, func() string {
		if x.count() == 0 {
			return "its pod is not created"
		}
		return ""
	})
	t.must(t.bindByHand(other, "rival", "node-0", "gpu-0"), "rival")
	close(hold)
	t.eventually(15*time.Second, func() string {
		now, err := q.job(j.ID)
		if err != nil || now.State != "Pending" {
			return fmt.Sprintf("the job is %s (%v), and the device has two claims", now.State, err)
		}
		return ""
	})
	t.must(t.k.ResourceV1().ResourceClaims(other).Delete(t.ctx, "rival", meta.DeleteOptions{}), "end the rival's claim")
	q.runs(t, j.ID, 40*time.Second)
}

// bindByHand writes the allocation of a new claim, as another program in bind mode would.
func (t *T) bindByHand(ns, name, node, device string) error {
	claims := t.k.ResourceV1().ResourceClaims(ns)
	claim, err := claims.Create(t.ctx, &resourceapi.ResourceClaim{ObjectMeta: meta.ObjectMeta{Name: name}, Spec: oneDevice()}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	now := meta.Now()
	claim.Status.Allocation = &resourceapi.AllocationResult{AllocationTimestamp: &now,
		Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{Request: "gpu", Driver: driver, Pool: node, Device: device}}},
		NodeSelector: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{MatchFields: []core.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: core.NodeSelectorOpIn, Values: []string{node}}}}}}}
	_, err = claims.UpdateStatus(t.ctx, claim, meta.UpdateOptions{})
	return err
}
