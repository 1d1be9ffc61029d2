// Command publish_reference publishes devices with upstream's ResourceSlice controller, the one of
// k8s.io/dynamic-resource-allocation that drivers written in Go use.
//
// It reads one command a line, "publish COUNT", "change INDEX SERIAL" or "storm RATE SECONDS
// STRIDE", and answers each with the Unix times at which it began and ended to tell the controller:
// {"begun": 1.5, "ended": 2.5}. It ends with its input.
//
// Settings: no client-side limit on requests, protobuf, no compression on a local connection. Changes
// that come while an update is handed over are handed over together, in the next one.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

type answer struct {
	Begun float64 `json:"begun"`
	Ended float64 `json:"ended"`
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "credentials")
	node := flag.String("node", "", "name of the Node")
	driver := flag.String("driver", "", "name of the driver")
	flag.Parse()
	if err := run(*kubeconfig, *node, *driver); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, node, driver string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	config.DisableCompression = true
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	controller, err := resourceslice.StartController(ctx, resourceslice.Options{
		DriverName: driver,
		KubeClient: client,
		Owner:      &resourceslice.Owner{APIVersion: "v1", Kind: "Node", Name: node},
		Resources:  resources(node, nil),
	})
	if err != nil {
		return err
	}
	defer controller.Stop()
	fleet := &fleet{node: node, controller: controller, dirty: make(chan struct{}, 1)}
	go fleet.hand()
	return obey(fleet)
}

func obey(fleet *fleet) error {
	output := json.NewEncoder(os.Stdout)
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		begun := now()
		var word string
		var first, second, third int
		if _, err := fmt.Sscan(input.Text(), &word); err != nil {
			return err
		}
		fmt.Sscan(input.Text(), &word, &first, &second, &third)
		switch word {
		case "publish":
			fleet.make(first)
		case "change":
			fleet.change(first, int64(second))
		case "storm":
			fleet.storm(first, second, third)
		default:
			return fmt.Errorf("unknown command %q", input.Text())
		}
		if err := output.Encode(answer{begun, now()}); err != nil {
			return err
		}
	}
	return input.Err()
}

func now() float64 {
	return float64(time.Now().UnixNano()) / 1e9
}

// fleet is what the driver has, and hands over.
type fleet struct {
	node       string
	controller *resourceslice.Controller
	dirty      chan struct{}
	mutex      sync.Mutex
	serials    []int64
}

func (f *fleet) make(count int) {
	f.mutex.Lock()
	f.serials = make([]int64, count)
	f.mutex.Unlock()
	f.changed()
}

func (f *fleet) change(index int, serial int64) {
	f.mutex.Lock()
	f.serials[index] = serial
	f.mutex.Unlock()
	f.changed()
}

// storm makes rate changes a second, each at its time, on devices that are stride apart.
func (f *fleet) storm(rate, seconds, stride int) {
	begun := time.Now()
	for i := range rate * seconds {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		f.change(i*stride%len(f.serials), int64(i+1))
	}
}

func (f *fleet) changed() {
	select {
	case f.dirty <- struct{}{}:
	default:
	}
}

func (f *fleet) hand() {
	for range f.dirty {
		f.mutex.Lock()
		serials := append([]int64(nil), f.serials...)
		f.mutex.Unlock()
		f.controller.Update(resources(f.node, serials))
	}
}
