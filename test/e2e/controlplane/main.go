// kcp: etcd, kube-apiserver, kube-scheduler, kube-controller-manager and kubectl in one binary, one process per
// component, and beside them fake nodes and the runner of the end-to-end cases.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// Commands of our own; the file that has one adds it.
var commands = map[string]func(args []string) error{
	"etcd":  runEtcd,
	"up":    runUp,
	"nodes": runNodes,
	"e2e":   runCases,
}

// Those of Kubernetes, as released.
var components = map[string]func() *cobra.Command{
	"apiserver":          apiserver.NewAPIServerCommand,
	"scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"controller-manager": manager.NewControllerManagerCommand,
	"kubectl":            kubectl.NewDefaultKubectlCommand,
}

func main() {
	name := ""
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	if run, ok := commands[name]; ok {
		if err := run(os.Args[2:]); err != nil {
			fmt.Fprintf(os.Stderr, "kcp %s: %v\n", name, err)
			os.Exit(1)
		}
		return
	}
	component, ok := components[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: kcp up | nodes | e2e | kubectl | etcd | apiserver | scheduler | controller-manager [FLAG...]")
		os.Exit(2)
	}
	os.Args = append([]string{name}, os.Args[2:]...)
	os.Exit(cli.Run(component()))
}
