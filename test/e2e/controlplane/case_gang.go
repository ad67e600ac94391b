package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Gangs with known answers: those that fit start exactly as planned, of the others nothing ever appears.

type gangCase struct {
	Name    string
	Cluster []map[string]any
	Submit  []map[string]any
	Expect  struct {
		Fits         bool
		Nodes        map[string]int
		Chosen       map[string]string
		ChosenCounts map[string]map[string]int `json:"chosenCounts"`
		MustName     []string                  `json:"mustName"`
	}
}

func gangCases(o *options) []testCase {
	var cases []testCase
	files, _ := filepath.Glob(o.shared("conformance", "gang", "*.yaml"))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		c, err := readGangCase(file)
		if err == nil && name != onlyBound {
			cases = append(cases, testCase{name: "gang/" + name, profile: "usual", limit: time.Minute, run: func(t *T) { runGangCase(t, file, false) }})
		}
		if err == nil && c.Expect.Fits {
			cases = append(cases, testCase{name: "gang-bound/" + name, profile: "usual", limit: time.Minute, run: func(t *T) { runGangCase(t, file, true) }})
		}
	}
	return cases
}

// Its devices cannot be told apart, so that no claim can be steered to the right one: it starts in bind mode alone.
const onlyBound = "102-far-device-for-the-far-member"

func readGangCase(file string) (c gangCase, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	return c, err
}

// runGangCase: steered claims that kube-scheduler allocates, or all of them bound by queued.
func runGangCase(t *T, file string, isBound bool) {
	c, err := readGangCase(file)
	t.must(err, "read")
	began := time.Now()
	t.must(t.buildCluster(c.Cluster, c.Submit), "build the cluster")
	var flags []string
	if isBound {
		var classes []string
		for _, class := range t.all("resource.k8s.io", "v1", "deviceclasses") {
			classes = append(classes, class.GetName())
		}
		flags = []string{"--bind-classes", strings.Join(classes, ","), "--bind-pods", fmt.Sprint(filepath.Base(file)[2]%2 == 0)}
	}
	q := t.queued(flags...)
	jobs, err := q.submit("queue=main&oneJob=true&namespace=lab", c.Submit)
	switch {
	case !c.Expect.Fits && err != nil: // some can be refused at once
		t.says(&c, err.Error())
	case err != nil:
		t.fatalf("submit: %v", err)
	case c.Expect.Fits:
		t.gangStarts(q, &c, jobs[0].ID)
		return
	default:
		t.gangWaits(q, &c, jobs[0].ID)
	}
	t.nothingAppeared(jobs, began)
}

// buildCluster makes what the case says exists. Classes one after the other in the order of their creationTimestamp, since the newest
// wins a name that two of them have.
func (t *T) buildCluster(cluster, submit []map[string]any) error {
	t.world = ""
	if err := t.wipe(t.ctx); err != nil {
		return err
	}
	t.agent.setDuration(0)
	spaces := map[string]map[string]string{"lab": nil}
	for _, content := range append(append([]map[string]any{}, cluster...), submit...) {
		o := &object{Object: content}
		if o.GetKind() == "Namespace" {
			spaces[o.GetName()] = o.GetLabels()
		} else if _, ok := spaces[o.GetNamespace()]; !ok && o.GetNamespace() != "" {
			spaces[o.GetNamespace()] = nil
		}
	}
	for name, labels := range spaces {
		if err := t.makeNamespace(t.ctx, name, labels); err != nil {
			return err
		}
	}
	order := map[string]int{"DeviceClass": 1, "Node": 2, "ResourceSlice": 3, "DeviceTaintRule": 4, "ResourceClaim": 5, "Pod": 6}
	sort.SliceStable(cluster, func(a, b int) bool {
		return order[fmt.Sprint(cluster[a]["kind"])] < order[fmt.Sprint(cluster[b]["kind"])]
	})
	if err := t.makeClasses(cluster); err != nil {
		return err
	}
	for _, content := range cluster {
		if err := t.makeForeign(&object{Object: content}); err != nil {
			return err
		}
	}
	t.nodesReady()
	return nil
}

