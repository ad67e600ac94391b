package main

import (
	"fmt"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What the cluster's administrators have set: quotas of namespaces, admission, admin access.

func policyCases(o *options) []testCase {
	return append([]testCase{
		{name: "policy/namespace-quota-is-a-reason", profile: "usual", run: policyQuota},
		{name: "policy/namespace-quota-of-devices", profile: "usual", run: policyDeviceQuota},
		{name: "policy/refusal-by-an-admission-policy", profile: "usual", run: policyRefused},
		{name: "policy/admin-access", profile: "usual", run: policyAdminAccess},
		{name: "policy/namespace-that-does-not-exist", profile: "usual", run: policyNoNamespace},
	}, rightsCases(o)...)
}

func (t *T) setQuota(ns string, hard core.ResourceList) {
	quotas := t.k.CoreV1().ResourceQuotas(ns)
	_ = quotas.Delete(t.ctx, "team", meta.DeleteOptions{})
	_, err := quotas.Create(t.ctx, &core.ResourceQuota{ObjectMeta: meta.ObjectMeta{Name: "team"}, Spec: core.ResourceQuotaSpec{Hard: hard}}, meta.CreateOptions{})
	t.must(err, "quota")
	t.eventually(10*time.Second, func() string {
		quota, err := quotas.Get(t.ctx, "team", meta.GetOptions{})
		if err != nil || len(quota.Status.Hard) == 0 {
			return "the quota is not in force"
		}
		return ""
	})
}

// creations counts what queued created, or tried to, in a namespace.
func (t *T) creations(ns string, since time.Time) int {
	log, err := t.plane.audit(since)
	t.must(err, "audit log")
	n := 0
	for _, r := range log {
		if r.isQueued() && r.Verb == "create" && r.Object.Namespace == ns {
			n++
		}
	}
	return n
}

func policyQuota(t *T) {
	t.plainWorld(4, 8)
	ns := t.namespace()
	t.setQuota(ns, core.ResourceList{"pods": resource.MustParse("3")})
	q, began := t.queued(), time.Now()
	j := q.gang(t, gangOptions{name: "four", ns: ns, members: 4})
	said := ""
	t.eventually(10*time.Second, func() string {
		why, err := q.explain(j.ID)
		said = fmt.Sprint(why["summary"], " ", why["lastReason"])
		if err != nil || !strings.Contains(said, "quota") || why["state"] != "Pending" {
			return fmt.Sprintf("%v: %s (%v)", why["state"], said, err)
		}
		return ""
	})
	t.logf("%s", said)
	time.Sleep(4 * time.Second)
	if n := t.creations(ns, began); n > 20 {
		t.errorf("queued asked for %d objects while the quota forbade it", n)
	}
	t.setQuota(ns, core.ResourceList{"pods": resource.MustParse("4")})
	q.runs(t, j.ID, 30*time.Second)
}

func policyDeviceQuota(t *T) {
	t.plainWorld(4, 8)
	ns := t.namespace()
	t.setQuota(ns, core.ResourceList{"gpu.deviceclass.resource.k8s.io/devices": resource.MustParse("7"), "count/resourceclaims.resource.k8s.io": resource.MustParse("100")})
	q, began := t.queued(), time.Now()
	j := q.gang(t, gangOptions{name: "eight", ns: ns, members: 2, devices: 4})
	said := ""
	t.eventually(10*time.Second, func() string {
		why, err := q.explain(j.ID)
		said = fmt.Sprint(why["summary"], " ", why["lastReason"])
		if err != nil || !strings.Contains(said, "quota") || why["state"] != "Pending" {
			return fmt.Sprintf("%v: %s (%v)", why["state"], said, err)
		}
		return ""
	})
	t.logf("%s", said)
	if n := t.creations(ns, began); n > 20 {
		t.errorf("queued asked for %d objects while the quota forbade it", n)
	}
	t.must(t.k.CoreV1().ResourceQuotas(ns).Delete(t.ctx, "team", meta.DeleteOptions{}), "delete the quota")
	q.runs(t, j.ID, 30*time.Second)
}

const refusal = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: not-today}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: 'object.metadata.namespace != "%[1]s"', message: "not today, says the administrator"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: not-today}
spec: {policyName: not-today, validationActions: [Deny]}
`

func policyRefused(t *T) {
	t.plainWorld(4, 8)
	ns := t.namespace()
	t.must(t.createText(t.ctx, fmt.Sprintf(refusal, ns)), "policy")
	drop := func() {
		_ = t.k.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.ctx, "not-today", meta.DeleteOptions{})
		_ = t.k.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(t.ctx, "not-today", meta.DeleteOptions{})
	}
	t.cleanup(drop)
	// The policy takes a moment to be in force.
	t.eventually(20*time.Second, func() string {
		pod := devicePod(ns, "probe", core.PodResourceClaim{ResourceClaimName: new(string)})
		*pod.Spec.ResourceClaims[0].ResourceClaimName = "none"
		_, err := t.k.CoreV1().Pods(ns).Create(t.ctx, pod, meta.CreateOptions{DryRun: []string{"All"}})
		if err == nil || !strings.Contains(err.Error(), "not today") {
			return "the policy is not in force"
		}
		return ""
	})
	q, began := t.queued(), time.Now()
	j := q.gang(t, gangOptions{name: "refused", ns: ns, members: 2})
	t.eventually(10*time.Second, func() string {
		now, err := q.job(j.ID)
		if err != nil || now.State != "Pending" || !strings.Contains(now.Reason, "not today") {
			return fmt.Sprintf("%s: %s (%v)", now.State, now.Reason, err)
		}
		return ""
	})
	time.Sleep(3 * time.Second)
	if n := t.creations(ns, began); n > 40 {
		t.errorf("queued asked for %d objects in %s", n, time.Since(began))
	}
	drop()
	q.runs(t, j.ID, 60*time.Second)
}

func policyAdminAccess(t *T) {
	t.plainWorld(4, 8)
	ns, q := t.namespace(), t.queued()
	text := fmt.Sprintf(`apiVersion: queue.dra/v1
