package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The rights that deploy/ grants are the least: every case runs with them, and here each verb is taken away, one at a time, from
// an account of its own. Then queued must be refused something on its way from start to the end of a gang that was
// interrupted once.

// right is one verb on one resource of one rule.
type right struct {
	role     string
	rule     int
	resource string // "" for non-resource URLs
	group    string
	verb     string
	url      string
}

func (r right) name() string {
	if r.url != "" {
		return "get " + strings.NewReplacer("*", "all").Replace(r.url)
	}
	return r.verb + " " + r.resource
}

func rightsCases(o *options) []testCase {
	roles, err := o.roles()
	if err != nil {
		return nil
	}
	var cases []testCase
	for _, r := range allRights(roles) {
		cases = append(cases, testCase{name: "rights/" + strings.ReplaceAll(r.name(), " ", "-"), profile: "special", limit: time.Minute, run: func(t *T) { withoutRight(t, r) }})
	}
	return cases
}

func (o *options) roles() ([]rbac.ClusterRole, error) {
	objects, err := o.rights()
	if err != nil {
		return nil, err
	}
	var roles []rbac.ClusterRole
	for _, object := range objects {
		if object.GetKind() != "ClusterRole" && object.GetKind() != "Role" {
			continue
		}
		var role rbac.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			return nil, err
		}
		roles = append(roles, role)
	}
	return roles, nil
}

func allRights(roles []rbac.ClusterRole) []right {
	var all []right
	seen := map[string]bool{}
	for _, role := range roles {
		for i, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				for _, resource := range rule.Resources {
					r := right{role: role.Name, rule: i, resource: resource, group: rule.APIGroups[0], verb: verb}
					if !seen[r.name()] {
						seen[r.name()] = true
						all = append(all, r)
					}
				}
				for _, url := range rule.NonResourceURLs {
					all = append(all, right{role: role.Name, rule: i, verb: verb, url: url})
				}
			}
		}
	}
	return all
}

// without copies the rules but for one verb on one resource, wherever it stands.
func without(roles []rbac.ClusterRole, r right) []rbac.PolicyRule {
	var rules []rbac.PolicyRule
	for _, role := range roles {
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				for _, resource := range rule.Resources {
					if resource != r.resource || verb != r.verb || rule.APIGroups[0] != r.group {
						rules = append(rules, rbac.PolicyRule{APIGroups: rule.APIGroups[:1], Resources: []string{resource}, Verbs: []string{verb}})
					}
				}
				for _, url := range rule.NonResourceURLs {
					if url != r.url {
						rules = append(rules, rbac.PolicyRule{NonResourceURLs: []string{url}, Verbs: []string{verb}})
					}
				}
			}
		}
	}
	return rules
}

// lesser makes an account with everything but one right, and returns its token.
func (t *T) lesser(r right) string {
	roles, err := t.options.roles()
	t.must(err, "roles")
	name := "lesser"
	accounts, bindings, clusterRoles := t.k.CoreV1().ServiceAccounts(t.account.ns), t.k.RbacV1().ClusterRoleBindings(), t.k.RbacV1().ClusterRoles()
	_ = clusterRoles.Delete(t.ctx, name, meta.DeleteOptions{})
	_, _ = accounts.Create(t.ctx, &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{})
	_, err = clusterRoles.Create(t.ctx, &rbac.ClusterRole{ObjectMeta: meta.ObjectMeta{Name: name}, Rules: without(roles, r)}, meta.CreateOptions{})
	t.must(err, "role")
	_, _ = bindings.Create(t.ctx, &rbac.ClusterRoleBinding{ObjectMeta: meta.ObjectMeta{Name: name}, RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbac.Subject{{Kind: "ServiceAccount", Namespace: t.account.ns, Name: name}}}, meta.CreateOptions{})
	seconds := int64(3600)
	token, err := accounts.CreateToken(t.ctx, name, &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds}}, meta.CreateOptions{})
	t.must(err, "token")
	return token.Status.Token
}

// refusals: what this account was refused since a moment.
func (t *T) refusals(since time.Time, r right) []string {
	log, err := t.plane.audit(since)
	t.must(err, "audit log")
	var refused []string
	for _, q := range log {
		// A missing resourceclaims/binding is found by validation, and so is a 422.
		isRefused := q.Answer.Code == 403 || (q.Answer.Code == 422 && r.resource == "resourceclaims/binding")
		if !strings.HasSuffix(q.User.Username, ":lesser") || !isRefused {
			continue
		}
		resource := strings.TrimSuffix(q.Object.Resource+"/"+q.Object.Subresource, "/")
		if (r.url == "" && (resource == r.resource || strings.HasPrefix(resource, r.resource) || r.resource == "resourceclaims/binding")) || r.url != "" {
			refused = append(refused, q.Verb+" "+q.URI)
		}
	}
	return refused
}