func (t *T) makeClasses(cluster []map[string]any) error {
	var classes []*object
	dated := false
	for _, content := range cluster {
		if o := (&object{Object: content}); o.GetKind() == "DeviceClass" {
			classes = append(classes, o)
			dated = dated || !o.GetCreationTimestamp().Time.IsZero()
		}
	}
	sort.SliceStable(classes, func(a, b int) bool {
		return classes[a].GetCreationTimestamp().Time.Before(classes[b].GetCreationTimestamp().Time)
	})
	for i, class := range classes {
		if dated && i > 0 {
			time.Sleep(1100 * time.Millisecond)
		}
		if err := t.create(t.ctx, class); err != nil {
			return err
		}
	}
	return nil
}

func (t *T) makeForeign(o *object) error {
	switch o.GetKind() {
	case "Namespace", "DeviceClass":
		return nil
	case "Node":
		var node core.Node
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(clean(o).Object, &node); err != nil {
			return err
		}
		return t.agent.addNode(&node)
	case "DeviceTaintRule":
		if t.options.minor < 37 {
			o.SetAPIVersion("resource.k8s.io/v1alpha3")
		}
	case "Pod": // its status is what the case says
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annStill] = "true"
		o.SetAnnotations(annotations)
	case "ResourceClaim": // whom it is reserved for does not exist, and would be taken out
		unstructured.RemoveNestedField(o.Object, "status", "reservedFor")
	}
	return t.create(t.ctx, o)
}

func (t *T) gangStarts(q *server, c *gangCase, id int64) {
	j := q.runs(t, id, 20*time.Second)
	nodes := map[string]int{}
	for _, member := range j.Placement.Members {
		nodes[member.Node]++
	}
	if want, got := fmt.Sprint(c.Expect.Nodes), fmt.Sprint(nodes); len(c.Expect.Nodes) > 0 && want != got {
		t.errorf("members per node: %s, not %s", got, want)
	}
	for request, alternative := range c.Expect.Chosen {
		found := false
		for _, chosen := range j.Chosen {
			if chosen.Claim+"/"+chosen.Request == request {
				found = found || chosen.Alternative == alternative
			}
		}
		if !found {
			t.errorf("%s: %s was not taken but %v", request, alternative, j.Chosen)
		}
	}
}

func (t *T) gangWaits(q *server, c *gangCase, id int64) {
	why := map[string]any{}
	t.eventually(10*time.Second, func() string {
		var err error
		if why, err = q.explain(id); err != nil {
			return err.Error()
		}
		if why["state"] == "Pending" && (why["verdict"] == "never" || why["verdict"] == "waits" || why["verdict"] == "refused") {
			return ""
		}
		return fmt.Sprintf("it is %v, verdict %v: %v", why["state"], why["verdict"], why["summary"])
	})
	t.says(c, fmt.Sprint(why))
	time.Sleep(300 * time.Millisecond) // time to do what it must not
}

// says looks for the words that an explanation must have.
func (t *T) says(c *gangCase, text string) {
	for _, word := range c.Expect.MustName {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
			t.errorf("the explanation does not name %q: %.300s", word, text)
		}
	}
}

// nothingAppeared: neither the watch of the whole run nor the audit log knows an object of these jobs.
func (t *T) nothingAppeared(jobs []job, since time.Time) {
	log, err := t.plane.audit(since)
	t.must(err, "audit log")
	for i := range log {
		if r := &log[i]; r.isQueued() && r.isWrite() {
			t.errorf("queued asked for %s %s %s/%s", r.Verb, r.Object.Resource, r.Object.Namespace, r.Object.Name)
		}
	}
	for _, j := range jobs {
		if left := t.checker.left(j.Namespace); len(left) > 0 {
			t.errorf("objects exist: %v", left)
		}
	}
}
