package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a launch does when things break, and others interfere.

func faultCases(*options) []testCase {
	cases := []testCase{
		{name: "fault/foreign-pod-takes-a-planned-device", profile: "usual", run: faultStolen},
		{name: "fault/api-server-restarts-during-a-launch", profile: "usual", run: faultRestartLaunch},
		{name: "fault/api-server-is-away-while-a-gang-runs", profile: "usual", run: faultRestartRunning},
		{name: "fault/watches-break", profile: "usual", run: faultWatches},
		{name: "fault/slices-are-withdrawn-and-come-back", profile: "usual", run: faultSlices},
		{name: "fault/device-falls-ill", profile: "usual", run: faultIll},
		{name: "fault/two-servers-and-a-lease", profile: "usual", run: faultLease},
		{name: "fault/token-is-not-accepted-any-more", profile: "usual", run: faultToken},
	}
	for _, c := range brokenAnswers {
		cases = append(cases, testCase{name: "fault/answers/" + c.name, profile: "usual", run: func(t *T) { faultAnswers(t, c.faults()) }})
	}
	for _, kind := range []string{"pod", "anchor", "service"} {
		cases = append(cases, testCase{name: "fault/deleted-by-hand/" + kind, profile: "usual", run: func(t *T) { faultDeleted(t, kind) }})
	}
	return append(cases, testCase{name: "fault/deleted-by-hand/claim-of-a-running-member", profile: "usual", run: faultDeletedClaim},
		testCase{name: "fault/deleted-by-hand/claim-before-the-start", profile: "usual", run: faultDeletedEarly})
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

func (t *T) proxy() *proxy {
	x, err := startProxy(t.plane)
	t.must(err, "proxy")
	t.cleanup(x.stop)
	return x
}

// ends its members and checks the good end.
func (t *T) toTheEnd(q *server, id int64) {
	t.agent.setDuration(50 * time.Millisecond)
	j := q.ends(t, id, "Succeeded", 30*time.Second)
	t.nothingLeft(j.Namespace)
}

// takeDevice lets a pod of somebody else have a device, by kube-scheduler; it returns when it runs.
func (t *T) takeDevice(ns, name, node, device string) error {
	spec := oneDevice()
	spec.Devices.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
		Expression: fmt.Sprintf("device.attributes[%q].uuid == %q", driver, "GPU-"+node+strings.TrimPrefix(device, "gpu"))}}}
	if _, err := t.k.ResourceV1().ResourceClaims(ns).Create(t.ctx, &resourceapi.ResourceClaim{ObjectMeta: meta.ObjectMeta{Name: name}, Spec: spec}, meta.CreateOptions{}); err != nil {
		return err
	}
	pod := devicePod(ns, name, core.PodResourceClaim{ResourceClaimName: &name})
	if _, err := t.k.CoreV1().Pods(ns).Create(t.ctx, pod, meta.CreateOptions{}); err != nil {
		return err
	}
	t.eventually(10*time.Second, func() string {
		now, err := t.k.CoreV1().Pods(ns).Get(t.ctx, name, meta.GetOptions{})
		if err != nil || now.Status.Phase != core.PodRunning {
			return fmt.Sprintf("pod %s does not run (%v)", name, err)
		}
		return ""
	})
	return nil
}

// Between plan and bind a pod of somebody else gets one of the devices: the gang must not hang half started.
func faultStolen(t *T) {
	t.plainWorld(2, 2)
	x, ns, other, hold := t.proxy(), t.namespace(), t.namespace(), make(chan struct{})
	x.set(&fault{Method: "PATCH", Part: "/pods/", Times: -1, Hold: hold})
	q := t.queuedThrough(x.url, "--launch-timeout", "3s")
	j := q.gang(t, gangOptions{name: "robbed", ns: ns, members: 2, devices: 2})
	t.eventually(10*time.Second, func() string {
		if x.count() == 0 {
			return "no gate is taken off"
		}
		return ""
	})
	t.must(t.takeDevice(other, "thief", "node-1", "gpu-1"), "thief")
	x.set()
	close(hold)
	t.eventually(20*time.Second, func() string {
		now, err := q.job(j.ID)
		if err != nil || now.State != "Pending" {
			return fmt.Sprintf("the job is %s (%v)", now.State, err)
		}
		return ""
	})
	t.nothingLeft(ns)
	now, _ := q.job(j.ID)
	t.logf("reason: %s", now.Reason)
	zero := int64(0)
	t.must(t.k.CoreV1().Pods(other).Delete(t.ctx, "thief", meta.DeleteOptions{GracePeriodSeconds: &zero}), "end the thief")
	t.must(t.k.ResourceV1().ResourceClaims(other).Delete(t.ctx, "thief", meta.DeleteOptions{}), "end the thief's claim")
	q.runs(t, j.ID, 30*time.Second)
	t.toTheEnd(q, j.ID)
}

