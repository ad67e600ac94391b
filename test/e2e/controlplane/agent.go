package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// What a pod's annotations ask of the fake kubelet.
const (
	annDuration = "fake.example.com/duration"  // how long it runs; absent: as long as the agent's default
	annExitCode = "fake.example.com/exit-code" // with which it ends then
	annExitNow  = "fake.example.com/exit-now"  // it ends now, with this code
	annPrepare  = "fake.example.com/preparing" // "true": its devices are never prepared, it does not start
	annStill    = "fake.example.com/still"     // "true": its status is what somebody else wrote
)

// agent is the kubelets of all fake nodes and their DRA driver.
type agent struct {
	k           kubernetes.Interface
	ctx         context.Context
	kubeletPort int32
	leaseEvery  time.Duration
	claims      cache.Store

	mu       sync.Mutex
	nodes    map[string]bool // false: it is down
	ill      map[string]bool // nodes that brought conditions of their own, which are kept
	pods     map[types.UID]*podRun
	duration time.Duration // of pods that say nothing; 0: for ever
	n        int           // pods that began
}

func connect(kubeconfig string) (*kubernetes.Clientset, *rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1
	typed := rest.CopyConfig(config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	k, err := kubernetes.NewForConfig(typed)
	return k, config, err
}

func startAgent(ctx context.Context, kubeconfig string, leaseEvery time.Duration) (*agent, error) {
	k, _, err := connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	a := &agent{k: k, ctx: ctx, leaseEvery: leaseEvery, nodes: map[string]bool{}, ill: map[string]bool{}, pods: map[types.UID]*podRun{}}
	bound := informers.NewSharedInformerFactoryWithOptions(k, 0, informers.WithTweakListOptions(func(o *meta.ListOptions) {
		o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	}))
	all := informers.NewSharedInformerFactory(k, 0)
	claims := all.Resource().V1().ResourceClaims().Informer()
	a.claims = claims.GetStore()
	pods := bound.Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { a.see(o.(*core.Pod)) },
		UpdateFunc: func(_, o any) { a.see(o.(*core.Pod)) },
		DeleteFunc: func(o any) { a.forget(o) },
	}); err != nil {
		return nil, err
	}
	if _, err := claims.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, o any) { a.seeClaim(o.(*resourceapi.ResourceClaim)) }}); err != nil {
		return nil, err
	}
	all.Start(ctx.Done())
	bound.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), claims.HasSynced, pods.HasSynced) {
		return nil, errors.New("the agent cannot read pods and claims")
	}
	go a.renewAll()
	return a, nil
}

// ---- nodes ----

func plainNode(name string, labels map[string]string) *core.Node {
	amounts := core.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("512Gi"), "pods": resource.MustParse("250"),
		"ephemeral-storage": resource.MustParse("1Ti")}
	n := &core.Node{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
		Status: core.NodeStatus{Capacity: amounts, Allocatable: amounts}}
	for key, value := range labels {
		n.Labels[key] = value
	}
	return n
}

func healthy() []core.NodeCondition {
	now := meta.Now()
	conditions := []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now}}
	for _, pressure := range []core.NodeConditionType{core.NodeMemoryPressure, core.NodeDiskPressure, core.NodePIDPressure} {
		conditions = append(conditions, core.NodeCondition{Type: pressure, Status: core.ConditionFalse, LastHeartbeatTime: now, LastTransitionTime: now})
	}
	return conditions
}

// addNode registers a node as a kubelet does: the object, its status, its lease. Conditions that it brings are kept.
func (a *agent) addNode(node *core.Node) error {
	status := node.Status
	isIll := len(status.Conditions) > 0
	if len(status.Conditions) == 0 {
		status.Conditions = healthy()
	}
	status.Addresses = []core.NodeAddress{{Type: core.NodeInternalIP, Address: "127.0.0.1"}, {Type: core.NodeHostName, Address: node.Name}}
	status.NodeInfo = core.NodeSystemInfo{KubeletVersion: "v1.37.2", OperatingSystem: "linux", Architecture: "amd64"}
	status.DaemonEndpoints.KubeletEndpoint.Port = a.kubeletPort
	nodes := a.k.CoreV1().Nodes()
	made, err := nodes.Create(a.ctx, node, meta.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = nodes.Get(a.ctx, node.Name, meta.GetOptions{})
	}
	if err != nil {
		return err
	}
	// The node-lifecycle controller writes to a new node at the same time.
	for try := 0; ; try++ {
		made.Status = status
		if _, err = nodes.UpdateStatus(a.ctx, made, meta.UpdateOptions{}); err == nil {
			break
		}
		if !apierrors.IsConflict(err) || try > 20 {
			return err
		}
		if made, err = nodes.Get(a.ctx, node.Name, meta.GetOptions{}); err != nil {
			return err
		}
	}
	a.mu.Lock()
	a.nodes[node.Name], a.ill[node.Name] = true, isIll
	a.mu.Unlock()
	a.renew(node.Name)
	return nil
}

