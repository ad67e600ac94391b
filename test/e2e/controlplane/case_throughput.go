package main

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// How fast gangs get through, beside the same pods created directly, in one run on one control plane. A benchmark: it fails when
// pods are not bound, not when they are slow.
//
// Every pod has one device. Where all have room at once, they end when all are bound; else they run for a moment. Directly: eight pods after another as a gang would be, by ten workers,
// with claims generated from a template, with claims that exist before the clock starts, and as native PodGroups.

const gangSize = 8

func throughputCases(o *options) []testCase {
	cases := []testCase{}
	for _, limits := range []string{"default-limits", "raised-limits"} {
		cases = append(cases, testCase{name: "throughput/" + limits, profile: limits, limit: 15 * time.Minute, run: func(t *T) { throughput(t, limits) }})
	}
	return cases
}

// flow is one way to get the pods started, and what was measured.
type flow struct {
	name     string
	ns       string
	run      func(t *T, f *flow, gangs int)
	pods     int
	began    time.Time // the first request, or the submission
	seconds  float64   // until all are bound
	waits    []float64 // of each pod
	requests map[string]int
	server   *server // that ran it, or nil
}

func throughput(t *T, limits string) {
	gangs, nodes := 40, 40
	if t.options.isFull {
		gangs = 200
	}
	t.plainWorld(nodes, 8)
	flows := []*flow{{name: "templates", run: flowTemplates}, {name: "existing claims", run: flowExisting}}
	if hasNativeGangs {
		flows = append(flows, &flow{name: "PodGroups, existing claims", run: flowNative})
	}
	queued := func(name, extra string, flags ...string) {
		flows = append(flows, &flow{name: name, run: func(t *T, f *flow, n int) { flowQueued(t, f, n, extra, flags...) }})
	}
	withoutNames := "  network: {enableDNSHostnames: false}\n" // no Service: the same pods as those above
	queued("queued, binds pods, no names", withoutNames, "--bind-classes", "gpu", "--bind-pods", "true")
	queued("queued, binds pods", "", "--bind-classes", "gpu", "--bind-pods", "true")
	queued("queued, allocates itself", "", "--bind-classes", "gpu")
	queued("queued", "")
	for i, f := range flows {
		f.ns = fmt.Sprintf("flow-%s-%d", limits, i)
		t.must(t.makeNamespace(t.ctx, f.ns, nil), "namespace")
		t.guard(func() { measure(t, f, gangs) })
		if f.server != nil { // lest it watches, and is told of, those after it
			t.nothingLeft(f.ns)
			t.must(f.server.stop(), "stop")
		}
		t.clear(f.ns)
	}
	report(t, flows, gangs)
	byTemplate, existing := flows[0].rate(), flows[1].rate()
	for _, f := range flows[len(flows)-4:] {
		t.logf("%s : templates %.2f, : existing claims %.2f", f.name, f.rate()/byTemplate, f.rate()/existing)
	}
	t.logf("aims, in full size on a quiet machine: default limits 3 x templates, raised limits 0.9 x existing claims")
}

func (f *flow) rate() float64 {
	if f.seconds == 0 {
		return 0
	}
	return float64(f.pods) / f.seconds
}

func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}

func report(t *T, flows []*flow, gangs int) {
	t.logf("%-26s %8s %7s %11s %13s   requests per pod: %5s %9s %11s", "", "gangs/s", "pods/s", "all bound s", "median wait s", "own", "scheduler", "controllers")
	for _, f := range flows {
		sort.Float64s(f.waits)
		per := func(who string) float64 { return float64(f.requests[who]) / float64(f.pods) }
		t.logf("%-26s %8.1f %7.1f %11.1f %13.2f                     %5.1f %9.1f %11.1f", f.name, f.rate()/gangSize, f.rate(), f.seconds, quantile(f.waits, 0.5),
			per("own"), per("scheduler"), per("controllers"))
	}
	t.logf("%d gangs x %d pods, 40 nodes x 8 devices; own: of queued, or of whoever creates the pods", gangs, gangSize)
}