func faultRestartLaunch(t *T) {
	t.plainWorld(4, 8)
	ns, x := t.namespace(), t.proxy()
	q := t.queuedThrough(x.url)
	reached := make(chan struct{}, 100)
	x.set(&fault{Method: "POST", Part: "/pods", Times: -1, Delay: 50 * time.Millisecond, Happens: func(*http.Request) { reached <- struct{}{} }})
	j := q.gang(t, gangOptions{name: "shaken", ns: ns, members: 8})
	<-reached
	t.must(t.restart("apiserver", true, time.Second), "restart the API server")
	x.set()
	q.runs(t, j.ID, 60*time.Second)
	t.toTheEnd(q, j.ID)
}

func faultRestartRunning(t *T) {
	t.plainWorld(4, 8)
	ns, q := t.namespace(), t.queued()
	j := q.runs(t, q.gang(t, gangOptions{name: "patient", ns: ns, members: 4}).ID, 20*time.Second)
	t.must(t.restart("apiserver", true, 3*time.Second), "restart the API server")
	t.never(3*time.Second, func() string {
		now, err := q.job(j.ID)
		if err != nil || now.State != "Running" || now.Attempt != 1 {
			return fmt.Sprintf("the job is %s, attempt %d: %s (%v)", now.State, now.Attempt, now.Reason, err)
		}
		return ""
	})
	t.toTheEnd(q, j.ID)
}

// All streams break again and again while gangs come and go.
func faultWatches(t *T) {
	t.plainWorld(4, 8)
	t.agent.setDuration(200 * time.Millisecond)
	ns, x := t.namespace(), t.proxy()
	q := t.queuedThrough(x.url)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(150 * time.Millisecond):
				x.cut()
			}
		}
	}()
	var jobs []job
	for i := range 8 {
		jobs = append(jobs, q.gang(t, gangOptions{name: fmt.Sprintf("torn-%d", i), ns: ns, members: 4}))
	}
	time.Sleep(3 * time.Second)
	close(stop)
	for _, j := range jobs {
		q.ends(t, j.ID, "Succeeded", 60*time.Second)
	}
	t.nothingLeft(ns)
}

// brokenAnswers: what the API server may answer to any request but the first listing.
var brokenAnswers = []struct {
	name   string
	faults func() []*fault
}{
	{"429-for-creations", func() []*fault {
		return []*fault{{Method: "POST", Part: "/namespaces/", Times: 3, Status: 429, Retry: 1}}
	}},
	{"429-for-gates", func() []*fault { return []*fault{{Method: "PATCH", Part: "/pods/", Times: 3, Status: 429, Retry: 1}} }},
	{"429-for-deletions", func() []*fault { return []*fault{{Method: "DELETE", Times: 2, Status: 429, Retry: 1}} }},
	{"500-for-the-anchor", func() []*fault { return []*fault{{Method: "POST", Part: "/configmaps", Times: 2, Status: 500}} }},
	{"500-for-claims", func() []*fault {
		return []*fault{{Method: "POST", Part: "/resourceclaims", Skip: 1, Times: 2, Status: 500}}
	}},
	{"500-for-pods", func() []*fault { return []*fault{{Method: "POST", Part: "/pods", Skip: 1, Times: 2, Status: 500}} }},
	{"500-for-gates", func() []*fault { return []*fault{{Method: "PATCH", Part: "/pods/", Skip: 1, Times: 2, Status: 500}} }},
	{"503-for-everything-once", func() []*fault {
		return []*fault{{Method: "POST", Times: 1, Status: 503}, {Method: "PATCH", Times: 1, Status: 503}, {Method: "DELETE", Times: 1, Status: 503}, {Method: "GET", Times: 1, Status: 503}}
	}},
	{"cut-after-creating-claims", func() []*fault { return []*fault{{Method: "POST", Part: "/resourceclaims", Times: 2, Cut: true}} }},
	{"cut-after-creating-pods", func() []*fault { return []*fault{{Method: "POST", Part: "/pods", Times: 2, Cut: true}} }},
	{"cut-after-opening-gates", func() []*fault { return []*fault{{Method: "PATCH", Part: "/pods/", Times: 2, Cut: true}} }},
	{"cut-after-deleting", func() []*fault { return []*fault{{Method: "DELETE", Times: 2, Cut: true}} }},
	{"refused-connections", func() []*fault { return []*fault{{Method: "POST", Part: "/namespaces/", Times: 3, Refuse: true}} }},
	{"slow", func() []*fault {
		return []*fault{{Method: "POST", Times: -1, Delay: 300 * time.Millisecond}, {Method: "PATCH", Times: -1, Delay: 300 * time.Millisecond}}
	}},
}