// setNode: a node that is down renews no lease and looks at no pod.
func (a *agent) setNode(name string, isUp bool) {
	a.mu.Lock()
	a.nodes[name] = isUp
	a.mu.Unlock()
	if isUp {
		a.renew(name)
	}
}

func (a *agent) dropNodes() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodes = map[string]bool{}
}

func (a *agent) runsNode(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nodes[name]
}

func (a *agent) renewAll() {
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-time.After(a.leaseEvery):
		}
		a.mu.Lock()
		var up []string
		for name, isUp := range a.nodes {
			if isUp {
				up = append(up, name)
			}
		}
		a.mu.Unlock()
		for _, name := range up {
			a.renew(name)
			a.report(name)
		}
	}
}

// report says that the node is well, which matters when somebody has found it silent meanwhile.
func (a *agent) report(name string) {
	a.mu.Lock()
	isIll := a.ill[name]
	a.mu.Unlock()
	if node, err := a.k.CoreV1().Nodes().Get(a.ctx, name, meta.GetOptions{}); isIll || err != nil || isReady(node) {
		return
	}
	patch, _ := json.Marshal(map[string]any{"status": map[string]any{"conditions": healthy()}})
	_, _ = a.k.CoreV1().Nodes().Patch(a.ctx, name, types.StrategicMergePatchType, patch, meta.PatchOptions{}, "status")
}

func isReady(node *core.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == core.NodeReady {
			return c.Status == core.ConditionTrue
		}
	}
	return false
}

func (a *agent) renew(name string) {
	seconds, now := int32(40), meta.NowMicro()
	leases := a.k.CoordinationV1().Leases("kube-node-lease")
	spec := coordination.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	patch, _ := json.Marshal(map[string]any{"spec": spec})
	_, err := leases.Patch(a.ctx, name, types.MergePatchType, patch, meta.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, _ = leases.Create(a.ctx, &coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: name}, Spec: spec}, meta.CreateOptions{})
	}
}

// ---- pods ----

type podRun struct {
	pod  *core.Pod // as last seen; guarded by the agent's lock
	poke chan struct{}
}

// setDuration is for pods that run, too: it counts from now.
func (a *agent) setDuration(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.duration = d
	for _, run := range a.pods {
		run.wake()
	}
}

func (a *agent) see(pod *core.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.nodes[pod.Spec.NodeName]; !ok {
		return
	}
	run, ok := a.pods[pod.UID]
	if !ok {
		run = &podRun{poke: make(chan struct{}, 1)}
		a.pods[pod.UID] = run
		go a.run(run)
	}
	run.pod = pod
	run.wake()
}

func (r *podRun) wake() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// A claim that is allocated or reserved may let a pod start.
func (a *agent) seeClaim(claim *resourceapi.ResourceClaim) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, consumer := range claim.Status.ReservedFor {
		if run := a.pods[consumer.UID]; run != nil {
			run.wake()
		}
	}
}

func (a *agent) forget(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if pod, ok := o.(*core.Pod); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		if run := a.pods[pod.UID]; run != nil {
			delete(a.pods, pod.UID)
			run.pod = nil
			run.wake()
		}
	}
}

// claimsReady: as for a kubelet, a pod may run only when each of its claims is allocated and reserved for it.
func (a *agent) claimsReady(pod *core.Pod) bool {
	names := map[string]*string{}
	for _, status := range pod.Status.ResourceClaimStatuses {
		names[status.Name] = status.ResourceClaimName
	}
	var needed []string
	for _, entry := range pod.Spec.ResourceClaims {
		name := entry.ResourceClaimName
		if name == nil {
			made, ok := names[entry.Name]
			if !ok {
				return false
			}
			if name = made; name == nil {
				continue // the claim was not needed
			}
		}
		needed = append(needed, *name)
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		needed = append(needed, extended.ResourceClaimName)
	}
	for _, name := range needed {
		found, ok, _ := a.claims.GetByKey(pod.Namespace + "/" + name)
		if !ok || !isReserved(found.(*resourceapi.ResourceClaim), pod) {
			return false
		}
	}
	return true
}

