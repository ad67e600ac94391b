//go:build nogang

package main

import (
	"context"
	"errors"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// This minor has no native gangs.
const (
	hasNativeGangs    = false
	hasListAttributes = false
	specialGates      = ""
	// What 1.37 has on by default, as far as 1.35 knows it.
	usualGates       = "DRAPartitionableDevices=true,DRAConsumableCapacity=true,DRADeviceTaints=true,DRADeviceTaintRules=true,DRADeviceBindingConditions=true,DRAResourceClaimDeviceStatus=true,DRAExtendedResource=true"
	usualConfig      = ",resource.k8s.io/v1alpha3=true"
	nativeGangGates  = ""
	nativeGangConfig = ""
)

var nativeGangControllers []string

var errNoNativeGangs = errors.New("this minor has no PodGroup")

func makeNativeGang(context.Context, kubernetes.Interface, string, string, int32) error {
	return errNoNativeGangs
}
func joinNativeGang(*core.Pod, string)                              {}
func dropNativeGangs(context.Context, kubernetes.Interface, string) {}
func nativeGangs(context.Context, kubernetes.Interface, string) ([]string, error) {
	return nil, errNoNativeGangs
}

func groupOf(*core.Pod) string { return "" }
