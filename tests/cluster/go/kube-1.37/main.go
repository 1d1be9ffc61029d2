// One binary for every Kubernetes component of a test cluster.
//
// The name it is started under (a symbolic link) picks the component. One binary links the shared
// packages once: 154 MB instead of six times about 100 MB, and one link step instead of six.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	// Takes plugin options; a nil among them would crash it, so none is given.
	"kube-scheduler": func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":     proxy.NewProxyCommand,
	"kubelet":        func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl":        kubectl.NewDefaultKubectlCommand,
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