func faultAnswers(t *T, faults []*fault) {
	t.plainWorld(4, 8)
	ns, x := t.namespace(), t.proxy()
	q := t.queuedThrough(x.url)
	x.set(faults...)
	j := q.gang(t, gangOptions{name: "vexed", ns: ns, members: 4})
	q.runs(t, j.ID, 60*time.Second)
	t.toTheEnd(q, j.ID)
	if x.count() == 0 {
		t.errorf("no request was hit")
	}
}

// Somebody deletes an object of a running gang. Members that lose what they need end with the attempt; the job runs again.
func faultDeleted(t *T, kind string) {
	t.plainWorld(4, 8)
	ns, q := t.namespace(), t.queued()
	j := q.runs(t, q.gang(t, gangOptions{name: "plucked", ns: ns, members: 3}).ID, 20*time.Second)
	member, zero := j.Placement.Members[1], int64(0)
	now := meta.DeleteOptions{GracePeriodSeconds: &zero}
	switch kind {
	case "pod":
		t.must(t.k.CoreV1().Pods(ns).Delete(t.ctx, member.Pod, now), "delete")
	case "anchor", "service":
		pod, err := t.k.CoreV1().Pods(ns).Get(t.ctx, member.Pod, meta.GetOptions{})
		t.must(err, "get")
		if kind == "anchor" {
			t.must(t.k.CoreV1().ConfigMaps(ns).Delete(t.ctx, pod.OwnerReferences[0].Name, now), "delete")
		} else {
			t.must(t.k.CoreV1().Services(ns).Delete(t.ctx, pod.Spec.Subdomain, now), "delete")
		}
	}
	t.eventually(40*time.Second, func() string {
		now, err := q.job(j.ID)
		if err != nil || now.State != "Running" || now.Attempt != 2 {
			return fmt.Sprintf("the job is %s, attempt %d: %s (%v)", now.State, now.Attempt, now.Reason, err)
		}
		return ""
	})
	t.toTheEnd(q, j.ID)
}

// A claim that a pod uses stays until the pod has ended, also when somebody deletes it: nothing is lost.
func faultDeletedClaim(t *T) {
	t.plainWorld(4, 8)
	ns, q := t.namespace(), t.queued()
	j := q.runs(t, q.gang(t, gangOptions{name: "plucked", ns: ns, members: 3}).ID, 20*time.Second)
	t.must(t.k.ResourceV1().ResourceClaims(ns).Delete(t.ctx, j.Placement.Members[1].Claims[0].Name, meta.DeleteOptions{}), "delete")
	t.never(2*time.Second, func() string {
		if now, err := q.job(j.ID); err != nil || now.State != "Running" || now.Attempt != 1 {
			return fmt.Sprintf("the job is %s, attempt %d: %s (%v)", now.State, now.Attempt, now.Reason, err)
		}
		return ""
	})
	t.toTheEnd(q, j.ID)
}

// One that no pod uses yet is gone at once: the attempt cannot go on.
func faultDeletedEarly(t *T) {
	t.plainWorld(4, 8)
	x, ns, hold := t.proxy(), t.namespace(), make(chan struct{})
	q := t.queuedThrough(x.url, "--launch-timeout", "20s")
	x.set(&fault{Method: "PATCH", Part: "/pods/", Times: -1, Hold: hold})
	j := q.gang(t, gangOptions{name: "plucked", ns: ns, members: 3})
	t.eventually(10*time.Second, func() string {
		if x.count() == 0 {
			return "no gate is taken off"
		}
		return ""
	})
	now, err := q.job(j.ID)
	t.must(err, "job")
	t.must(t.k.ResourceV1().ResourceClaims(ns).Delete(t.ctx, now.Placement.Members[1].Claims[0].Name, meta.DeleteOptions{}), "delete")
	x.set()
	close(hold)
	t.eventually(40*time.Second, func() string {
		now, err := q.job(j.ID)
		if err != nil || now.State != "Running" || now.Attempt != 2 {
			return fmt.Sprintf("the job is %s, attempt %d: %s (%v)", now.State, now.Attempt, now.Reason, err)
		}
		return ""
	})
	t.toTheEnd(q, j.ID)
}

