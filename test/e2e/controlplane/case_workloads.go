package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Manifests as people publish them, submitted unchanged to a cluster with the devices that they ask for, and run to the end. What is
// no work is created beside (namespaces, classes, taint rules) or left out (kinds of other controllers); Deployments are
// handed in as Jobs of as many pods.

// workload is one file and what it needs: files of classes and slices, or a node with labels.
type workload struct {
	file    string
	classes []string
	slices  []string
	extra   string // more objects, as YAML

	labels map[string]string // of a plain node beside
	oneJob bool
	waits  []string // jobs (beginning of the name) that must wait; all others run
	since  int      // the first minor that takes it
}

var workloads = []workload{
	{file: "workloads/amd-partitions-match-and-distinct-v1", classes: []string{"amd-v1beta1"}, slices: []string{"amd-mi300x-partitions-v1"}},
	{file: "workloads/example-admin-access-v1", classes: []string{"example-v1"}, slices: []string{"example-gpus-list-v1"}},
	{file: "workloads/example-extended-resources-v1", classes: []string{"example-v1"}, slices: []string{"example-gpus-list-v1"}},
	{file: "workloads/example-first-available-v1", classes: []string{"example-v1"}, slices: []string{"example-gpus-list-v1"}},
	{file: "workloads/example-nic-bandwidth-v1", classes: []string{"example-v1"}, slices: []string{"example-shared-capacity-v1"}},
	{file: "workloads/example-partitions-count2-v1", classes: []string{"example-v1"}, slices: []string{"example-partitionable-v1"}},
	{file: "workloads/example-shared-partition-v1", classes: []string{"example-v1"}, slices: []string{"example-partitionable-v1", "example-shared-capacity-v1"}},
	{file: "workloads/example-taint-and-tolerations", classes: []string{"example-v1"}, slices: []string{"example-gpus-list-v1"}, waits: []string{"pod-no-toleration"}, since: 37},
	{file: "workloads/gang-whole-or-half-v1", slices: []string{"k8s-whole-or-halves-v1"}},
	{file: "workloads/google-tpu-all-v1", classes: []string{"google-tpu-and-dranet-v1"}, slices: []string{"google-tpu-v6e-v1"}},
	{file: "workloads/intel-first-available-v1", classes: []string{"intel-v1"}, slices: []string{"intel-gaudi2-v1"}},
	{file: "workloads/intel-monitor-admin-access-v1", classes: []string{"intel-v1"}, slices: []string{"intel-gpu-v1"}},
	{file: "workloads/kueue-dra-jobs", classes: []string{"example-v1"}, slices: []string{"example-shared-capacity-v1", "example-gpus-list-v1"},
		waits: []string{"sample-dra-capacity-job"}}, // asks for gpu.example.com/memory of devices that call it memory
	{file: "workloads/nvidia-any-mig-v1", classes: []string{"nvidia-v1"}, slices: []string{"nvidia-h100-dynamic-mig-split-v1"}},
	{file: "workloads/nvidia-consumable-memory-v1", classes: []string{"nvidia-v1"}, slices: []string{"nvidia-h100-consumable-shares-v1"}},
	{file: "workloads/nvidia-extended-resource-pod-v1", classes: []string{"nvidia-v1"}, slices: []string{"nvidia-h100-80gb-8x-v1"}},
	{file: "workloads/nvidia-imex-nvl72-jobset", classes: []string{"nvidia-v1"}, slices: []string{"nvidia-gb200-nvl72-rack-v1"}, waits: []string{"nvl72-train"}},
	{file: "workloads/nvidia-mig-by-size-v1", classes: []string{"nvidia-v1"}, slices: []string{"nvidia-h100-dynamic-mig-split-v1"}},
	{file: "workloads/nvidia-mig-four-partitions-same-parent-v1", classes: []string{"nvidia-v1"}, slices: []string{"nvidia-a100-dynamic-mig-split-v1", "nvidia-h100-dynamic-mig-split-v1"}},
	{file: "workloads/nvidia-mig-four-partitions-v1beta1", classes: []string{"nvidia-v1"}, slices: []string{"nvidia-a100-dynamic-mig-split-v1", "nvidia-h100-dynamic-mig-split-v1"}},
	{file: "workloads/nvidia-product-selector-v1", classes: []string{"nvidia-v1beta1"}, slices: []string{"nvidia-a100-40gb-2x-v1beta1", "nvidia-h100-80gb-8x-v1beta1"}},
	{file: "workloads/nvidia-selector-no-match-v1", classes: []string{"nvidia-v1"}, slices: []string{"nvidia-h100-80gb-8x-v1"}, waits: []string{"pod-cel-nomatch"}},
	{file: "workloads/nvidia-two-containers-share-claim-v1", classes: []string{"nvidia-v1"}, slices: []string{"nvidia-h100-80gb-8x-v1"}},
	{file: "workloads/nvidia-two-pods-share-claim-v1", classes: []string{"nvidia-v1"}, slices: []string{"nvidia-h100-80gb-8x-v1"}, oneJob: true},
	{file: "workloads/nvidia-two-requests-opaque-config-v1", classes: []string{"nvidia-v1"}, slices: []string{"nvidia-h100-80gb-8x-v1"}},
	{file: "workloads/sriov-gpu-aligned-v1", classes: []string{"sriov-v1", "example-v1"}, slices: []string{"sriov-vfs-v1"}, extra: gpuBelowRoot},
	{file: "batch/kueue-job", labels: map[string]string{}},
	{file: "batch/kueue-job-partial-admission", labels: map[string]string{}},
	{file: "batch/kueue-jobset-rack-topology", labels: map[string]string{"cloud.provider.com/topology-block": "b", "cloud.provider.com/topology-rack": "r"}},
	{file: "batch/kueue-pod-group", labels: map[string]string{}},
}