// bindings notes when each pod of a namespace was bound.
type bindings struct {
	mu    sync.Mutex
	bound map[string]time.Time
	done  chan struct{}
	want  int
}

func watchBindings(t *T, ns string, want int) *bindings {
	b := &bindings{bound: map[string]time.Time{}, done: make(chan struct{}), want: want}
	factory := informers.NewSharedInformerFactoryWithOptions(t.k, 0, informers.WithNamespace(ns))
	pods := factory.Core().V1().Pods().Informer()
	see := func(o any) {
		pod := o.(*core.Pod)
		b.mu.Lock()
		defer b.mu.Unlock()
		if _, ok := b.bound[pod.Name]; pod.Spec.NodeName == "" || ok {
			return
		}
		b.bound[pod.Name] = time.Now()
		if len(b.bound) == b.want {
			close(b.done)
		}
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) }})
	t.must(err, "watch pods")
	stop := make(chan struct{})
	t.cleanup(sync.OnceFunc(func() { close(stop) }))
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	return b
}

func measure(t *T, f *flow, gangs int) {
	f.pods = gangs * gangSize
	b := watchBindings(t, f.ns, f.pods)
	if f.pods > 40*8 {
		t.agent.setDuration(time.Second) // else all have room at once, and ends do not get in the way
	}
	f.run(t, f, gangs)
	select {
	case <-b.done:
	case <-time.After(6 * time.Minute):
		t.fatalf("%s: %d of %d pods are bound after 6 minutes", f.name, len(b.bound), f.pods)
	}
	b.mu.Lock()
	last := f.began
	for _, at := range b.bound {
		f.waits = append(f.waits, at.Sub(f.began).Seconds())
		if at.After(last) {
			last = at
		}
	}
	b.mu.Unlock()
	f.seconds = last.Sub(f.began).Seconds()
	t.agent.setDuration(time.Second)
	t.settle(f.ns)
	t.agent.setDuration(0)
	f.requests = t.requests(f.began)
}

// settle waits until all pods of a namespace have ended.
func (t *T) settle(ns string) {
	t.eventually(3*time.Minute, func() string {
		pods, err := t.k.CoreV1().Pods(ns).List(t.ctx, meta.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for i := range pods.Items {
			if !hasEnded(&pods.Items[i]) {
				return "pod " + pods.Items[i].Name + " has not ended"
			}
		}
		return ""
	})
}

// requests counts what the API server was asked: by queued or the creator ("own"), by the scheduler, by controllers. Those of
// the kubelets do not count, since they are the same for all.
func (t *T) requests(since time.Time) map[string]int {
	log, err := t.plane.audit(since)
	t.must(err, "audit log")
	n := map[string]int{}
	for _, r := range log {
		switch user := r.User.Username; {
		case r.Object.Resource == "leases" || user == "agent":
		case r.isQueued():
			n["own"]++
		case user == "admin" && (r.Verb == "create" || r.Verb == "patch"):
			n["own"]++
		case user == "system:kube-scheduler":
			n["scheduler"]++
		case strings.HasPrefix(user, "system:serviceaccount:kube-system:") || user == "system:kube-controller-manager":
			n["controllers"]++
		}
	}
	return n
}

// clear empties a namespace of pods, claims and groups.
func (t *T) clear(ns string) {
	zero := int64(0)
	_ = t.k.CoreV1().Pods(ns).DeleteCollection(t.ctx, meta.DeleteOptions{GracePeriodSeconds: &zero}, meta.ListOptions{})
	dropNativeGangs(t.ctx, t.k, ns)
	_ = t.k.ResourceV1().ResourceClaims(ns).DeleteCollection(t.ctx, meta.DeleteOptions{}, meta.ListOptions{})
	t.eventually(2*time.Minute, func() string {
		claims, err := t.k.ResourceV1().ResourceClaims(ns).List(t.ctx, meta.ListOptions{})
		if err != nil || len(claims.Items) > 0 {
			return fmt.Sprintf("%d claims are still there (%v)", len(claims.Items), err)
		}
		return ""
	})
}

// ---- the flows ----

// inParallel calls f for 0 .. n-1, from ten workers.
func inParallel(t *T, n int, f func(i int) error) {
	var wait sync.WaitGroup
	work, failed := make(chan int), make(chan error, n)
	for range 10 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range work {
				if err := f(i); err != nil {
					failed <- err
				}
			}
		}()
	}
	for i := range n {
		work <- i
	}
	close(work)
	wait.Wait()
	select {
	case err := <-failed:
		t.fatalf("create: %v", err)
	default:
	}
}

