//go:build !nogang

package main

import (
	"context"

	core "k8s.io/api/core/v1"
	scheduling "k8s.io/api/scheduling/v1beta1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Native gangs: scheduling.k8s.io/v1beta1 PodGroup, off by default in 1.37.
const (
	hasNativeGangs    = true
	hasListAttributes = true
	nativeGangGates   = "GenericWorkload=true"
	usualGates        = ""
	usualConfig       = ""
	specialGates      = nativeGangGates + ",DRAListTypeAttributes=true"
	nativeGangConfig  = "scheduling.k8s.io/v1beta1=true"
)

var nativeGangControllers = []string{"podgroup-protection-controller"}

func makeNativeGang(ctx context.Context, k kubernetes.Interface, ns, name string, members int32) error {
	group := &scheduling.PodGroup{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: ns},
		Spec: scheduling.PodGroupSpec{SchedulingPolicy: scheduling.PodGroupSchedulingPolicy{Gang: &scheduling.GangSchedulingPolicy{MinCount: members}}}}
	_, err := k.SchedulingV1beta1().PodGroups(ns).Create(ctx, group, meta.CreateOptions{})
	return err
}

func joinNativeGang(pod *core.Pod, group string) {
	pod.Spec.SchedulingGroup = &core.PodSchedulingGroup{PodGroupName: &group}
}

func dropNativeGangs(ctx context.Context, k kubernetes.Interface, ns string) {
	_ = k.SchedulingV1beta1().PodGroups(ns).DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{})
}

// nativeGangs tells the names of those that exist in a namespace.
func nativeGangs(ctx context.Context, k kubernetes.Interface, ns string) ([]string, error) {
	groups, err := k.SchedulingV1beta1().PodGroups(ns).List(ctx, meta.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, group := range groups.Items {
		names = append(names, group.Name)
	}
	return names, nil
}

func groupOf(pod *core.Pod) string {
	if pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return ""
	}
	return *pod.Spec.SchedulingGroup.PodGroupName
}