func withoutRight(t *T, r right) {
	if !hasNativeGangs && r.resource == "podgroups" {
		t.skipf("this minor has no PodGroups")
	}
	if r.url != "" {
		// Every identity has these by default.
		rules, err := t.k.RbacV1().ClusterRoles().Get(t.ctx, "system:discovery", meta.GetOptions{})
		t.must(err, "system:discovery")
		for _, rule := range rules.Rules {
			for _, url := range rule.NonResourceURLs {
				if url == r.url {
					t.skipf("system:discovery grants it to everyone")
				}
			}
		}
	}
	t.plainWorld(2, 2)
	token, ns, began := t.lesser(r), t.namespace(), time.Now()
	q := t.queuedAt(t.plane.server)
	x := t.proxy()
	t.must(t.kubeconfigOf(filepath.Join(q.dir, "kubeconfig"), x.url, token), "kubeconfig")
	q.args = append(q.args, "--launch-timeout", "3s")
	if strings.HasPrefix(r.resource, "resourceclaims") && (r.verb == "update" || strings.Contains(r.resource, "/")) {
		q.args = append(q.args, "--bind-classes", "gpu")
	}
	if r.resource == "pods/binding" {
		q.args = append(q.args, "--bind-classes", "gpu", "--bind-pods", "true")
	}
	if r.resource == "leases" {
		q.args = []string{"--kubeconfig", filepath.Join(q.dir, "kubeconfig"), "--lease", t.account.ns + "/queued"}
		_ = t.k.CoordinationV1().Leases(t.account.ns).Delete(t.ctx, "queued", meta.DeleteOptions{})
	}
	var isOver atomic.Bool
	arrived := make(chan struct{})
	go func() {
		defer close(arrived)
		t.journey(q, ns, &isOver, func() { t.trouble(x, r, ns) })
	}()
	var refused []string
	for end := time.Now().Add(12 * time.Second); len(refused) == 0 && time.Now().Before(end); {
		refused = t.refusals(began, r)
	}
	isOver.Store(true)
	if q.proc != nil {
		q.proc.kill()
	}
	<-arrived
	if len(refused) == 0 {
		t.errorf("nothing was refused without the right to %s", r.name())
	} else {
		t.logf("refused: %s", refused[0])
	}
	t.world = "" // what it left is wiped
}

// journey is the way of gangs through a server that is killed in the middle of a launch: one to its end, others cancelled while their
// objects are being created; as far as it comes.
func (t *T) journey(q *server, ns string, isOver *atomic.Bool, trouble func()) {
	alive := func(flags ...string) bool {
		return !isOver.Load() && q.launch(flags...) == nil && q.ready(4*time.Second) == nil
	}
	defer func() { q.proc.kill() }()
	if alive("--crash-at", "6") && q.apply(mainQueue) == nil {
		_, _ = q.submit("", gangText(gangOptions{name: "traveller", ns: ns, members: 2}))
		select {
		case <-q.proc.done:
		case <-time.After(time.Second):
		}
	}
	q.proc.kill()
	if !alive() || q.apply(mainQueue) != nil {
		return
	}
	_, _ = q.wait(1, "Running", 3*time.Second)
	_ = q.call("GET", "/v1/jobs/1/logs?member=worker-0", "", nil, nil)
	_ = q.cancel(1)
	_, _ = q.wait(1, "ended", 3*time.Second)
	for i := 0; i < 6 && !isOver.Load(); i++ {
		jobs, err := q.submit("", gangText(gangOptions{name: fmt.Sprintf("vexed-%d", i), ns: ns, members: 2}))
		if err != nil {
			return
		}
		_, _ = q.wait(jobs[0].ID, "Running", 2*time.Second)
		trouble()
		_, _ = q.wait(jobs[0].ID, "Pending", 2*time.Second)
		_ = q.cancel(jobs[0].ID)
		_, _ = q.wait(jobs[0].ID, "ended", 2*time.Second)
	}
}

// trouble makes queued need what an ordinary life does not: it must look up what it does not hear of (the answers to its
// creations and the watches break), or take away one by one what has lost its anchor.
func (t *T) trouble(x *proxy, r right, ns string) {
	switch r.verb {
	case "get":
		x.set(&fault{Method: "POST", Part: "/" + r.resource, Times: -1, Cut: true}, &fault{Method: "GET", Part: "watch=", Times: -1, Refuse: true})
		x.cut()
	case "delete":
		orphan := meta.DeletePropagationOrphan
		anchors, err := t.k.CoreV1().ConfigMaps(ns).List(t.ctx, meta.ListOptions{LabelSelector: labelJob})
		if err == nil && len(anchors.Items) > 0 {
			_ = t.k.CoreV1().ConfigMaps(ns).Delete(t.ctx, anchors.Items[0].Name, meta.DeleteOptions{PropagationPolicy: &orphan})
		}
	}
}

func (t *T) kubeconfigOf(path, server, token string) error {
	ca, err := os.ReadFile(t.plane.path("pki", "ca.crt"))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(kubeconfigText(server, base64.StdEncoding.EncodeToString(ca), token, t.account.ns)), 0o600)
}
