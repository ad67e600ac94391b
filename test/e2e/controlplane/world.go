package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ---- who queued is in the cluster ----

// account is the service account that every queued uses, with the rights of deploy/ and no others, so that every case shows
// that they suffice.
type account struct{ ns, name, token string }

// Rights of the base, and of the components that cases need.
var rights = []string{"account.yaml", "read.yaml", "launch.yaml", "lease.yaml", "components/pod-group/pod-group.yaml", "components/bind-mode/bind.yaml", "components/bind-pods/bind-pods.yaml"}

func (o *options) rights() ([]*object, error) {
	var all []*object
	for _, name := range rights {
		objects, err := readManifests(filepath.Join(o.repository, "deploy", "kubernetes", name))
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

func (e *environment) makeAccount(ctx context.Context) error {
	objects, err := e.options.rights()
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "ServiceAccount" {
			e.account = account{ns: o.GetNamespace(), name: o.GetName()}
			if err := e.makeNamespace(ctx, e.account.ns, nil); err != nil {
				return err
			}
		}
	}
	for _, o := range objects {
		if err := e.create(ctx, o); err != nil {
			return err
		}
	}
	seconds := int64(24 * 3600)
	token, err := e.k.CoreV1().ServiceAccounts(e.account.ns).CreateToken(ctx, e.account.name,
		&authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds}}, meta.CreateOptions{})
	if err == nil {
		e.account.token = token.Status.Token
	}
	return err
}

// queuedKubeconfig of queued: its token, by the API server or through a proxy.
func (e *environment) queuedKubeconfig(path, server string) error {
	ca, err := os.ReadFile(e.plane.path("pki", "ca.crt"))
	if err != nil {
		return err
	}
	text := kubeconfigText(server, base64.StdEncoding.EncodeToString(ca), e.account.token, e.account.ns)
	return os.WriteFile(path, []byte(text), 0o600)
}

func kubeconfigText(server, ca, token, ns string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: e2e
clusters:
- name: e2e
  cluster: {server: %q, certificate-authority-data: %s}
users:
- name: queued
  user: {token: %s}
contexts:
- name: e2e
  context: {cluster: e2e, user: queued, namespace: %s}
`, server, ca, token, ns)
}

// ---- namespaces ----

// makeNamespace returns when pods can be created in it.
func (e *environment) makeNamespace(ctx context.Context, name string, labels map[string]string) error {
	_, err := e.k.CoreV1().Namespaces().Create(ctx, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name, Labels: labels}}, meta.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err != nil && len(labels) > 0 {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%s}}}`, quoted(labels))
		if _, err = e.k.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, []byte(patch), meta.PatchOptions{}); err != nil {
			return err
		}
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		if _, err = e.k.CoreV1().ServiceAccounts(name).Get(ctx, "default", meta.GetOptions{}); err == nil {
			return nil
		}
	}
	return fmt.Errorf("namespace %s has no default service account: %w", name, err)
}

func quoted(labels map[string]string) string {
	var parts []string
	for key, value := range labels {
		parts = append(parts, fmt.Sprintf("%q:%q", key, value))
	}
	return strings.Join(parts, ",")
}

// namespace makes one for this case alone.
func (t *T) namespace() string {
	t.n++
	name := strings.Trim(filepath.Base(t.dir), "-")
	if len(name) > 40 {
		name = strings.TrimRight(name[:40], "-")
	}
	name = fmt.Sprintf("%s-%d", name, t.n)
	t.must(t.makeNamespace(t.ctx, name, nil), "namespace")
	return name
}

// ---- nodes and devices ----

func (e *environment) all(group, version, plural string) []object {
	listed, err := e.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural}).List(context.Background(), meta.ListOptions{})
	if err != nil {
		return nil
	}
	return listed.Items
}