func oneDevice() resourceapi.ResourceClaimSpec {
	return resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "gpu",
		Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}}}}}
}

func podName(i int) string { return fmt.Sprintf("gang-%d-%d", i/gangSize, i%gangSize) }

func devicePod(ns, name string, claim core.PodResourceClaim) *core.Pod {
	zero := int64(0)
	claim.Name = "gpu"
	return &core.Pod{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: ns}, Spec: core.PodSpec{RestartPolicy: core.RestartPolicyNever, TerminationGracePeriodSeconds: &zero,
		ResourceClaims: []core.PodResourceClaim{claim},
		Containers: []core.Container{{Name: "main", Image: "registry.example/trainer:1",
			Resources: core.ResourceRequirements{Claims: []core.ResourceClaim{{Name: "gpu"}}}}}}}
}

func createPods(t *T, f *flow, n int, claim func(i int) core.PodResourceClaim, also func(i int, pod *core.Pod)) {
	f.began = time.Now()
	inParallel(t, n, func(i int) error {
		pod := devicePod(f.ns, podName(i), claim(i))
		if also != nil {
			also(i, pod)
		}
		_, err := t.k.CoreV1().Pods(f.ns).Create(t.ctx, pod, meta.CreateOptions{})
		return err
	})
}

func flowTemplates(t *T, f *flow, gangs int) {
	name := "one"
	_, err := t.k.ResourceV1().ResourceClaimTemplates(f.ns).Create(t.ctx, &resourceapi.ResourceClaimTemplate{ObjectMeta: meta.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceClaimTemplateSpec{Spec: oneDevice()}}, meta.CreateOptions{})
	t.must(err, "template")
	createPods(t, f, gangs*gangSize, func(int) core.PodResourceClaim { return core.PodResourceClaim{ResourceClaimTemplateName: &name} }, nil)
}

func existingClaims(t *T, f *flow, n int) func(i int) core.PodResourceClaim {
	inParallel(t, n, func(i int) error {
		_, err := t.k.ResourceV1().ResourceClaims(f.ns).Create(t.ctx, &resourceapi.ResourceClaim{ObjectMeta: meta.ObjectMeta{Name: podName(i)}, Spec: oneDevice()}, meta.CreateOptions{})
		return err
	})
	return func(i int) core.PodResourceClaim {
		name := podName(i)
		return core.PodResourceClaim{ResourceClaimName: &name}
	}
}

func flowExisting(t *T, f *flow, gangs int) {
	createPods(t, f, gangs*gangSize, existingClaims(t, f, gangs*gangSize), nil)
}

func flowNative(t *T, f *flow, gangs int) {
	claims := existingClaims(t, f, gangs*gangSize)
	began := time.Now()
	inParallel(t, gangs, func(i int) error { return makeNativeGang(t.ctx, t.k, f.ns, fmt.Sprintf("gang-%d", i), gangSize) })
	createPods(t, f, gangs*gangSize, claims, func(i int, pod *core.Pod) { joinNativeGang(pod, fmt.Sprintf("gang-%d", i/gangSize)) })
	f.began = began
}

func flowQueued(t *T, f *flow, gangs int, extra string, flags ...string) {
	q := t.queued(flags...)
	f.server = q
	var text strings.Builder
	for i := range gangs {
		text.WriteString("---\n" + gangText(gangOptions{name: fmt.Sprintf("gang-%d", i), ns: f.ns, members: gangSize, extra: extra}))
	}
	f.began = time.Now()
	_, err := q.submit("", text.String())
	t.must(err, "submit %d gangs", gangs)
}
