// One binary for the control plane of an older Kubernetes.
//
// The name it is started under (a symbolic link) picks the component. No kubelet, kube-proxy or
// kubectl: an older server is here to serve the older shapes of the API, not to run pods.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	// Takes plugin options; a nil among them would crash it, so none is given.
	"kube-scheduler": func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func main() {
	name := filepath.Base(os.Args[0])
	component, ok := components[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%q is no component: start this binary through a link named after one\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(component()))
}