// A GPU of the example driver at the PCIe root of the published network functions.
const gpuBelowRoot = `apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-net-0-gpu}
spec:
  driver: gpu.example.com
  nodeName: node-net-0
  pool: {name: node-net-0, generation: 1, resourceSliceCount: 1}
  devices:
    - {name: gpu-0, attributes: {resource.kubernetes.io/pcieRoot: {string: "pci0000:99"}}}
    - {name: gpu-1, attributes: {resource.kubernetes.io/pcieRoot: {string: "pci0000:00"}}}
`

func workloadCases(o *options) []testCase {
	var cases []testCase
	if _, err := os.Stat(o.shared("inventory", "workloads")); err != nil {
		return nil
	}
	for _, w := range workloads {
		cases = append(cases, testCase{name: w.file, profile: "usual", run: func(t *T) { runWorkload(t, &w) }})
	}
	return cases
}

// work tells what is submitted; `other` what is created beside.
func (t *T) sortOut(path string) (work []map[string]any, other []*object) {
	objects, err := readManifests(path)
	t.must(err, "read")
	for _, o := range objects {
		switch o.GetKind() {
		case "Pod", "Job", "JobSet", "GangJob", "ResourceClaim", "ResourceClaimTemplate":
			work = append(work, o.Object)
		case "Deployment":
			work = append(work, jobOf(o))
		case "Namespace", "DeviceClass", "DeviceTaintRule":
			other = append(other, o)
		default:
			t.logf("left out: %s %s", o.GetKind(), o.GetName())
		}
	}
	return work, other
}

func jobOf(deployment *object) map[string]any {
	template, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template")
	_ = unstructured.SetNestedField(template, "Never", "spec", "restartPolicy")
	replicas, ok, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	if !ok {
		replicas = 1
	}
	return map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": deployment.GetName(), "namespace": deployment.GetNamespace()},
		"spec": map[string]any{"parallelism": replicas, "completions": replicas, "completionMode": "Indexed", "backoffLimit": int64(0), "template": template}}
}

func runWorkload(t *T, w *workload) {
	if w.since > t.options.minor {
		t.skipf("needs 1.%d", w.since)
	}
	t.world = ""
	t.must(t.wipe(t.ctx), "wipe the cluster")
	t.agent.setDuration(0)
	work, other := t.sortOut(t.options.shared("inventory", w.file+".yaml"))
	for _, o := range other {
		if o.GetKind() == "Namespace" {
			t.must(t.makeNamespace(t.ctx, o.GetName(), o.GetLabels()), "namespace")
		} else {
			t.must(t.create(t.ctx, o), "beside")
		}
	}
	for _, class := range w.classes {
		objects, err := readManifests(t.options.shared("inventory", "classes", class+".yaml"))
		t.must(err, "read")
		for _, o := range objects {
			t.must(t.create(t.ctx, o), "class")
		}
	}
	for _, slice := range w.slices {
		t.publishFile(t.options.shared("inventory", "slices", slice+".yaml"))
	}
	if w.extra != "" {
		t.must(t.createText(t.ctx, w.extra), "beside")
	}
	if w.labels != nil {
		t.must(t.agent.addNode(plainNode("plain", w.labels)), "node")
	}
	t.nodesReady()
	q := t.queued()
	jobs, err := q.submit(fmt.Sprintf("queue=main&oneJob=%t", w.oneJob), work)
	t.must(err, "submit")
	var running []job
	for _, j := range jobs {
		if t.mustWait(w, j.Name) {
			t.logf("%s waits: %s", j.Name, q.waits(t, j.ID, "devices"))
		} else {
			running = append(running, q.runs(t, j.ID, 20*time.Second))
		}
	}
	t.agent.setDuration(50 * time.Millisecond)
	for _, j := range running {
		q.ends(t, j.ID, "Succeeded", 20*time.Second)
	}
	if len(running)+len(w.waits) != len(jobs) {
		t.errorf("%d of %d jobs ran", len(running), len(jobs))
	}
}

func (t *T) mustWait(w *workload, name string) bool {
	for _, beginning := range w.waits {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}
