// Command protos prints the descriptors of the kubelet's plugin services, as published by the
// Kubernetes project, for comparison with our own .proto files.
//
// Output is one JSON object: the version of k8s.io/kubelet and, by package, a FileDescriptorProto
// in protobuf's JSON form. Keys are sorted, so the same input gives the same bytes.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	healthv1alpha1 "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registrationv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type output struct {
	Kubelet string         `json:"kubelet"`
	Files   map[string]any `json:"files"`
}

func kubeletVersion() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", fmt.Errorf("no build information")
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/kubelet" {
			return module.Version, nil
		}
	}
	return "", fmt.Errorf("k8s.io/kubelet is not among the dependencies")
}

// plain goes through protobuf's JSON and back into maps, because protojson varies its white space
// on purpose.
func plain(file protoreflect.FileDescriptor) (any, error) {
	text, err := protojson.Marshal(protodesc.ToFileDescriptorProto(file))
	if err != nil {
		return nil, err
	}
	var value any
	return value, json.Unmarshal(text, &value)
}

func run() error {
	version, err := kubeletVersion()
	if err != nil {
		return err
	}
	result := output{Kubelet: version, Files: map[string]any{}}
	for _, file := range []protoreflect.FileDescriptor{
		registrationv1.File_staging_src_k8s_io_kubelet_pkg_apis_pluginregistration_v1_api_proto,
		drav1.File_staging_src_k8s_io_kubelet_pkg_apis_dra_v1_api_proto,
		drav1beta1.File_staging_src_k8s_io_kubelet_pkg_apis_dra_v1beta1_api_proto,
		healthv1.File_staging_src_k8s_io_kubelet_pkg_apis_dra_health_v1_api_proto,
		healthv1alpha1.File_staging_src_k8s_io_kubelet_pkg_apis_dra_health_v1alpha1_api_proto,
	} {
		value, err := plain(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file.Package(), err)
		}
		result.Files[string(file.Package())] = value
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	return encoder.Encode(result)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
