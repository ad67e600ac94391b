package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const (
	labelJob     = "queue.dra/job"
	labelAttempt = "queue.dra/attempt"
	labelServer  = "queue.dra/server"
)

// checker watches everything that queued makes, during the whole run, and notes what must never be:
// a member that may start, or runs, before all members of its attempt exist; two attempts of a job at once.
type checker struct {
	mu       sync.Mutex
	attempts map[string]*attempt                   // namespace/job/attempt
	alive    map[string]map[string]map[string]bool // kind -> namespace/job -> attempt -> anything there
	objects  map[string]string                     // kind and key of all that exist -> attempt
	ever     map[string]int                        // namespace -> how many objects ever appeared
	faults   []string
	until    time.Time // the watches may have broken: what they tell now may be told out of order
}

type attempt struct {
	members int             // of the gang, as its pods say
	seen    map[string]bool // pods that existed at some time
}

func startChecker(ctx context.Context, k kubernetes.Interface) (*checker, error) {
	c := &checker{attempts: map[string]*attempt{}, alive: map[string]map[string]map[string]bool{}, objects: map[string]string{}, ever: map[string]int{}}
	ours := informers.NewSharedInformerFactoryWithOptions(k, 0, informers.WithTweakListOptions(func(o *v1.ListOptions) { o.LabelSelector = labelJob }))
	for kind, informer := range map[string]cache.SharedIndexInformer{
		"Pod": ours.Core().V1().Pods().Informer(), "ResourceClaim": ours.Resource().V1().ResourceClaims().Informer(),
		"ConfigMap": ours.Core().V1().ConfigMaps().Informer(), "Service": ours.Core().V1().Services().Informer(),
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { c.put(kind, o) },
			UpdateFunc: func(_, o any) { c.put(kind, o) },
			DeleteFunc: func(o any) { c.gone(kind, o) },
		}); err != nil {
			return nil, err
		}
	}
	ours.Start(ctx.Done())
	ours.WaitForCacheSync(ctx.Done())
	return c, nil
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (c *checker) put(kind string, o any) {
	object, err := meta.Accessor(o)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	labels := object.GetLabels()
	job, number := object.GetNamespace()+"/"+labels[labelServer]+"/"+labels[labelJob], labels[labelAttempt]
	key := kind + " " + object.GetNamespace() + "/" + object.GetName()
	if _, ok := c.objects[key]; !ok {
		c.ever[object.GetNamespace()]++
	}
	c.objects[key] = job + "/" + number + "/"
	if c.alive[kind] == nil {
		c.alive[kind] = map[string]map[string]bool{}
	}
	if c.alive[kind][job] == nil {
		c.alive[kind][job] = map[string]bool{}
	}
	c.alive[kind][job][number] = true
	if len(c.alive[kind][job]) > 1 {
		c.fault("%s: two attempts of a job at once: %s", job, strings.Join(keysOf(c.objects, kind+" ", job+"/"), ", "))
	}
	if pod, ok := o.(*core.Pod); ok {
		c.pod(job+"/"+number, pod)
	}
}

func keysOf(objects map[string]string, prefix, value string) []string {
	var keys []string
	for key, v := range objects {
		if strings.HasPrefix(key, prefix) && strings.HasPrefix(v, value) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	return keys
}

func (c *checker) pod(name string, pod *core.Pod) {
	a := c.attempts[name]
	if a == nil {
		a = &attempt{seen: map[string]bool{}}
		c.attempts[name] = a
	}
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.Name == "WORLD_SIZE" {
			_, _ = fmt.Sscan(variable.Value, &a.members)
		}
	}
	a.seen[pod.Name] = true
	isHeld := len(pod.Spec.SchedulingGates) > 0 || (pod.Spec.SchedulerName == "queued" && pod.Spec.NodeName == "")
	isFree := !isHeld && pod.DeletionTimestamp == nil
	judge := func() {
		if isFree && len(a.seen) < a.members {
			c.fault("%s: pod %s may start (%s) while only %d of %d members exist", name, pod.Name, pod.Status.Phase, len(a.seen), a.members)
		}
	}
	if time.Now().After(c.until) {
		judge()
		return
	}
	time.AfterFunc(time.Second, func() { // when the new listing has been told to its end
		c.mu.Lock()
		defer c.mu.Unlock()
		judge()
	})
}

// forgive: the API server was restarted, so that the watches begin anew with a listing.
func (c *checker) forgive(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Now().Add(d)
}

func (c *checker) gone(kind string, o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	object, err := meta.Accessor(o)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	labels := object.GetLabels()
	job, number := object.GetNamespace()+"/"+labels[labelServer]+"/"+labels[labelJob], labels[labelAttempt]
	delete(c.objects, kind+" "+object.GetNamespace()+"/"+object.GetName())
	if len(keysOf(c.objects, kind+" ", job+"/"+number+"/")) == 0 {
		delete(c.alive[kind][job], number)
	}
}

// take returns the faults since it was last asked.
func (c *checker) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	faults := c.faults
	c.faults = nil
	return faults
}

// left lists what exists of ours in a namespace; empty: in any.
func (c *checker) left(ns string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []string
	for key := range c.objects {
		if ns == "" || strings.Contains(key, " "+ns+"/") {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	return keys
}

// appeared tells how many objects of ours a namespace has ever had.
func (c *checker) appeared(ns string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ever[ns]
}