// What a world is made of, and what cases leave in it; in the order in which it goes.
var wiped = []struct {
	group, version, plural string
	onlyOurs               bool
}{
	{"", "v1", "configmaps", true}, {"", "v1", "services", true}, {"", "v1", "resourcequotas", false}, {"batch", "v1", "jobs", false}, {"", "v1", "pods", false},
	{"resource.k8s.io", "v1", "resourceclaims", false}, {"resource.k8s.io", "v1", "resourceclaimtemplates", false},
	{"scheduling.k8s.io", "v1beta1", "podgroups", false}, {"resource.k8s.io", "v1", "devicetaintrules", false}, {"resource.k8s.io", "v1alpha3", "devicetaintrules", false},
	{"resource.k8s.io", "v1", "resourceslices", false}, {"resource.k8s.io", "v1", "deviceclasses", false}, {"", "v1", "nodes", false},
}

// wipe takes away all nodes, devices, pods and claims, by force.
func (e *environment) wipe(ctx context.Context) error {
	zero := int64(0)
	e.agent.dropNodes()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(25 * time.Millisecond) {
		left := ""
		for _, kind := range wiped {
			for _, o := range e.all(kind.group, kind.version, kind.plural) {
				if _, isOurs := o.GetLabels()[labelJob]; isOurs || !kind.onlyOurs {
					left = kind.plural + " " + o.GetName()
					e.erase(ctx, kind.group, kind.version, kind.plural, &o, &zero)
				}
			}
		}
		if left == "" {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s does not go away", left)
		}
	}
}

func (e *environment) erase(ctx context.Context, group, version, plural string, o *object, grace *int64) {
	var api = e.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural}).Namespace(o.GetNamespace())
	if len(o.GetFinalizers()) > 0 {
		_, _ = api.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), meta.PatchOptions{})
	}
	_ = api.Delete(ctx, o.GetName(), meta.DeleteOptions{GracePeriodSeconds: grace})
}

// inWorld makes sure that the cluster is exactly what build makes of an empty one. Worlds of one name are the same, and
// are kept from case to case.
func (t *T) inWorld(name string, build func()) {
	if t.world == name {
		return
	}
	t.world = ""
	t.must(t.wipe(t.ctx), "wipe the cluster")
	t.agent.setDuration(0)
	build()
	t.nodesReady()
	t.world = name
}

// nodesReady waits until the controllers have taken the taint off that every new node has.
func (t *T) nodesReady() {
	t.eventually(30*time.Second, func() string {
		nodes, err := t.k.CoreV1().Nodes().List(t.ctx, meta.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, node := range nodes.Items {
			if wrong := nodeUnsettled(&node); wrong != "" {
				return wrong
			}
		}
		return ""
	})
}

// nodeUnsettled: the taints do not say yet what the conditions say.
func nodeUnsettled(node *core.Node) string {
	ready, isTainted, isMarked := isReady(node), false, false
	for _, taint := range node.Spec.Taints {
		isTainted = isTainted || ((taint.Key == core.TaintNodeNotReady || taint.Key == core.TaintNodeUnreachable) && taint.Effect == core.TaintEffectNoSchedule)
		isMarked = isMarked || taint.Key == core.TaintNodeUnschedulable
	}
	if ready == isTainted {
		return fmt.Sprintf("node %s: ready %t, tainted as not ready %t", node.Name, ready, isTainted)
	}
	if node.Spec.Unschedulable != isMarked {
		return fmt.Sprintf("node %s: unschedulable %t, tainted as such %t", node.Name, node.Spec.Unschedulable, isMarked)
	}
	return ""
}

const driver = "gpu.example.com"

func plainClass(name string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{ObjectMeta: meta.ObjectMeta{Name: name}, Spec: resourceapi.DeviceClassSpec{
		Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}}}
}

// plainWorld: n nodes with devices each, and the class gpu.
func (t *T) plainWorld(nodes, devices int) {
	t.inWorld(fmt.Sprintf("plain %d x %d", nodes, devices), func() {
		for i := 0; i < nodes; i++ {
			name := fmt.Sprintf("node-%d", i)
			t.must(t.agent.addNode(plainNode(name, map[string]string{"topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", i%2)})), "node")
			t.must(t.agent.publish(plainSlice(name, driver, devices)), "slice")
		}
		_, err := t.k.ResourceV1().DeviceClasses().Create(t.ctx, plainClass("gpu"), meta.CreateOptions{})
		t.must(err, "class")
	})
	t.nodesReady() // they may have been silent while something was restarted
	t.agent.setDuration(0)
}