func isReserved(claim *resourceapi.ResourceClaim, pod *core.Pod) bool {
	if claim.Status.Allocation == nil {
		return false
	}
	for _, consumer := range claim.Status.ReservedFor {
		if consumer.UID == pod.UID || consumer.Resource == "podgroups" {
			return true
		}
	}
	return false
}

// setStatus merges into the status of exactly this pod; false when it is gone or the server refuses.
func (a *agent) setStatus(pod *core.Pod, status core.PodStatus) bool {
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	for try := 0; try < 10; try++ {
		_, err := a.k.CoreV1().Pods(pod.Namespace).Patch(a.ctx, pod.Name, types.StrategicMergePatchType, patch, meta.PatchOptions{}, "status")
		if err == nil {
			return true
		}
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) || a.ctx.Err() != nil {
			return false
		}
		time.Sleep(200 * time.Millisecond)
	}
	return false
}

func condition(t core.PodConditionType, is bool, reason string) core.PodCondition {
	status := core.ConditionFalse
	if is {
		status = core.ConditionTrue
	}
	return core.PodCondition{Type: t, Status: status, Reason: reason, LastTransitionTime: meta.Now()}
}

// address of a pod; a loopback address is refused in EndpointSlices.
func (a *agent) address() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	return fmt.Sprintf("10.%d.%d.%d", 128+a.n>>16%64, a.n>>8%256, a.n%256)
}

func (a *agent) begin(pod *core.Pod) bool {
	now, yes, ip := meta.Now(), true, a.address()
	status := core.PodStatus{Phase: core.PodRunning, StartTime: &now, PodIP: ip, HostIP: "127.0.0.1", PodIPs: []core.PodIP{{IP: ip}},
		Conditions: []core.PodCondition{condition(core.PodInitialized, true, ""), condition(core.PodReadyToStartContainers, true, ""),
			condition(core.ContainersReady, true, ""), condition(core.PodReady, true, "")}}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, core.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true, Started: &yes,
			State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: now}}})
	}
	return a.setStatus(pod, status)
}

func (a *agent) end(pod *core.Pod, code int32) bool {
	phase, reason := core.PodSucceeded, "Completed"
	if code != 0 {
		phase, reason = core.PodFailed, "Error"
	}
	began := meta.Now()
	if pod.Status.StartTime != nil {
		began = *pod.Status.StartTime
	}
	status := core.PodStatus{Phase: phase, Conditions: []core.PodCondition{condition(core.PodReady, false, "PodCompleted"), condition(core.ContainersReady, false, "PodCompleted")}}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, core.ContainerStatus{Name: c.Name, Image: c.Image,
			State: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: code, Reason: reason, StartedAt: began, FinishedAt: meta.Now()}}})
	}
	return a.setStatus(pod, status)
}

func (a *agent) remove(pod *core.Pod) {
	zero := int64(0)
	_ = a.k.CoreV1().Pods(pod.Namespace).Delete(a.ctx, pod.Name, meta.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &meta.Preconditions{UID: &pod.UID}})
}

func hasEnded(pod *core.Pod) bool {
	return pod.Status.Phase == core.PodSucceeded || pod.Status.Phase == core.PodFailed
}

// look returns the pod, and how long it runs.
func (a *agent) look(r *podRun) (*core.Pod, time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.pod == nil {
		return nil, 0
	}
	if d, err := time.ParseDuration(r.pod.Annotations[annDuration]); err == nil {
		return r.pod, d
	}
	return r.pod, a.duration
}

// run is the life of one pod on its node, one round per change.
func (a *agent) run(r *podRun) {
	var isRunning, isOver, isPreparing bool
	var end, retry <-chan time.Time
	for a.ctx.Err() == nil {
		pod, duration := a.look(r)
		if pod == nil {
			return
		}
		isRunning, isOver = isRunning || pod.Status.Phase == core.PodRunning, isOver || hasEnded(pod)
		retry = nil
		switch {
		case !a.runsNode(pod.Spec.NodeName):
			retry = time.After(time.Second)
		case pod.DeletionTimestamp != nil:
			if isRunning && !isOver {
				a.end(pod, 137) // a kubelet reports the end before it removes the pod
			}
			a.remove(pod)
			retry = time.After(time.Second)
		case isOver || pod.Annotations[annStill] == "true":
		case !isRunning && pod.Annotations[annPrepare] == "true":
			if !isPreparing {
				isPreparing = a.setStatus(pod, core.PodStatus{Conditions: []core.PodCondition{condition(core.PodReadyToStartContainers, false, "")}})
			}
		case !isRunning && !a.claimsReady(pod):
			retry = time.After(200 * time.Millisecond)
		case !isRunning && !a.begin(pod):
			retry = time.After(time.Second)
		case !isRunning || (end == nil && duration > 0):
			isRunning = true
			if duration > 0 {
				end = time.After(duration)
			}
		}
		if now := pod.Annotations[annExitNow]; now != "" && isRunning && !isOver {
			code, _ := strconv.Atoi(now)
			isOver = a.end(pod, int32(code))
		}
		select {
		case <-a.ctx.Done():
		case <-r.poke:
		case <-retry:
		case <-end:
			if pod, _ = a.look(r); pod != nil && !isOver && a.runsNode(pod.Spec.NodeName) {
				code, _ := strconv.Atoi(pod.Annotations[annExitCode])
				isOver = a.end(pod, int32(code))
			}
		}
	}
}

