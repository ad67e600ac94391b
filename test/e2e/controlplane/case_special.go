package main

import (
	"fmt"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What needs a control plane with other settings: old versions that are soon forgotten, native gangs, nodes that die.

func specialCases(*options) []testCase {
	return []testCase{
		{name: "special/compaction-during-a-watch", profile: "special", run: specialCompaction},
		{name: "special/etcd-restarts", profile: "special", run: specialEtcd},
		{name: "special/pod-groups", profile: "special", run: specialGroups},
		{name: "special/pod-groups-switched-off", profile: "special", run: specialNoGroups},
		{name: "special/node-dies", profile: "special", limit: 4 * time.Minute, run: specialNodeDies},
	}
}

// While all watches are broken and held up, much changes and the old versions are compacted away: queued must notice that its place in the stream
// is lost, list again, and find out what is gone.
func specialCompaction(t *T) {
	t.plainWorld(3, 4)
	t.cleanup(func() { t.world = "" })
	x, ns, hold := t.proxy(), t.namespace(), make(chan struct{})
	q := t.queuedThrough(x.url)
	j := q.runs(t, q.gang(t, gangOptions{name: "before", ns: ns, members: 2}).ID, 20*time.Second)
	x.set(&fault{Method: "GET", Part: "watch=", Times: -1, Hold: hold})
	x.cut()
	t.must(t.k.ResourceV1().ResourceSlices().Delete(t.ctx, "node-2-"+driver, meta.DeleteOptions{}), "delete a slice")
	t.must(t.agent.addNode(plainNode("node-9", nil)), "node")
	t.must(t.agent.publish(plainSlice("node-9", driver, 8)), "slice")
	for i := range 30 { // what makes versions
		_, _ = t.k.CoreV1().ConfigMaps("default").Create(t.ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: fmt.Sprintf("noise-%d", i)}}, meta.CreateOptions{})
		_ = t.k.CoreV1().ConfigMaps("default").Delete(t.ctx, fmt.Sprintf("noise-%d", i), meta.DeleteOptions{})
	}
	time.Sleep(16 * time.Second)
	expired := x.expire()
	close(hold)
	x.set()
	t.eventually(30*time.Second, func() string {
		devices, err := q.items("/v1/devices")
		if err != nil {
			return err.Error()
		}
		pools := map[string]int{}
		for _, d := range devices {
			pools[fmt.Sprint(d["pool"])]++
		}
		if pools["node-2"] != 0 || pools["node-9"] != 8 {
			return fmt.Sprintf("devices by pool: %v", pools)
		}
		return ""
	})
	if now, err := q.job(j.ID); err != nil || now.State != "Running" || now.Attempt != 1 {
		t.errorf("the job is %s, attempt %d (%v)", now.State, now.Attempt, err)
	}
	q.runs(t, q.gang(t, gangOptions{name: "after", ns: ns, members: 1, devices: 8}).ID, 20*time.Second)
	if n := expired(); n == 0 {
		t.errorf("no watch was told that its version is too old")
	} else {
		t.logf("%d watches were told that their version is too old", n)
	}
}

func specialEtcd(t *T) {
	t.plainWorld(3, 4)
	ns, q := t.namespace(), t.queued()
	j := q.runs(t, q.gang(t, gangOptions{name: "steady", ns: ns, members: 2}).ID, 20*time.Second)
	t.must(t.restart("etcd", false, 2*time.Second), "restart etcd")
	late := q.gang(t, gangOptions{name: "late", ns: ns, members: 2})
	q.runs(t, late.ID, 60*time.Second)
	if now, err := q.job(j.ID); err != nil || now.State != "Running" || now.Attempt != 1 {
		t.errorf("the job is %s, attempt %d (%v)", now.State, now.Attempt, err)
	}
	t.agent.setDuration(50 * time.Millisecond)
	q.ends(t, j.ID, "Succeeded", 30*time.Second)
	q.ends(t, late.ID, "Succeeded", 30*time.Second)
}

func (t *T) needsGroups() {
	if !hasNativeGangs {
		t.skipf("this minor has no PodGroups")
	}
}

