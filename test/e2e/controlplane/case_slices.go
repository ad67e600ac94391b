package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Every shape in which drivers publish devices is accepted by the API server and reads the same from queued.

// Shapes that older servers refuse: counters without a selection of nodes.
var sinceMinor = map[string]int{"kep4815-tpu-multihost-v1.yaml": 37}

// Attributes with several values need a feature gate.
var listAttribute = regexp.MustCompile(`(?m)^\s+(strings|ints|bools|versions):`)

func slicesCases(o *options) []testCase {
	var cases []testCase
	files, _ := filepath.Glob(o.shared("inventory", "slices", "*.yaml"))
	for _, file := range files {
		profile, text := "usual", []byte(nil)
		if text, _ = os.ReadFile(file); listAttribute.Match(text) {
			profile = "special"
		}
		cases = append(cases, testCase{name: "slices/" + strings.TrimSuffix(filepath.Base(file), ".yaml"), profile: profile, run: func(t *T) {
			if profile == "special" && !hasListAttributes {
				t.skipf("this minor does not know attributes that are lists")
			}
			if sinceMinor[filepath.Base(file)] > t.options.minor {
				t.skipf("needs 1.%d", sinceMinor[filepath.Base(file)])
			}
			slicesCase(t, file)
		}})
	}
	return cases
}

// publishFile creates what a file of slices holds, and a node for every name in it.
func (t *T) publishFile(file string) {
	objects, err := readManifests(file)
	t.must(err, "read")
	for _, o := range objects {
		if o.GetKind() != "ResourceSlice" {
			continue
		}
		for _, node := range nodesOf(o.Object) {
			if !t.agent.runsNode(node) {
				t.must(t.agent.addNode(plainNode(node, nodeLabels)), "node")
			}
		}
		for _, part := range splitCounters(o) {
			t.must(t.create(t.ctx, part), "publish")
		}
	}
}

// splitCounters makes two slices of one that has counters and devices: servers from 1.35 on take them apart only.
func splitCounters(o *object) []*object {
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	if spec["sharedCounters"] == nil || spec["devices"] == nil {
		return []*object{o}
	}
	devices, counters := o.DeepCopy(), o.DeepCopy()
	counters.SetName(o.GetName() + "-counters")
	unstructured.RemoveNestedField(devices.Object, "spec", "sharedCounters")
	unstructured.RemoveNestedField(counters.Object, "spec", "devices")
	n, _, _ := unstructured.NestedInt64(o.Object, "spec", "pool", "resourceSliceCount")
	for _, part := range []*object{devices, counters} {
		_ = unstructured.SetNestedField(part.Object, n+1, "spec", "pool", "resourceSliceCount")
	}
	return []*object{devices, counters}
}

// Labels that slices select nodes by.
var nodeLabels = map[string]string{"node.kubernetes.io/instance-type": "large"}

// nodesOf finds the nodes that a slice names, for itself, for its devices, or in a selector by name.
func nodesOf(content any) []string {
	var names []string
	switch c := content.(type) {
	case map[string]any:
		for key, value := range c {
			if name, ok := value.(string); ok && key == "nodeName" {
				names = append(names, name)
			}
			names = append(names, nodesOf(value)...)
		}
	case []any:
		for _, value := range c {
			names = append(names, nodesOf(value)...)
		}
	}
	return names
}

func slicesCase(t *T, file string) {
	t.inWorld("", func() {})
	t.must(t.wipe(t.ctx), "wipe the cluster")
	t.publishFile(file)
	q := t.queued()
	want := t.published()
	var got string
	for range 40 { // the API server's listing and queued's stream are not of one moment
		if got = t.told(q, want); got == want {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if got != want {
		t.errorf("devices differ (- published, + told by queued):\n%s", difference(want, got))
	}
}

// published describes the devices that the API server has, newest generation of each pool, one per line.
func (t *T) published() string {
	slices := t.all("resource.k8s.io", "v1", "resourceslices")
	newest := map[string]int64{}
	for i := range slices {
		pool, generation := poolOf(&slices[i])
		newest[pool] = max(newest[pool], generation)
	}
	var lines []string
	for i := range slices {
		pool, generation := poolOf(&slices[i])
		if generation != newest[pool] {
			continue
		}
		devices, _, _ := unstructured.NestedSlice(slices[i].Object, "spec", "devices")
		for _, d := range devices {
			d := d.(map[string]any)
			node := str(slices[i].Object, "spec.nodeName") + str(d, "nodeName")
			lines = append(lines, describe(fmt.Sprintf("%s/%s", pool, d["name"]), node, d))
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func poolOf(slice *object) (name string, generation int64) {
	generation, _, _ = unstructured.NestedInt64(slice.Object, "spec", "pool", "generation")
	return str(slice.Object, "spec.driver") + "/" + str(slice.Object, "spec.pool.name"), generation
}

// describe writes a device with its attributes and capacities in one line.
func describe(name, node string, d map[string]any) string {
	var facts []string
	for _, field := range []string{"attributes", "capacity"} {
		values, _ := d[field].(map[string]any)
		for key, value := range values {
			facts = append(facts, key+"="+plain(value))
		}
	}
	sort.Strings(facts)
	return fmt.Sprintf("%s on %q: %s", name, node, strings.Join(facts, " "))
}

// told describes what queued says in the same form. Of a pool that is being replaced it may still show what the older generation had, as
// unavailable.
func (t *T) told(q *server, want string) string {
	items, err := q.items("/v1/devices")
	t.must(err, "/v1/devices")
	var lines []string
	for _, d := range items {
		node, _ := d["node"].(string)
		line := describe(fmt.Sprintf("%s/%s/%s", d["driver"], d["pool"], d["name"]), node, d)
		if d["state"] != "unavailable" || strings.Contains(want, line) {
			lines = append(lines, line)
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func plain(value any) string {
	switch v := value.(type) {
	case float64:
		return fmt.Sprintf("%.0f", v)
	case map[string]any: // {"string": "H100"}, {"value": "80Gi", "requestPolicy": ...}
		if amount, ok := v["value"]; ok {
			return plain(amount)
		}
		for _, inner := range v {
			return plain(inner)
		}
	case []any:
		var parts []string
		for _, inner := range v {
			parts = append(parts, plain(inner))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(value)
}

// difference lists lines that only one of two texts has, at most six of each.
func difference(want, got string) string {
	var out []string
	for _, side := range []struct{ sign, have, other string }{{"- ", want, got}, {"+ ", got, want}} {
		known, n := map[string]bool{}, 0
		for _, line := range strings.Split(side.other, "\n") {
			known[line] = true
		}
		for _, line := range strings.Split(side.have, "\n") {
			if !known[line] && line != "" {
				if n++; n <= 6 {
					out = append(out, side.sign+line)
				}
			}
		}
	}
	return strings.Join(out, "\n")
}
