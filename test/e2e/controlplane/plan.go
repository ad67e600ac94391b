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
//
// Claims for extended resources are made by kube-scheduler itself and cannot be steered: alike members may have each other's devices, so
// only what all of them have together is compared.
func (t *T) asPlanned(s *server, j *job) {
	var planned, allocated []string
	for _, member := range j.Placement.Members {
		pod, err := t.k.CoreV1().Pods(j.Namespace).Get(t.ctx, member.Pod, meta.GetOptions{})
		if err != nil {
			t.errorf("member %s: %v", member.Pod, err)
			continue
		}
		if pod.Spec.NodeName != member.Node {
			t.errorf("pod %s is on %q, planned on %q", member.Pod, pod.Spec.NodeName, member.Node)
		}
		for _, claimed := range member.Claims {
			name := claimed.Name
			if extended := pod.Status.ExtendedResourceClaimStatus; strings.HasPrefix(name, "<") && extended != nil { // made by the scheduler
				name = extended.ResourceClaimName
			}
			claim, err := t.k.ResourceV1().ResourceClaims(j.Namespace).Get(t.ctx, name, meta.GetOptions{})
			if err != nil {
				t.errorf("claim %s of %s: %v", name, member.Pod, err)
				continue
			}
			switch want, got := plannedDevices(claimed.Devices), allocatedDevices(claim); {
			case name != claimed.Name:
				planned, allocated = append(planned, want), append(allocated, got)
			case want != got:
				t.errorf("claim %s has %s, planned %s", name, got, want)
			}
		}
	}
	if want, got := together(planned), together(allocated); want != got {
		t.errorf("the claims for extended resources have %s, planned %s", got, want)
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

func together(lists []string) string {
	words := strings.Fields(strings.Join(lists, " "))
	sort.Strings(words)
	return strings.Join(words, " ")
}