// Where the server has PodGroups a gang gets one, and its pods join it.
func specialGroups(t *T) {
	t.needsGroups()
	t.plainWorld(3, 4)
	ns, q := t.namespace(), t.queued()
	j := q.runs(t, q.gang(t, gangOptions{name: "grouped", ns: ns, members: 3}).ID, 20*time.Second)
	groups, err := nativeGangs(t.ctx, t.k, ns)
	t.must(err, "list PodGroups")
	if len(groups) != 1 {
		t.errorf("there are PodGroups %v, not one", groups)
	}
	for _, member := range j.Placement.Members {
		pod, err := t.k.CoreV1().Pods(ns).Get(t.ctx, member.Pod, meta.GetOptions{})
		t.must(err, "get")
		if group := groupOf(pod); len(groups) > 0 && group != groups[0] {
			t.errorf("pod %s is in PodGroup %q", pod.Name, group)
		}
	}
	t.agent.setDuration(50 * time.Millisecond)
	q.ends(t, j.ID, "Succeeded", 20*time.Second)
	t.eventually(20*time.Second, func() string {
		if groups, err := nativeGangs(t.ctx, t.k, ns); err != nil || len(groups) > 0 {
			return fmt.Sprintf("PodGroups are left over: %v (%v)", groups, err)
		}
		return ""
	})
	if text := q.tail(1000); strings.Contains(text, "object.refused") {
		t.errorf("its own PodGroup is refused by its model: %s", text[strings.Index(text, "object.refused"):][:120])
	}
}

func specialNoGroups(t *T) {
	t.needsGroups()
	t.plainWorld(3, 4)
	ns, q := t.namespace(), t.queued("--pod-groups", "never")
	q.runs(t, q.gang(t, gangOptions{name: "single", ns: ns, members: 3}).ID, 20*time.Second)
	if groups, err := nativeGangs(t.ctx, t.k, ns); err != nil || len(groups) > 0 {
		t.errorf("there are PodGroups: %v (%v)", groups, err)
	}
}

// Kubernetes leaves a pod on a silent node for five minutes if it does not say otherwise.
const impatient = `          tolerations:
            - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 2}
            - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 2}
`

// A node falls silent. Kubernetes marks its pod for deletion, but nobody is left who could say that it has ended: the gang is taken away at once,
// is not started again while its member may still run there, and is when the node has had the time that the administrator grants it.
func specialNodeDies(t *T) {
	t.plainWorld(4, 2)
	t.cleanup(func() { t.world = "" })
	ns, q := t.namespace(), t.queued("--lost-node-timeout", "15s")
	j := q.runs(t, q.gang(t, gangOptions{name: "survives", ns: ns, members: 2, devices: 2, pod: impatient, grace: 10}).ID, 20*time.Second)
	dead, lost := j.Placement.Members[1].Node, j.Placement.Members[1].Pod
	t.agent.setNode(dead, false)
	began := time.Now()
	t.eventually(60*time.Second, func() string {
		now, err := q.job(j.ID)
		if err != nil || !strings.Contains(now.Reason, "lost") || !strings.Contains(now.Reason, "waits for node "+dead+", which does not answer") {
			return fmt.Sprintf("the job is %s: %s (%v)", now.State, now.Reason, err)
		}
		return ""
	})
	now, _ := q.job(j.ID)
	t.logf("noticed after %.0f s: %s, %s", time.Since(began).Seconds(), now.State, now.Reason)
	t.never(10*time.Second, func() string {
		if now, _ := q.job(j.ID); now.Attempt != 1 || now.State == "Pending" {
			return "it is to run again although its member on the silent node may still run"
		}
		return ""
	})
	t.eventually(60*time.Second, func() string {
		now, err := q.job(j.ID)
		if err != nil || now.State != "Running" || now.Attempt != 2 {
			return fmt.Sprintf("the job is %s, attempt %d: %s (%v)", now.State, now.Attempt, now.Reason, err)
		}
		return ""
	})
	t.logf("runs again after %.0f s", time.Since(began).Seconds())
	if _, err := t.k.CoreV1().Pods(ns).Get(t.ctx, lost, meta.GetOptions{}); err == nil {
		t.errorf("pod %s is still there", lost)
	}
	if _, err := t.k.CoreV1().Nodes().Get(t.ctx, dead, meta.GetOptions{}); err != nil {
		t.errorf("the node is not there any more: %v", err)
	}
	t.toTheEnd(q, j.ID)
}