// A driver restarts: its slices go and come back. What runs goes on; what waits waits until then.
func faultSlices(t *T) {
	t.plainWorld(2, 4)
	t.cleanup(func() { t.world = "" })
	ns, q := t.namespace(), t.queued()
	j := q.runs(t, q.gang(t, gangOptions{name: "runs-on", ns: ns, members: 2, devices: 2}).ID, 20*time.Second)
	taken, err := t.agent.withdraw(driver)
	t.must(err, "withdraw")
	late := q.gang(t, gangOptions{name: "waits", ns: ns, members: 2, devices: 2})
	q.waits(t, late.ID, "devices")
	t.never(2*time.Second, func() string {
		now, err := q.job(j.ID)
		if err != nil || now.State != "Running" || now.Attempt != 1 {
			return fmt.Sprintf("the job is %s, attempt %d: %s (%v)", now.State, now.Attempt, now.Reason, err)
		}
		return ""
	})
	t.must(t.agent.publish(taken...), "publish")
	q.runs(t, late.ID, 15*time.Second)
	if now, _ := q.job(j.ID); now.State != "Running" || now.Attempt != 1 {
		t.errorf("the job is %s, attempt %d", now.State, now.Attempt)
	}
	t.agent.setDuration(50 * time.Millisecond)
	q.ends(t, j.ID, "Succeeded", 20*time.Second)
	q.ends(t, late.ID, "Succeeded", 20*time.Second)
}

// A device gets a taint with NoExecute: its pod is evicted, and the gang starts again without it.
func faultIll(t *T) {
	t.plainWorld(3, 2)
	t.cleanup(func() { t.world = "" })
	ns, q := t.namespace(), t.queued()
	j := q.runs(t, q.gang(t, gangOptions{name: "moves", ns: ns, members: 2, devices: 2}).ID, 20*time.Second)
	ill := j.Placement.Members[0].Node
	t.must(t.agent.taint(driver, ill, "gpu-0", resourceapi.DeviceTaintEffectNoExecute), "taint")
	t.eventually(40*time.Second, func() string {
		now, err := q.job(j.ID)
		if err != nil || now.State != "Running" || now.Attempt != 2 {
			return fmt.Sprintf("the job is %s, attempt %d: %s (%v)", now.State, now.Attempt, now.Reason, err)
		}
		for _, member := range now.Placement.Members {
			if member.Node == ill {
				return "it is on the ill device again"
			}
		}
		return ""
	})
	t.toTheEnd(q, j.ID)
}

// Two servers with one state and a Lease: the second does nothing until the first is killed, and then goes on where it was.
func faultLease(t *T) {
	t.plainWorld(4, 8)
	ns := t.namespace()
	first, second := t.queuedAt(t.plane.server), t.queuedAt(t.plane.server)
	second.state = first.state
	for _, q := range []*server{first, second} {
		q.args = []string{"--kubeconfig", filepath.Join(q.dir, "kubeconfig"), "--lease", t.account.ns + "/queued"}
	}
	t.must(first.start(), "first")
	t.must(first.apply(mainQueue), "queue")
	j := first.runs(t, first.gang(t, gangOptions{name: "kept", ns: ns, members: 4}).ID, 20*time.Second)
	t.must(second.launch(), "second")
	t.never(4*time.Second, func() string {
		if second.isReady() {
			return "both servers are ready"
		}
		if second.proc.hasEnded() {
			return "the second server ended"
		}
		return ""
	})
	late := first.gang(t, gangOptions{name: "between", ns: ns, members: 8})
	time.Sleep(30 * time.Millisecond)
	killed := time.Now()
	first.proc.kill()
	t.must(second.ready(25*time.Second), "second")
	took := time.Since(killed)
	t.logf("taken over after %.1f s", took.Seconds())
	if took > 15*time.Second {
		t.errorf("the second server took over after %s", took)
	}
	second.runs(t, late.ID, 20*time.Second)
	if now, err := second.job(j.ID); err != nil || now.State != "Running" || now.Attempt != 1 {
		t.errorf("the job is %s, attempt %d (%v)", now.State, now.Attempt, err)
	}
	t.agent.setDuration(50 * time.Millisecond)
	second.ends(t, j.ID, "Succeeded", 20*time.Second)
	second.ends(t, late.ID, "Succeeded", 20*time.Second)
	t.nothingLeft(ns)
}

// 401 for a while: the credentials are read again, and nothing is lost.
func faultToken(t *T) {
	t.plainWorld(4, 8)
	ns, x := t.namespace(), t.proxy()
	q := t.queuedThrough(x.url)
	x.set(&fault{Times: 2, Status: 401})
	j := q.gang(t, gangOptions{name: "expired", ns: ns, members: 2})
	q.runs(t, j.ID, 60*time.Second)
	t.toTheEnd(q, j.ID)
}
