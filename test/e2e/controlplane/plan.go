package main

import (
	"fmt"
	"sort"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// asPlanned compares what kube-scheduler did with the placement that queued shows: every pod on its node, every claim with
// its devices; and queued itself has seen no drift.
func (t *T) asPlanned(s *server, j *job) {
	for _, member := range j.Placement.Members {
		pod, err := t.k.CoreV1().Pods(j.Namespace).Get(t.ctx, member.Pod, meta.GetOptions{})
		if err != nil {
			t.errorf("member %s: %v", member.Pod, err)
			continue
		}
		if pod.Spec.NodeName != member.Node {
			t.errorf("pod %s is on %q, planned on %q", member.Pod, pod.Spec.NodeName, member.Node)
		}
		for _, planned := range member.Claims {
			name := planned.Name
			if extended := pod.Status.ExtendedResourceClaimStatus; strings.HasPrefix(name, "<") && extended != nil { // made by the scheduler
				name = extended.ResourceClaimName
			}
			claim, err := t.k.ResourceV1().ResourceClaims(j.Namespace).Get(t.ctx, name, meta.GetOptions{})
			if err != nil {
				t.errorf("claim %s of %s: %v", name, member.Pod, err)
				continue
			}
			if want, got := plannedDevices(planned.Devices), allocatedDevices(claim); want != got {
				t.errorf("claim %s has %s, planned %s", name, got, want)
			}
		}
	}
	if drift, err := s.metric("queued_drift_total"); err != nil || drift != 0 {
		t.errorf("queued_drift_total is %v (%v)", drift, err)
	}
}

func plannedDevices(devices []device) string {
	var names []string
	for _, d := range devices {
		names = append(names, fmt.Sprintf("%s/%s/%s", d.Driver, d.Pool, d.Device))
	}
	sort.Strings(names)
	return strings.Join(names, " ")
}

func allocatedDevices(claim *resourceapi.ResourceClaim) string {
	if claim.Status.Allocation == nil {
		return "nothing"
	}
	var names []string
	for _, d := range claim.Status.Allocation.Devices.Results {
		names = append(names, fmt.Sprintf("%s/%s/%s", d.Driver, d.Pool, d.Device))
	}
	sort.Strings(names)
	return strings.Join(names, " ")
}