// ---- devices ----

// plainSlice is what a simple driver publishes of a node with n devices.
func plainSlice(node, driver string, n int) *resourceapi.ResourceSlice {
	var devices []resourceapi.Device
	for i := 0; i < n; i++ {
		model, index, uuid := "H100", int64(i), fmt.Sprintf("GPU-%s-%d", node, i)
		devices = append(devices, resourceapi.Device{Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": {StringValue: &model}, "index": {IntValue: &index}, "uuid": {StringValue: &uuid}},
			Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}}})
	}
	return &resourceapi.ResourceSlice{ObjectMeta: meta.ObjectMeta{Name: node + "-" + driver},
		Spec: resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}, Devices: devices}}
}

func (a *agent) publish(slices ...*resourceapi.ResourceSlice) error {
	for _, slice := range slices {
		fresh := slice.DeepCopy()
		fresh.ResourceVersion, fresh.UID = "", ""
		if _, err := a.k.ResourceV1().ResourceSlices().Create(a.ctx, fresh, meta.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("publish %s: %w", slice.Name, err)
		}
	}
	return nil
}

// withdraw takes all slices of a driver away, as its end does, and returns them.
func (a *agent) withdraw(driver string) ([]*resourceapi.ResourceSlice, error) {
	api := a.k.ResourceV1().ResourceSlices()
	listed, err := api.List(a.ctx, meta.ListOptions{})
	if err != nil {
		return nil, err
	}
	var taken []*resourceapi.ResourceSlice
	for i := range listed.Items {
		if slice := &listed.Items[i]; slice.Spec.Driver == driver {
			taken = append(taken, slice)
			if err := api.Delete(a.ctx, slice.Name, meta.DeleteOptions{}); err != nil {
				return taken, err
			}
		}
	}
	return taken, nil
}

// taint marks a device in its slice, as a driver does when it finds it ill; an empty effect takes the mark off.
func (a *agent) taint(driver, pool, device string, effect resourceapi.DeviceTaintEffect) error {
	listed, err := a.k.ResourceV1().ResourceSlices().List(a.ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	for _, slice := range listed.Items {
		if slice.Spec.Driver != driver || slice.Spec.Pool.Name != pool {
			continue
		}
		for i := range slice.Spec.Devices {
			if d := &slice.Spec.Devices[i]; d.Name == device {
				d.Taints = nil
				if effect != "" {
					d.Taints = []resourceapi.DeviceTaint{{Key: "example.com/unhealthy", Effect: effect}}
				}
				_, err := a.k.ResourceV1().ResourceSlices().Update(a.ctx, &slice, meta.UpdateOptions{})
				return err
			}
		}
	}
	return fmt.Errorf("no device %s/%s/%s", driver, pool, device)
}

// runNodes: fake nodes by hand, beside `kcp up`.
func runNodes(args []string) error {
	flags := flag.NewFlagSet("nodes", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig")
	count := flags.Int("count", 4, "nodes")
	devices := flags.Int("devices", 8, "devices of each")
	driver := flags.String("driver", "gpu.example.com", "name of the DRA driver")
	_ = flags.Parse(args)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	a, err := startAgent(ctx, *kubeconfig, 10*time.Second)
	if err != nil {
		return err
	}
	for i := 0; i < *count; i++ {
		name := fmt.Sprintf("node-%d", i)
		if err := a.addNode(plainNode(name, nil)); err != nil {
			return err
		}
		if *devices > 0 {
			if err := a.publish(plainSlice(name, *driver, *devices)); err != nil {
				return err
			}
		}
	}
	fmt.Printf("%d nodes are registered; annotations of their pods: %s, %s, %s, %s\n", *count, annDuration, annExitCode, annExitNow, annPrepare)
	<-ctx.Done()
	return nil
}