kind: GangJob
metadata: {name: observer, namespace: %s}
spec:
  queue: main
  groups:
    - name: main
      replicas: 1
      template:
        spec:
          containers: [{name: main, image: registry.example/trainer:1, resources: {claims: [{name: all}]}}]
          resourceClaims: [{name: all, resourceClaimTemplateName: look}]
  claimTemplates:
    - name: look
      spec: {devices: {requests: [{name: all, exactly: {deviceClassName: gpu, allocationMode: All, adminAccess: true}}]}}
`, ns)
	trainer := q.runs(t, q.gang(t, gangOptions{name: "trainer", ns: ns, members: 4, devices: 8}).ID, 20*time.Second)
	jobs, err := q.submit("", text)
	said := fmt.Sprint(err)
	if err == nil {
		t.eventually(10*time.Second, func() string {
			why, err := q.explain(jobs[0].ID)
			if said = fmt.Sprint(why["summary"], " ", why["lastReason"]); err != nil || why["state"] != "Pending" || !strings.Contains(said, "admin") {
				return fmt.Sprintf("%v: %s (%v)", why["state"], said, err)
			}
			return ""
		})
	}
	t.logf("%s", said)
	_, err = t.k.CoreV1().Namespaces().Patch(t.ctx, ns, types.MergePatchType, []byte(`{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}`), meta.PatchOptions{})
	t.must(err, "label the namespace")
	if len(jobs) == 0 {
		t.eventually(5*time.Second, func() string {
			jobs, err = q.submit("", text)
			return errText(err)
		})
	}
	q.runs(t, jobs[0].ID, 30*time.Second)
	if now, _ := q.job(trainer.ID); now.State != "Running" {
		t.errorf("the trainer is %s", now.State)
	}
}

func policyNoNamespace(t *T) {
	t.plainWorld(4, 8)
	q, began := t.queued(), time.Now()
	jobs, err := q.submit("", gangText(gangOptions{name: "nowhere", ns: "no-such-namespace", members: 2}))
	if err != nil {
		t.logf("%v", err)
		return
	}
	t.eventually(10*time.Second, func() string {
		why, err := q.explain(jobs[0].ID)
		said := fmt.Sprint(why["summary"], " ", why["lastReason"])
		if err != nil || why["state"] != "Pending" || !strings.Contains(said, "namespace") {
			return fmt.Sprintf("%v: %s (%v)", why["state"], said, err)
		}
		return ""
	})
	if n := t.creations("no-such-namespace", began); n > 5 {
		t.errorf("queued asked for %d objects", n)
	}
	t.must(t.makeNamespace(t.ctx, "no-such-namespace", nil), "namespace")
	t.cleanup(func() { _ = t.k.CoreV1().Namespaces().Delete(t.ctx, "no-such-namespace", meta.DeleteOptions{}) })
	q.runs(t, jobs[0].ID, 30*time.Second)
	t.must(q.cancel(jobs[0].ID), "cancel")
	t.nothingLeft("no-such-namespace")
}
